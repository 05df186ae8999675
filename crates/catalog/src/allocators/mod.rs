//! Reads the allocator entries, ours and the user's, and refuses invalid ones. Looks at the entries
//! only: `build` finds out whether a library exists.

mod embedded;
mod entry_faults;

pub use embedded::extra;
pub use entry_faults::{check, check_name, is_name, is_sha256};

use super::allocator::{Allocator, Source};
use super::faults::{self, Fault, Faults, read, suggestion};
use super::folder;
use super::release::Sources;
use embedded::OURS;
use entry_faults::{check_aliases, check_place};
use std::collections::BTreeMap;
use std::path::Path;

/// Reads all entries: ours, and those from the user's folder on top. Sorted by tier, then by name.
pub fn load() -> Result<Vec<Allocator>, Faults> {
    load_with(folder::users("allocators").as_deref())
}

/// Does the same as [`load`], with the user's folder as an argument; a folder that does not exist
/// counts as empty.
pub fn load_with(user: Option<&Path>) -> Result<Vec<Allocator>, Faults> {
    let mut faults = Vec::new();
    let mut entries = BTreeMap::new();
    for (file, text) in folder::texts_with(&OURS, "allocators", user, &mut faults) {
        if let Some(allocator) = read::<Allocator>(&file, &text, &mut faults) {
            let stem = Path::new(&file).file_stem().unwrap_or_default();
            check_name(
                &file,
                &allocator.name,
                "file",
                &stem.to_string_lossy(),
                &mut faults,
            );
            check_place(&file, &allocator, &mut faults);
            entries.insert(allocator.name.clone(), (file, allocator));
        }
    }
    let mut entries: Vec<(String, Allocator)> = entries.into_values().collect();
    for (file, allocator) in &mut entries {
        check(file, allocator, &mut faults);
    }
    check_aliases(&entries, &mut faults);
    inherit(&mut entries, &mut faults);
    faults::none(faults)?;
    // Within a tier, entries stay in the order of their names.
    entries.sort_by_key(|(_, allocator)| allocator.tier);
    Ok(entries
        .into_iter()
        .map(|(_, allocator)| allocator)
        .collect())
}

/// Finds the target of each `same-as` and `built-as` and copies from it the keys that the entry
/// leaves unset, and for `built-as` also how it is built.
fn inherit(entries: &mut [(String, Allocator)], faults: &mut Vec<Fault>) {
    let originals: BTreeMap<String, Allocator> = entries
        .iter()
        .map(|(_, a)| (a.name.clone(), a.clone()))
        .collect();
    // What is built from our recipe still is if the user has another library in the place of our entry.
    let replaced: BTreeMap<String, Allocator> = originals
        .values()
        .filter(|original| original.replace)
        .filter_map(|original| {
            let file = OURS.get_file(format!("{}.toml", original.name))?;
            let ours = toml::from_str(file.contents_utf8()?).ok()?;
            Some((original.name.clone(), ours))
        })
        .collect();
    for (file, allocator) in entries {
        let (Source::SameAs { name } | Source::BuiltAs { name, .. }) = &allocator.source else {
            continue;
        };
        let mut fault = |what: String, mend: String| {
            faults.push(Fault::new(file.as_str(), "source.name", what, mend));
        };
        let ours = replaced
            .get(name)
            .filter(|_| matches!(allocator.source, Source::BuiltAs { .. }));
        let Some(original) = ours.or_else(|| originals.get(name)) else {
            let names = originals.keys().map(String::as_str);
            fault(
                format!("there is no allocator `{name}`"),
                suggestion(name, names, "name another entry"),
            );
            continue;
        };
        if let Source::SameAs { name: further } | Source::BuiltAs { name: further, .. } =
            &original.source
        {
            fault(
                format!("`{name}` is itself the same as `{further}`"),
                format!("write `{further}`"),
            );
            continue;
        }
        if let Source::BuiltAs { define, .. } = &allocator.source {
            let Some(recipe) = &original.build else {
                fault(
                    format!("`{name}` is not built by heapmark"),
                    "name an entry that has [build]".into(),
                );
                continue;
            };
            let mut recipe = recipe.clone();
            recipe.define.extend(define.clone());
            allocator.build = Some(recipe);
            allocator.source = original.source.clone();
            allocator
                .upstream_flags
                .clone_from(&original.upstream_flags);
            allocator
                .upstream_flags_for
                .clone_from(&original.upstream_flags_for);
            allocator.differences.clone_from(&original.differences);
        }
        for (field, theirs) in [
            (&mut allocator.home, &original.home),
            (&mut allocator.licence, &original.licence),
        ] {
            if field.is_empty() {
                field.clone_from(theirs);
            }
        }
        if allocator.sources == Sources::default() {
            allocator.sources.clone_from(&original.sources);
        }
        if allocator.not_on_linux.is_empty() {
            allocator.not_on_linux.clone_from(&original.not_on_linux);
        }
        if allocator.stops_at.is_empty() {
            allocator.stops_at.clone_from(&original.stops_at);
        }
        allocator.wrapper |= original.wrapper;
        allocator.purge = allocator.purge.take().or_else(|| original.purge.clone());
        allocator.version = allocator
            .version
            .take()
            .or_else(|| original.version.clone());
        for (reasons, theirs) in [
            (&mut allocator.left_to_libc, &original.left_to_libc),
            (&mut allocator.except, &original.except),
        ] {
            for (key, reason) in theirs {
                reasons.entry(key.clone()).or_insert_with(|| reason.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocator::Purge;
    use crate::malloc_api;

    /// Loads our entries with these files in the user's folder.
    fn load_beside(files: &[(&str, &str)]) -> Result<Vec<Allocator>, Faults> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        load_with(Some(folder.path()))
    }

    const MINE: &str = r#"
        name = "mine"
        family = "mine"
        about = "my own"
        tier = "user"
        source = { kind = "path", files = ["/opt/mine.so"] }
    "#;

    #[test]
    fn ours_are_in_order_and_each_has_a_home_and_a_licence() {
        let all = load_with(None).unwrap();
        assert_eq!(
            all.len(),
            OURS.files()
                .filter(|file| file.path().extension().is_some_and(|end| end == "toml"))
                .count()
        );
        for allocator in all.iter().filter(|a| a.name != "null") {
            assert!(allocator.home.starts_with("https://"), "{}", allocator.name);
            assert!(!allocator.licence.is_empty(), "{}", allocator.name);
        }
    }

    #[test]
    fn the_users_entry_replaces_ours_and_adds_to_them() {
        let glibc = MINE.replace("\"mine\"", "\"glibc\"") + "replace = true";
        let all = load_beside(&[
            ("mine.toml", MINE),
            ("glibc.toml", &glibc),
            ("notes.txt", "x"),
        ])
        .unwrap();
        assert_eq!(
            all.len(),
            OURS.files()
                .filter(|file| file.path().extension().is_some_and(|end| end == "toml"))
                .count()
                + 1
        );
        let find = |all: &[Allocator], name: &str| {
            let found = all.iter().find(|a| a.name == name);
            found.unwrap().source.clone()
        };
        assert!(matches!(find(&all, "glibc"), Source::Path { .. }));
        let rpmalloc = MINE.replace("\"mine\"", "\"rpmalloc\"") + "replace = true";
        let all = load_beside(&[("rpmalloc.toml", &rpmalloc)]).unwrap();
        assert!(matches!(find(&all, "rpmalloc"), Source::Path { .. }));
        assert!(matches!(
            find(&all, "rpmalloc-nocache"),
            Source::Crate { .. }
        ));
    }

    #[test]
    fn a_variant_takes_what_it_leaves_open() {
        let all = load_with(None).unwrap();
        let find = |name: &str| all.iter().find(|a| a.name == name).unwrap();
        let (variant, original) = (find("jemalloc-decay0"), find("jemalloc"));
        assert_eq!(variant.left_to_libc, original.left_to_libc);
        assert_eq!(variant.licence, original.licence);
        assert!(matches!(variant.purge, Some(Purge::Configured)));
        assert!(matches!(
            find("glibc-arena1").purge,
            Some(Purge::Call { .. })
        ));
        assert!(find("tcmalloc-percpu").except.contains_key("fork"));
        let recipe = |name: &str| find(name).build.clone().unwrap();
        let (secure, plain) = (recipe("mimalloc3-secure"), recipe("mimalloc3"));
        assert_eq!(secure.include, plain.include);
        assert_eq!(secure.define.len(), plain.define.len() + 2);
        assert!(matches!(
            find("mimalloc3-secure").source,
            Source::Crate { .. }
        ));
    }

    #[test]
    fn an_entry_names_the_kernels_on_which_it_fails() {
        let all = load_with(None).unwrap();
        let percpu = all.iter().find(|a| a.name == "tcmalloc-percpu").unwrap();
        let why = |kernel: &str| {
            let mut ranges = percpu.not_on_linux.iter();
            ranges.find_map(|range| range.why_not_on(kernel))
        };
        for good in [
            "5.15.0-1053-aws",
            "6.18.44",
            "7.0.14",
            "7.0.14-generic",
            "7.1.0-rc1",
        ] {
            assert_eq!(why(good), None, "{good}");
        }
        for bad in [
            "6.19.0-rc3",
            "6.19.7",
            "7.0.0",
            "7.0.0-15-generic",
            "7.0.13",
        ] {
            let why = why(bad).unwrap_or_else(|| panic!("{bad}"));
            let start = format!("on Linux since 6.19 and before 7.0.14 (here {bad}): ");
            assert!(why.starts_with(&start), "{why}");
            assert!(why.ends_with("/google/tcmalloc/issues/292"), "{why}");
        }
        let faults = load_beside(&[
            ("mine.toml", &with_range("from = \"7\", why = \"x\"")),
            (
                "other.toml",
                &with_range("from = \"7.1\", before = \"7.1\", why = \" \""),
            ),
        ]);
        let faults = faults.unwrap_err().to_string();
        for fault in [
            "mine.toml: `7` is no release of Linux: write it as 6.19 or 7.0.14",
            "other.toml: not-on-linux.before: no release lies between",
            "other.toml: not-on-linux.why: no reason given; say what happens",
        ] {
            assert!(faults.contains(fault), "missing {fault:?} in\n{faults}");
        }
    }

    fn with_range(range: &str) -> String {
        format!(
            "{}\nnot-on-linux = [{{ {range} }}]",
            MINE.replace("\"mine\"", "\"other\"")
        )
    }

    #[test]
    fn patterns_in_leaves_become_names() {
        let all = load_with(None).unwrap();
        let dlmalloc = all.iter().find(|a| a.name == "dlmalloc").unwrap();
        assert_eq!(dlmalloc.left_to_libc.len(), malloc_api::OPERATORS.len());
        assert!(dlmalloc.left_to_libc.contains_key("_Znwm"));
    }

    #[test]
    fn all_faults_are_told_together() {
        let with = |extra: &str| format!("{MINE}\n{extra}");
        let same = MINE.replace(
            "kind = \"path\", files = [\"/opt/mine.so\"]",
            "kind = \"same-as\", name = \"jemaloc\"",
        );
        let faults = load_beside(&[
            (
                "mine.toml",
                &with("[left-to-libc]\nrealocarray = \"x\"\nvalloc = \"\""),
            ),
            ("other.toml", MINE),
            ("broken.toml", "name = "),
            ("wrong.toml", &with("purge = { kind = \"cal\" }")),
            ("same.toml", &same.replace("\"mine\"", "\"same\"")),
            (
                "unbuilt.toml",
                &same.replace("\"mine\"", "\"unbuilt\"").replace(
                    "same-as\", name = \"jemaloc\"",
                    "built-as\", name = \"scudo\", define = {}",
                ),
            ),
            (
                "built.toml",
                &with("[build]\ninclude = []").replace("\"mine\"", "\"built\""),
            ),
            ("Bad.toml", &MINE.replace("\"mine\"", "\"Bad\"")),
            (
                "env.toml",
                &with("[environment]\nLD_PRELOAD = \"x\"").replace("\"mine\"", "\"env\""),
            ),
        ])
        .unwrap_err()
        .to_string();
        for fault in [
            "other.toml: name: `mine` is not the file's name; write `name = \"other\"`, or rename the file",
            "broken.toml: ",
            "wrong.toml: cal: unknown (line 8); did you mean `call`?",
            "unbuilt.toml: source.name: `scudo` is not built by heapmark",
            "same.toml: source.name: there is no allocator `jemaloc`; did you mean `jemalloc`?",
            "built.toml: build: nothing to build",
            "Bad.toml: name: `Bad` is not a name",
            "env.toml: environment: ",
        ] {
            assert!(faults.contains(fault), "missing {fault:?} in\n{faults}");
        }
    }

    #[test]
    fn an_alias_or_a_pin_that_can_never_serve_is_a_fault() {
        let alias = format!("{MINE}\naliases = [\"me\", \"glibc\"]");
        let pinned =
            "kind = \"crate\", name = \"a\", pin = { version = \"1.0.0\", sha256 = \"12\" }";
        let pinned = MINE
            .replace("\"mine\"", "\"pinned\"")
            .replace("kind = \"path\", files = [\"/opt/mine.so\"]", pinned);
        let faults = load_beside(&[("mine.toml", &alias), ("pinned.toml", &pinned)]);
        let faults = faults.unwrap_err().to_string();
        for fault in [
            "mine.toml: aliases: `glibc` is an allocator's name; remove it",
            "pinned.toml: source.pin.sha256: not the 64 digits of a SHA-256; write all of them",
        ] {
            assert!(faults.contains(fault), "missing {fault:?} in\n{faults}");
        }
        // An entry may take an alias of ours as its name.
        load_beside(&[("je.toml", &MINE.replace("\"mine\"", "\"je\""))]).unwrap();
    }

    #[test]
    fn leaves_must_name_functions_and_reasons() {
        let text = format!("{MINE}\n[left-to-libc]\nrealocarray = \"x\"\nvalloc = \"\"");
        let faults = load_beside(&[("mine.toml", &text)])
            .unwrap_err()
            .to_string();
        assert!(
            faults.contains(
                "left-to-libc.realocarray: no such function; did you mean `reallocarray`?"
            ),
            "{faults}"
        );
        assert!(
            faults.contains("left-to-libc.valloc: no reason given"),
            "{faults}"
        );
    }
}
