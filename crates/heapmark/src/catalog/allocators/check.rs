//! Checks of an entry that need no other file.

use super::embedded::{extra, ours};
use crate::catalog::allocator::{Allocator, Purge, Source, Tier};
use crate::catalog::faults::{Fault, nearest};
use crate::catalog::malloc_api;
use std::collections::BTreeMap;
use std::path::Path;

/// A fault in a key of a file, and its remedy.
pub(super) fn fault(
    file: &str,
    key: &str,
    what: impl Into<String>,
    mend: impl Into<String>,
) -> Fault {
    Fault {
        file: file.into(),
        key: key.into(),
        what: what.into(),
        mend: mend.into(),
    }
}

/// Whether `name` is valid on the command line, in a file name and in a cell's name.
pub fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// Whether its name is valid.
pub(super) fn check_name(file: &str, allocator: &Allocator, faults: &mut Vec<Fault>) {
    let stem = Path::new(file)
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    if !is_name(&allocator.name) {
        let what = format!("`{}` is not a name", allocator.name);
        faults.push(fault(file, "name", what, "use a-z, 0-9, `_` and `-` only"));
    } else if allocator.name != stem {
        let what = format!("`{}` is not the file's name", allocator.name);
        faults.push(fault(
            file,
            "name",
            what,
            format!("write `name = \"{stem}\"`, or rename the file"),
        ));
    }
}

/// Whether its name may be used: one of ours only if the entry declares that it replaces it, and
/// never the floor's.
pub(super) fn check_place(file: &str, allocator: &Allocator, faults: &mut Vec<Fault>) {
    let name = &allocator.name;
    let (is_ours, ours) = (Path::new(file).is_relative(), ours(name));
    match &ours {
        Some(_) if is_ours => {}
        Some(ours) if ours.tier == Tier::Floor => {
            let what = format!("`{name}` is the harness's own floor and is never replaced");
            faults.push(fault(file, "name", what, "give the allocator another name"));
        }
        Some(_) if !allocator.replace => {
            let what = format!("`{name}` is a name of heapmark's own catalogue");
            faults.push(fault(
                file,
                "name",
                what,
                "use another, or write `replace = true` to stand in its place",
            ));
        }
        None if allocator.replace => {
            faults.push(fault(
                file,
                "replace",
                format!("there is no `{name}` to replace"),
                "leave it out",
            ));
        }
        _ => {}
    }
}

/// All checks of an entry alone. Expands the patterns in `left-to-libc` to names.
pub(super) fn check(file: &str, allocator: &mut Allocator, faults: &mut Vec<Fault>) {
    let mut add = |key: &str, what: &str, mend: &str| faults.push(fault(file, key, what, mend));
    if allocator.about.trim().is_empty() {
        add("about", "empty", "say in one line what it is");
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
        (Source::AsCalled, None) => add(
            "source.kind",
            "`as-called` is for runs, not for files",
            "take another: see allocators/README.md",
        ),
        (Source::System { files, .. }, _) if files.is_empty() => {
            add("source.files", "empty", "name at least one soname")
        }
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
        if recipe
            .compile
            .iter()
            .all(|unit| unit.files.is_empty() && unit.extra.is_empty())
        {
            add(
                "build.compile",
                "no files",
                "add `[[build.compile]]` with `files`",
            );
        }
        for name in recipe
            .compile
            .iter()
            .flat_map(|unit| &unit.extra)
            .filter(|name| extra(name).is_none())
        {
            add(
                "build.compile.extra",
                &format!("`{name}` is not there"),
                "put it into allocators/extra/",
            );
        }
        let of_units = recipe.compile.iter().flat_map(|unit| unit.flags_for.keys());
        for arch in recipe
            .flags_for
            .keys()
            .chain(of_units)
            .filter(|arch| !["x86_64", "aarch64"].contains(&arch.as_str()))
        {
            add(
                "build.flags-for",
                &format!("`{arch}` is no processor we know"),
                "use `x86_64` or `aarch64`",
            );
        }
    }
    if allocator
        .environment
        .keys()
        .any(|key| key.starts_with("LD_"))
    {
        add(
            "environment",
            "the dynamic linker's variables are ours",
            "name the files in `source`",
        );
    }
    for name in allocator
        .reads
        .iter()
        .filter(|name| name.trim_end_matches('*').is_empty())
    {
        add(
            "reads",
            &format!("`{name}` is every variable"),
            "name one, or the letters that its variables begin with",
        );
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
        for (what, _) in reasons
            .iter()
            .filter(|(_, reason)| reason.trim().is_empty())
        {
            add(&format!("{table}.{what}"), "no reason given", "say why");
        }
    }
    let mut left = BTreeMap::new();
    for (pattern, reason) in &allocator.left_to_libc {
        let key = format!("left-to-libc.{pattern}");
        if reason.trim().is_empty() {
            add(
                &key,
                "no reason given",
                "name the library that serves it instead, and why",
            );
        }
        let names: Vec<_> = malloc_api::required()
            .filter(|name| malloc_api::matches(pattern, name))
            .collect();
        if names.is_empty() {
            let near = nearest(pattern, malloc_api::required())
                .map(|name| format!("did you mean `{name}`?"));
            add(
                &key,
                "no such function",
                &near.unwrap_or("use a name of the malloc family, or `_Z*`".into()),
            );
        }
        left.extend(
            names
                .into_iter()
                .map(|name| (name.to_string(), reason.clone())),
        );
    }
    allocator.left_to_libc = left;
}
