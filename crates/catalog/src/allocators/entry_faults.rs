//! Checks of an entry that need no other file.

use super::embedded::{extra, ours};
use crate::allocator::{Allocator, Purge, Source, Tier};
use crate::faults::{Fault, suggestion};
use crate::knob::knob_faults;
use crate::malloc_api;
use std::path::Path;

/// Returns whether `name` is valid on the command line, in a file name and in a cell's name.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// Adds a fault if an entry's name is invalid, or is not the name of its file or folder.
pub fn check_name(file: &str, name: &str, kind: &str, own: &str, faults: &mut Vec<Fault>) {
    if !is_name(name) {
        faults.push(Fault::new(
            file,
            "name",
            format!("`{name}` is not a name"),
            "use a-z, 0-9, `_` and `-` only",
        ));
    } else if name != own {
        faults.push(Fault::new(
            file,
            "name",
            format!("`{name}` is not the {kind}'s name"),
            format!("write `name = \"{own}\"`, or rename the {kind}"),
        ));
    }
}

/// Adds a fault if an entry's name may not be used: a name of ours only if the entry declares that
/// it replaces ours, and the floor's name never.
pub fn check_place(file: &str, allocator: &Allocator, faults: &mut Vec<Fault>) {
    let name = &allocator.name;
    let (key, what, mend) = match ours(name) {
        Some(_) if Path::new(file).is_relative() => return,
        Some(ours) if ours.tier == Tier::Floor => (
            "name",
            format!("`{name}` is the harness's own floor and is never replaced"),
            "give the allocator another name",
        ),
        Some(_) if !allocator.replace => (
            "name",
            format!("`{name}` is a name of heapmark's own catalogue"),
            "use another, or write `replace = true` to stand in its place",
        ),
        None if allocator.replace => (
            "replace",
            format!("there is no `{name}` to replace"),
            "leave it out",
        ),
        _ => return,
    };
    faults.push(Fault::new(file, key, what, mend));
}

/// Adds a fault if an alias of a user's entry is the name of an entry, since the name comes first.
pub fn check_aliases(entries: &[(String, Allocator)], faults: &mut Vec<Fault>) {
    let is_users = |(file, _): &&(String, Allocator)| !Path::new(file).is_relative();
    for (file, allocator) in entries.iter().filter(is_users) {
        let is_a_name = |alias: &&String| entries.iter().any(|(_, other)| other.name == **alias);
        for alias in allocator.aliases.iter().filter(is_a_name) {
            let what = format!("`{alias}` is an allocator's name");
            faults.push(Fault::new(file.as_str(), "aliases", what, "remove it"));
        }
    }
}

/// Returns whether these are all digits of a SHA-256, as they are written here.
pub fn is_sha256(digits: &str) -> bool {
    digits.len() == 64
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Makes all checks that concern an entry alone. Expands the patterns in `left-to-libc` to names.
pub fn check(file: &str, allocator: &mut Allocator, faults: &mut Vec<Fault>) {
    let mut add =
        |key: &str, what: &str, mend: &str| faults.push(Fault::new(file, key, what, mend));
    if allocator.aliases.iter().any(|alias| !is_name(alias)) {
        add("aliases", "not a name", "use a-z, 0-9, `_` and `-` only");
    }
    if allocator.about.trim().is_empty() {
        add("about", "empty", "say in one line what it is");
    }
    if let Source::Crate { pin: Some(pin), .. } = &allocator.source
        && !is_sha256(&pin.sha256)
    {
        add(
            "source.pin.sha256",
            "not the 64 digits of a SHA-256",
            "write all of them, with a-f",
        );
    }
    match (&allocator.source, &allocator.build) {
        (Source::Crate { .. }, None) => add(
            "build",
            "missing",
            "a crate's sources need a recipe: add `[build]`",
        ),
        (Source::Crate { .. }, Some(_)) => {}
        (_, Some(_)) => add(
            "build",
            "nothing to build",
            "only `source.kind = \"crate\"` takes a recipe",
        ),
        (Source::AsCalled | Source::Git(_), None) => add(
            "source.kind",
            "this kind is for the command line, not for files",
            "take another: see allocators/README.md",
        ),
        (Source::System { files, .. }, _) if files.is_empty() => {
            add("source.files", "empty", "name at least one soname")
        }
        (Source::Wheel { files, .. }, _) if files.is_empty() => add(
            "source.files",
            "empty",
            "name at least one file of the wheel",
        ),
        (Source::Path { files }, _) if files.is_empty() => {
            add("source.files", "empty", "name at least one file")
        }
        _ => {}
    }
    if matches!(allocator.source, Source::Null) != (allocator.tier == Tier::Floor) {
        add(
            "tier",
            "`floor` is the tier of the null allocator, and of nothing else",
            "use `user`, and `source.kind = \"path\"`",
        );
    }
    if let Some(recipe) = &allocator.build {
        let units = || recipe.compile.iter();
        if units().all(|unit| unit.files.is_empty() && unit.extra.is_empty()) {
            add(
                "build.compile",
                "no files",
                "add `[[build.compile]]` with `files`",
            );
        }
        for name in units().flat_map(|unit| &unit.extra) {
            if extra(name).is_none() {
                add(
                    "build.compile.extra",
                    &format!("`{name}` is not there"),
                    "put it into allocators/extra/",
                );
            }
        }
        let of_units = units().flat_map(|unit| unit.flags_for.keys());
        for arch in recipe.flags_for.keys().chain(of_units) {
            if !["x86_64", "aarch64"].contains(&arch.as_str()) {
                add(
                    "build.flags-for",
                    &format!("`{arch}` is no processor we know"),
                    "use `x86_64` or `aarch64`",
                );
            }
        }
    }
    for range in &allocator.not_on_linux {
        if range.why.trim().is_empty() {
            add("not-on-linux.why", "no reason given", "say what happens");
        }
        if range.before.is_some_and(|before| before <= range.from) {
            add(
                "not-on-linux.before",
                "no release lies between `from` and `before`",
                "name the first release that is good again, or leave it out",
            );
        }
    }
    let mut variables = allocator.environment.keys();
    if variables.any(|name| name.starts_with("LD_")) {
        add(
            "environment",
            "the dynamic linker's variables are ours",
            "name the files in `source`",
        );
    }
    for name in &allocator.reads {
        let letters = name.trim_end_matches('*');
        let why = if letters.is_empty() {
            format!("`{name}` is every variable")
        } else if letters.contains('*') {
            format!("`{name}` has a star before its end")
        } else {
            continue;
        };
        add(
            "reads",
            &why,
            "name one, or the letters that its variables begin with",
        );
    }
    for (name, what, mend) in knob_faults(&allocator.knobs) {
        add(&format!("knobs.{name}"), what, mend);
    }
    if let Some(Purge::Call { symbol, args, .. }) = &allocator.purge {
        if symbol.is_empty() {
            add("purge.symbol", "empty", "name the function to call");
        }
        if args.len() > 6 {
            add(
                "purge.args",
                "more than six arguments",
                "six fit into registers",
            );
        }
    }
    if !allocator.known_by.is_empty() && !matches!(allocator.purge, Some(Purge::Call { .. })) {
        add(
            "known-by",
            "there is no purge that could be called",
            "add `purge`, or leave it out",
        );
    }
    for (table, reasons) in [
        ("except", &allocator.except),
        ("differences", &allocator.differences),
    ] {
        for (what, reason) in reasons {
            if reason.trim().is_empty() {
                add(&format!("{table}.{what}"), "no reason given", "say why");
            }
        }
    }
    let mut left = std::collections::BTreeMap::new();
    for (pattern, reason) in &allocator.left_to_libc {
        let key = format!("left-to-libc.{pattern}");
        if reason.trim().is_empty() {
            add(
                &key,
                "no reason given",
                "name the library that serves it instead, and why",
            );
        }
        let mut names = malloc_api::required()
            .filter(|name| malloc_api::matches(pattern, name))
            .peekable();
        if names.peek().is_none() {
            let other = "use a name of the malloc family, or `_Z*`";
            let mend = suggestion(pattern, malloc_api::required(), other);
            add(&key, "no such function", &mend);
        }
        left.extend(names.map(|name| (name.to_string(), reason.clone())));
    }
    allocator.left_to_libc = left;
}
