//! Builds every allocator of the catalogue and holds each library against its entry; then plants faults in recipes and asks
//! that the build tells them. The first run compiles for some two minutes, later ones use the cache.

use heapmark::build::{self, Built, State, check, inspect};
use heapmark::catalog::Allocator;
use heapmark::catalog::allocator::{Purge, Recipe, Source, Unit};
use heapmark::catalog::allocators;
use indicatif::{MultiProgress, ProgressDrawTarget};
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Allocator>> = LazyLock::new(|| allocators::load_with(None).unwrap());

fn build(selected: &[&Allocator]) -> Vec<Built> {
    let hidden = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
    build::build(selected, &ALL, 2, &hidden)
}

/// Everything that can be made ready here: built, or found on the system. Built once for all tests.
static READY: LazyLock<Vec<(&Allocator, build::Library)>> = LazyLock::new(|| {
    let selected: Vec<&Allocator> = ALL.iter().collect();
    let mut ready = Vec::new();
    for (allocator, built) in selected.iter().zip(build(&selected)) {
        assert_eq!(allocator.name, built.name);
        match (built.result, build::state(allocator, &ALL)) {
            (Ok(library), State::Ready(seen)) => {
                assert_eq!(library, seen, "{}: build and state disagree", allocator.name);
                ready.push((*allocator, library));
            }
            (Err(_), State::Absent { why, line }) => {
                eprintln!("{} is absent: {why}; {line}", allocator.name);
                assert!(matches!(allocator.source, Source::System { .. }));
            }
            (result, state) => panic!("{}: {result:?}, {state:?}", allocator.name),
        }
    }
    ready
});

fn find(name: &str) -> &'static Allocator {
    ALL.iter().find(|allocator| allocator.name == name).unwrap()
}

#[test]
fn every_library_defines_what_its_entry_says() {
    for (allocator, library) in READY.iter().filter(|(allocator, _)| allocator.name != "null") {
        let faults = check::completeness(allocator, &library.exports);
        assert!(faults.is_empty(), "{}: {}", allocator.name, faults.join("\n"));
    }
}

#[test]
fn libraries_of_ours_export_nothing_else() {
    for (allocator, library) in READY.iter() {
        if let Some(recipe) = &allocator.build {
            let inspection = inspect(&library.files[0]).unwrap();
            assert_eq!(check::purity(recipe, &inspection), Vec::<String>::new(), "{}", allocator.name);
            assert_eq!(inspection.soname, format!("lib{}.so", allocator.name));
            assert_eq!(inspection.build_id.len(), 40, "{}", allocator.name);
            assert!(!inspection.needed.iter().any(|name| name.contains("stdc++")), "{}", allocator.name);
        }
    }
}

/// Whether a library carries the part of a static libstdc++ that finds a thread's current exception, by a call.
fn throws(path: &Path) -> bool {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(data.as_slice()).unwrap();
    file.symbols().any(|symbol| symbol.name() == Ok("__cxa_get_globals") && symbol.is_definition())
}

#[test]
fn libraries_of_ours_have_initial_exec_tls() {
    let mut seen = Vec::new();
    for (allocator, library) in READY.iter().filter(|(allocator, _)| allocator.build.is_some()) {
        // The objects of those that throw were checked one by one as they were compiled.
        if !throws(&library.files[0]) {
            let how = inspect::dynamic_tls(&library.files[0]).unwrap();
            assert_eq!(how, None, "{}", allocator.name);
            seen.push(allocator.name.as_str());
        }
    }
    for name in ["rpmalloc", "dlmalloc", "scudo"] {
        assert!(seen.contains(&name), "{name} was not looked at");
    }
}

#[test]
fn purge_and_version_name_functions_of_the_library() {
    for (allocator, library) in READY.iter().filter(|(_, library)| !library.files.is_empty()) {
        let mut names = BTreeSet::new();
        for file in &library.files {
            let inspection = inspect::inspect_any(file).unwrap();
            names.extend(inspection.exports);
            names.extend(inspection.others);
        }
        if let Some(Purge::Call { symbol, .. }) = &allocator.purge {
            assert!(names.contains(symbol), "{}: purge {symbol}", allocator.name);
        }
        // Ours hides what others of its family export.
        for name in allocator.known_by.iter().filter(|_| allocator.family != "tcmalloc") {
            assert!(names.contains(name), "{}: known by {name}", allocator.name);
        }
        if let Some(probe) = &allocator.version {
            assert!(names.contains(&probe.symbol), "{}: version {}", allocator.name, probe.symbol);
        }
    }
}

#[test]
fn every_library_serves_a_program() {
    // isoalloc is listed as breaking python.
    for (allocator, library) in READY.iter().filter(|(a, l)| !l.files.is_empty() && a.name != "isoalloc") {
        let preload: Vec<_> = library.files.iter().map(|file| file.to_str().unwrap()).collect();
        for command in ["ls /", "python3 -c 'import json; assert len(json.dumps(list(range(10**5)))) > 10**5'"] {
            let output = Command::new("sh")
                .args(["-c", &format!("exec {command}")])
                .env("LD_PRELOAD", preload.join(":"))
                .envs(&allocator.environment)
                .output()
                .unwrap();
            let words = String::from_utf8_lossy(&output.stderr);
            let no_python = output.status.code() == Some(127);
            assert!(output.status.success() || no_python, "{}: {command}: {words}", allocator.name);
        }
    }
}

#[test]
fn variants_share_one_library() {
    let files = |name: &str| &READY.iter().find(|(a, _)| a.name == name).unwrap().1.files;
    assert_eq!(files("jemalloc-decay0"), files("jemalloc"));
    assert_ne!(files("hardened_malloc"), files("hardened_malloc-light"));
    assert!(files("glibc-arena1").is_empty());
}

/// rpmalloc under another name, compiled with this definition.
fn rpmalloc_with(name: &str, define: (&str, &str)) -> Allocator {
    let mut allocator = find("rpmalloc").clone();
    allocator.name = name.into();
    let recipe = allocator.build.as_mut().unwrap();
    recipe.define.insert(define.0.into(), define.1.into());
    allocator
}

/// Removes everything that a planted allocator left in the cache.
fn forget(name: &str) {
    let (_, library) = READY.iter().find(|(allocator, _)| allocator.build.is_some()).unwrap();
    let libraries = library.files[0].ancestors().nth(2).unwrap();
    for entry in std::fs::read_dir(libraries).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().trim_start_matches('.').starts_with(name) {
            let path = entry.path();
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }
}

#[test]
fn a_failing_build_tells_its_step_and_stops_no_other() {
    let bad = rpmalloc_with("planted-bad", ("rpfree", "1+"));
    let good = rpmalloc_with("planted-good", ("PLANTED", "1"));
    let first = build(&[&bad, &good]);
    let error = format!("{:#}", first[0].result.as_ref().unwrap_err());
    for told in ["building planted-bad", "compiling rpmalloc/rpmalloc/rpmalloc.c failed", "error:", ".log"] {
        assert!(error.contains(told), "missing {told:?} in {error}");
    }
    assert!(matches!(build::state(&bad, &ALL), State::NotBuilt { line } if line == "heapmark build planted-bad"));

    let library = first[1].result.as_ref().unwrap();
    assert!(!first[1].cached);
    let second = build(&[&good]);
    assert!(second[0].cached);
    assert_eq!(second[0].result.as_ref().unwrap(), library);

    let other = rpmalloc_with("planted-good", ("PLANTED", "2"));
    let third = build(&[&other]);
    let changed = third[0].result.as_ref().unwrap();
    assert_ne!(changed.files, library.files, "a changed definition must change the library's place");
    forget("planted-bad");
    forget("planted-good");
}

#[test]
fn a_library_that_is_not_what_its_entry_says_is_not_kept() {
    let mut liar = rpmalloc_with("planted-liar", ("PLANTED", "3"));
    liar.leaves.insert("valloc".into(), "a lie".into());
    liar.build.as_mut().unwrap().exports.clear();
    let error = format!("{:#}", build(&[&liar])[0].result.as_ref().unwrap_err());
    assert!(error.contains("it defines valloc, which `leaves` denies"), "{error}");
    assert!(matches!(build::state(&liar, &ALL), State::NotBuilt { .. }));

    let mut slow = rpmalloc_with("planted-slow-tls", ("PLANTED", "4"));
    slow.build.as_mut().unwrap().flags.push("-DTLS_MODEL=".into());
    slow.build.as_mut().unwrap().flags.push("-ftls-model=global-dynamic".into());
    // rpmalloc sets the model itself; take that away to see the check fire.
    slow.build.as_mut().unwrap().flags.push("-Dtls_model(x)=unused".into());
    let error = format!("{:#}", build(&[&slow])[0].result.as_ref().unwrap_err());
    assert!(error.contains("-ftls-model=initial-exec"), "{error}");
    forget("planted-liar");
    forget("planted-slow-tls");
}

#[test]
fn a_pattern_that_matches_no_file_is_told() {
    let mut allocator = find("rpmalloc").clone();
    allocator.name = "planted-missing".into();
    let unit = Unit { files: vec!["renamed/*.c".into()], ..Unit::default() };
    allocator.build = Some(Recipe { compile: vec![unit], ..Recipe::default() });
    let error = format!("{:#}", build(&[&allocator])[0].result.as_ref().unwrap_err());
    assert!(error.contains("`renamed/*.c` matches no file"), "{error}");
    forget("planted-missing");
}

#[test]
fn what_the_system_lacks_says_what_brings_it() {
    let mut allocator = find("gperftools").clone();
    let source = Source::System { files: vec!["libno-such.so.9".into()], package: "libno-such9".into() };
    allocator.source = source;
    let State::Absent { why, line } = build::state(&allocator, &ALL) else { panic!("not absent") };
    assert!(why.contains("libno-such.so.9"), "{why}");
    assert_eq!(line, "apt-get install libno-such9");
}
