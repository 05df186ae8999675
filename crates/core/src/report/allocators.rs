//! The page about the allocators, made from the data files only; `make docs` keeps it up to date.

use super::render::escaped;
use super::text;
use crate::build::{pin as pin_of, wheel_version};
use crate::catalog::{Allocator, Source, Tier};

/// The tiers in the order of the page, each with its heading.
const TIERS: [(Tier, &str); 4] = [
    (Tier::Main, "Main: measured unless `-a` says otherwise"),
    (
        Tier::Variant,
        "Variants: other options or other builds of the main ones",
    ),
    (
        Tier::Hardened,
        "Hardened: they pay for safety with time and memory",
    ),
    (Tier::Experimental, "Experimental: known to break programs"),
];

/// Every allocator that can be named: what it is, where its sources are from, and its licence.
pub fn allocators(all: &[Allocator]) -> String {
    let mut page = String::from(
        "# Allocators\n\n\
         Printed by `heapmark list allocators --markdown` from the files in `allocators/`.\n\n\
         heapmark builds those of a crate from the sources that a lock file pins, with their authors' flags (`heapmark list allocators\n\
         --flags` says where and why ours differ). Those of a wheel are as their authors built them for Python, and pinned, too. The\n\
         others come from a package of the system, with its version. `heapmark list allocators` shows what is missing on a machine and the\n\
         release of each library there: verdicts and tables name it, since numbers of one release say little of the next.\n\
         **gperftools** and **tcmalloc** are two allocators: `libtcmalloc` of distributions and mimalloc-bench's `tc` are gperftools,\n\
         and our `tcmalloc` is TCMalloc (Google), mimalloc-bench's `tcg`.\n\
         Any other library: `-a NAME=/path/lib.so`; a commit of a repository: `-a NAME=git:PATH@REF`. Short names are in brackets; one\n\
         that several have means all of them, as a family's name means its main ones: `-a mimalloc,je`.\n",
    );
    for (tier, heading) in TIERS {
        page += &format!(
            "\n## {heading}\n\n| name | what it is | sources | release | options | licence |\n|---|---|---|---|---|---|\n"
        );
        for allocator in all.iter().filter(|allocator| allocator.tier == tier) {
            page += &row(allocator);
        }
    }
    page
}

fn row(allocator: &Allocator) -> String {
    let mut name = match allocator.home.as_str() {
        "" => allocator.name.clone(),
        home => format!("[{}]({home})", allocator.name),
    };
    if !allocator.aliases.is_empty() {
        name += &format!(" ({})", allocator.aliases.join(", "));
    }
    let options = allocator.environment.iter();
    let options = text::join(
        options.map(|(variable, value)| format!("`{variable}={value}`")),
        ", ",
    );
    let cells = [
        name,
        escaped(&allocator.about),
        sources(&allocator.source),
        escaped(&release(allocator)),
        options,
        escaped(&allocator.licence),
    ];
    let cells = cells.map(|cell| if cell.is_empty() { "-".into() } else { cell });
    format!("| {} |\n", cells.join(" | "))
}

/// Returns the release of an allocator as text; the release of a package depends on the system.
fn release(allocator: &Allocator) -> String {
    match allocator.sources.dates.is_empty() {
        true => allocator.release(None),
        false => format!("{}, by version", allocator.sources.years()),
    }
}

fn sources(source: &Source) -> String {
    match source {
        Source::Crate { name, pin, .. } => match pin_of(name, pin.as_ref()) {
            Ok(pin) => format!("crate {name} {}", without_commit(&pin.version)),
            Err(_) => format!("crate {name}"),
        },
        Source::Wheel { name, pin, .. } => match wheel_version(name, pin.as_ref()) {
            Ok(version) => format!("wheel {name} {version}"),
            Err(_) => format!("wheel {name}"),
        },
        Source::Deb { name, pin, .. } => format!("deb {name} {}", pin.version),
        Source::System { package, .. } => format!("package {package}"),
        Source::SameAs { name } | Source::BuiltAs { name, .. } => format!("as {name}"),
        Source::Libc => "the system's C library".into(),
        Source::Path { .. } | Source::Git(_) | Source::Null | Source::AsCalled => String::new(),
    }
}

/// The version without the commit: `5.3.1` from `5.3.1-0-g81034ce1...`, the form of `git describe`.
fn without_commit(version: &str) -> &str {
    version.split("-0-g").next().unwrap_or(version)
}
