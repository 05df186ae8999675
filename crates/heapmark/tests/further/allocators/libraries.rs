//! Builds every allocator of the catalogue and holds each library against its entry; then plants faults in recipes and asks
//! that the build tells them. The first run compiles for a minute, later ones use the cache.

use heapmark::build::{self, Built, State, entry_faults, flags, inspect};
use heapmark::catalog::Allocator;
use heapmark::catalog::allocator::{Purge, Recipe, Source, Unit};
use heapmark::catalog::allocators;
use indicatif::{MultiProgress, ProgressDrawTarget};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Allocator>> = LazyLock::new(|| allocators::load_with(None).unwrap());

fn build(selected: &[&Allocator]) -> Vec<Built> {
    let hidden = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
    build::build(selected, &ALL, 2, &hidden)
}

type Ready = Vec<(&'static Allocator, build::Library)>;

/// TCMalloc compiles for over two minutes of CPU time, more than all others together; these two hardened libraries for another
/// half. mimalloc2's is a mode that is compiled in, too.
fn takes_long(allocator: &Allocator) -> bool {
    let is_one_of_many = ["mimalloc3-secure", "snmalloc-checks"].contains(&&*allocator.name);
    allocator.family == "tcmalloc" || is_one_of_many
}

/// Everything else that can be made ready here. Built once for all tests.
static READY: LazyLock<Ready> = LazyLock::new(|| ready(|allocator| !takes_long(allocator)));

/// Those that can be made ready here: built, or found on the system.
fn ready(wanted: fn(&Allocator) -> bool) -> Ready {
    let selected: Vec<&Allocator> = ALL.iter().filter(|one| wanted(one)).collect();
    let mut ready = Vec::new();
    for (allocator, built) in selected.iter().zip(build(&selected)) {
        assert_eq!(allocator.name, built.name);
        match (built.result, build::state(allocator, &ALL)) {
            (Ok(library), State::Ready(seen)) => {
                assert_eq!(
                    library, seen,
                    "{}: build and state disagree",
                    allocator.name
                );
                ready.push((*allocator, library));
            }
            (Err(_), State::Absent { why, line }) => {
                eprintln!("{} is absent: {why}; {line}", allocator.name);
                let may_be = matches!(
                    allocator.source,
                    Source::System { .. } | Source::Wheel { .. }
                );
                assert!(may_be, "{}", allocator.name);
            }
            (result, state) => panic!("{}: {result:?}, {state:?}", allocator.name),
        }
    }
    ready
}

/// What is asked of each library.
const ASKED: [fn(&Ready); 8] = [
    defines_what_its_entry_says,
    exports_nothing_else,
    has_initial_exec_tls,
    has_the_functions_that_purge_and_version_name,
    serves_a_program,
    was_built_with_the_flags_of_its_entry,
    is_of_the_release_that_its_entry_says,
    has_the_modes_that_names_say,
];

#[test]
#[ignore = "make test-all"]
fn what_is_asked_of_each_library_holds_for_those_that_compile_for_long() {
    let all = ready(|_| true);
    assert!(all.len() > READY.len());
    for asked in ASKED {
        asked(&all);
    }
}

fn find(name: &str) -> &'static Allocator {
    ALL.iter().find(|allocator| allocator.name == name).unwrap()
}

#[test]
fn every_library_defines_what_its_entry_says() {
    defines_what_its_entry_says(&READY);
}

fn defines_what_its_entry_says(ready: &Ready) {
    for (allocator, library) in ready
        .iter()
        .filter(|(allocator, _)| allocator.name != "null")
    {
        let faults = entry_faults::completeness(allocator, &library.exports);
        assert!(
            faults.is_empty(),
            "{}: {}",
            allocator.name,
            faults.join("\n")
        );
    }
}

#[test]
fn libraries_of_ours_export_nothing_else() {
    exports_nothing_else(&READY);
}

fn exports_nothing_else(ready: &Ready) {
    for (allocator, library) in ready {
        if let Some(recipe) = &allocator.build {
            let inspection = inspect(&library.files[0]).unwrap();
            assert_eq!(
                entry_faults::purity(recipe, &inspection),
                Vec::<String>::new(),
                "{}",
                allocator.name
            );
            assert_eq!(inspection.soname, format!("lib{}.so", allocator.name));
            assert_eq!(inspection.build_id.len(), 40, "{}", allocator.name);
            assert!(
                !inspection.needed.iter().any(|name| name.contains("stdc++")),
                "{}",
                allocator.name
            );
        }
    }
}

/// Whether a library carries the part of a static libstdc++ that finds a thread's current exception, by a call.
fn throws(path: &Path) -> bool {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(data.as_slice()).unwrap();
    file.symbols()
        .any(|symbol| symbol.name() == Ok("__cxa_get_globals") && symbol.is_definition())
}

#[test]
fn libraries_of_ours_have_initial_exec_tls() {
    has_initial_exec_tls(&READY);
}

fn has_initial_exec_tls(ready: &Ready) {
    let mut seen = Vec::new();
    for (allocator, library) in ready
        .iter()
        .filter(|(allocator, _)| allocator.build.is_some())
    {
        // The objects of those that throw were checked one by one as they were compiled.
        if !throws(&library.files[0]) {
            let how = inspect::dynamic_tls(&library.files[0]).unwrap();
            assert_eq!(how, None, "{}", allocator.name);
            seen.push(allocator.name.as_str());
        }
    }
    for name in ["rpmalloc", "dlmalloc", "scudo-2021"] {
        assert!(seen.contains(&name), "{name} was not looked at");
    }
}

#[test]
fn purge_and_version_name_functions_of_the_library() {
    has_the_functions_that_purge_and_version_name(&READY);
}

fn has_the_functions_that_purge_and_version_name(ready: &Ready) {
    for (allocator, library) in ready
        .iter()
        .filter(|(_, library)| !library.files.is_empty())
    {
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
        for name in allocator
            .known_by
            .iter()
            .filter(|_| allocator.family != "tcmalloc")
        {
            assert!(names.contains(name), "{}: known by {name}", allocator.name);
        }
        if let Some(probe) = &allocator.version {
            assert!(
                names.contains(&probe.symbol),
                "{}: version {}",
                allocator.name,
                probe.symbol
            );
        }
    }
}

#[test]
fn every_library_serves_a_program() {
    serves_a_program(&READY);
}

fn serves_a_program(ready: &Ready) {
    // isoalloc is listed as breaking python.
    for (allocator, library) in ready
        .iter()
        .filter(|(a, l)| !l.files.is_empty() && a.name != "isoalloc")
    {
        let preload: Vec<_> = library
            .files
            .iter()
            .map(|file| file.to_str().unwrap())
            .collect();
        for command in [
            "ls /",
            "python3 -c 'import json; assert len(json.dumps(list(range(10**5)))) > 10**5'",
        ] {
            let output = Command::new("sh")
                .args(["-c", &format!("exec {command}")])
                .env("LD_PRELOAD", preload.join(":"))
                .envs(&allocator.environment)
                .output()
                .unwrap();
            let words = String::from_utf8_lossy(&output.stderr);
            let no_python = output.status.code() == Some(127);
            assert!(
                output.status.success() || no_python,
                "{}: {command}: {words}",
                allocator.name
            );
        }
    }
}

/// Whether a line that the compiler wrote has a flag, and no later one of its kind.
fn has(line: &[String], flag: &str) -> bool {
    // What was left to the link is told so.
    if flag == "-flto" {
        return line.iter().any(|told| told == "-fltrans");
    }
    let last = line
        .iter()
        .rfind(|told| flags::kind(told) == flags::kind(flag));
    last.is_some_and(|told| {
        told == flag
            || told
                .strip_prefix(flag)
                .is_some_and(|rest| rest.starts_with('='))
    })
}

/// The flags that the compiler wrote into a library: one list for each compiled file, or for several files with the same
/// flags.
fn recorded_flags(path: &Path) -> Vec<Vec<String>> {
    let data = std::fs::read(path).unwrap();
    let file = object::File::parse(data.as_slice()).unwrap();
    let section = file.section_by_name(".GCC.command.line");
    let data = section.and_then(|section| section.data().ok());
    let lines = data.unwrap_or_default().split(|byte| *byte == 0);
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let line = String::from_utf8_lossy(line);
            line.split_whitespace().map(String::from).collect()
        })
        .collect()
}

/// Flags of an entry that the compiler did not see: a flag of all files in each of them, one of some files in any.
fn flags_that_lack(allocator: &Allocator, library: &build::Library) -> Vec<String> {
    let lines = recorded_flags(&library.files[0]);
    assert!(
        !lines.is_empty(),
        "{}: no flags are written into {:?}",
        allocator.name,
        library.files
    );
    let recipe = allocator.build.as_ref().unwrap();
    // Compilers write down no definitions, and of these nothing shows in code.
    let silent = [
        "-pthread",
        "-frecord-gcc-switches",
        "-ffat-lto-objects",
        "-fpermissive",
    ];
    let is_told = |flag: &&str| {
        ["-O", "-f", "-m"]
            .iter()
            .any(|start| flag.starts_with(start))
            && !silent.contains(flag)
    };
    let of_recipe: Vec<&str> = recipe.flags_here().map(String::as_str).collect();
    let of_units: Vec<&str> = recipe
        .compile
        .iter()
        .flat_map(Unit::flags_here)
        .map(String::as_str)
        .collect();
    let replaced = |flag: &str| {
        of_recipe
            .iter()
            .any(|later| flags::kind(later) == flags::kind(flag))
    };
    let common: Vec<&str> = flags::for_all().collect();
    let of_all = common
        .into_iter()
        .filter(|flag| !replaced(flag))
        .chain(of_recipe.iter().copied());
    let optimised_at_the_link = of_recipe.contains(&"-flto");
    let lacks = |flag: &&str| !lines.iter().all(|line| has(line, flag));
    let lacking = of_all
        .filter(is_told)
        .filter(|flag| !(optimised_at_the_link && flag.starts_with("-fno-builtin")));
    let lacking = lacking.filter(lacks);
    let nowhere = of_units
        .into_iter()
        .filter(is_told)
        .filter(|flag| !lines.iter().any(|line| has(line, flag)));
    lacking.chain(nowhere).map(String::from).collect()
}

#[test]
fn each_library_was_built_with_the_flags_of_its_entry_and_one_that_was_not_is_found() {
    was_built_with_the_flags_of_its_entry(&READY);
}

fn was_built_with_the_flags_of_its_entry(ready: &Ready) {
    for (allocator, library) in ready
        .iter()
        .filter(|(allocator, _)| allocator.build.is_some())
    {
        assert_eq!(
            flags_that_lack(allocator, library),
            [""; 0],
            "{}",
            allocator.name
        );
    }
    let (rpmalloc, library) = ready
        .iter()
        .find(|(allocator, _)| allocator.name == "rpmalloc")
        .unwrap();
    for planted in ["-O2", "-fno-inline", "-march=native"] {
        let mut other = (*rpmalloc).clone();
        other.build.as_mut().unwrap().flags.push(planted.into());
        assert_eq!(flags_that_lack(&other, library), [planted]);
    }
}

#[test]
fn an_instruction_that_is_asked_for_at_run_time_is_compiled_into_one_file_only() {
    let (_, library) = READY
        .iter()
        .find(|(allocator, _)| allocator.name == "scudo-2021")
        .unwrap();
    let flag = if cfg!(target_arch = "x86_64") {
        "-msse4.2"
    } else {
        "-march=armv8-a+crc"
    };
    let lines = recorded_flags(&library.files[0]);
    assert_eq!(
        lines.iter().filter(|line| has(line, flag)).count(),
        1,
        "{lines:?}"
    );
    assert!(lines.len() > 1, "the other files were compiled otherwise");
}

#[test]
fn a_difference_from_upstreams_flags_without_a_reason_is_found() {
    let faults = |allocator: &Allocator| -> Vec<String> {
        let flags = flags::flags(allocator).unwrap();
        let unexplained = flags
            .differences
            .iter()
            .filter(|difference| difference.reason.is_none());
        let unexplained =
            unexplained.map(|difference| format!("{} has no reason", difference.flag));
        unexplained
            .chain(
                flags
                    .needless
                    .iter()
                    .map(|pattern| format!("{pattern} fits nothing")),
            )
            .collect()
    };
    for allocator in ALL.iter().filter(|allocator| allocator.build.is_some()) {
        assert!(
            !allocator.upstream_flags.is_empty(),
            "{}: upstream-flags",
            allocator.name
        );
        assert_eq!(faults(allocator), [""; 0], "{}", allocator.name);
    }
    for allocator in ALL.iter().filter(|allocator| allocator.name != "null") {
        assert!(
            !allocator.sources.years().is_empty(),
            "{}: of which year is it?",
            allocator.name
        );
    }
    let planted = |change: &dyn Fn(&mut Allocator)| {
        let mut allocator = find("rpmalloc").clone();
        change(&mut allocator);
        faults(&allocator)
    };
    let ours = |flag: &str| planted(&|it| it.build.as_mut().unwrap().flags.push(flag.into()));
    assert_eq!(ours("-fno-inline"), ["-fno-inline has no reason"]);
    assert_eq!(ours("-O2"), ["-O3 has no reason", "-O2 has no reason"]);
    assert_eq!(
        planted(&|it| it.build.as_mut().unwrap().flags.clear()).len(),
        4,
        "what upstream has and we do not"
    );
    assert_eq!(
        planted(&|it| drop(it.differences.insert("-fPIC".into(), "x".into()))),
        ["-fPIC fits nothing"]
    );
}

#[test]
fn upstream_flags_stand_in_the_lines_that_entries_name() {
    let mut seen = 0;
    for allocator in ALL.iter() {
        let Source::Crate { name, .. } = &allocator.source else {
            continue;
        };
        let folder = build::sources_of(&build::pin(name, None).unwrap()).unwrap();
        let of_processors = allocator.upstream_flags_for.values().flatten();
        for (place, flags) in allocator.upstream_flags.iter().chain(of_processors) {
            // What the crate leaves out has an address that does not change.
            if place.starts_with("https://github.com/") {
                assert!(place.contains("/blob/"), "{}: {place}", allocator.name);
                continue;
            }
            let (file, number) = place.rsplit_once(':').unwrap();
            let text = std::fs::read_to_string(folder.join(file))
                .unwrap_or_else(|why| panic!("{place}: {why}"));
            let line = text
                .lines()
                .nth(number.parse::<usize>().unwrap() - 1)
                .unwrap();
            for flag in flags {
                // What CMake itself means by it.
                let release =
                    line.contains("\"Release\"") && ["-O3", "-DNDEBUG"].contains(&flag.as_str());
                assert!(
                    line.contains(flag.as_str()) || release,
                    "{}: {place}: no {flag} in {line}",
                    allocator.name
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn what_is_built_or_fetched_is_of_the_release_that_its_entry_says() {
    is_of_the_release_that_its_entry_says(&READY);
}

fn is_of_the_release_that_its_entry_says(ready: &Ready) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    let output = command
        .args(["list", "allocators", "--format", "json"])
        .output();
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let ours = ready.iter().filter(|(one, _)| one.source.is_built());
    let mut seen = 0;
    for (allocator, _) in ours {
        let mut listed = listed.iter();
        let entry = listed.find(|entry| entry["name"] == allocator.name);
        let said = allocator.release(None);
        assert_eq!(entry.unwrap()["release"], said, "{}", allocator.name);
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
#[ignore = "make test-all"]
fn a_row_for_per_cpu_caches_is_made_only_where_they_are_on() {
    ready(|allocator| allocator.family == "tcmalloc");
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("heapmark/allocators");
    std::fs::create_dir_all(&folder).unwrap();
    // As tcmalloc-percpu, but for the setting that leaves rseq to the allocator.
    let planted = r#"
        name = "planted"
        family = "tcmalloc"
        about = "says that it has per-CPU caches"
        tier = "user"
        source = { kind = "same-as", name = "tcmalloc" }
        expects = "per-CPU caches"
    "#;
    std::fs::write(folder.join("planted.toml"), planted).unwrap();
    let heapmark = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        command
            .args(words.split(' '))
            .env("XDG_CONFIG_HOME", place.path())
            .current_dir(place.path());
        let output = command.output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let listed: Vec<serde_json::Value> =
        serde_json::from_str(&heapmark("list allocators --format json")[0]).unwrap();
    let told = |name: &str, key: &str| {
        let entry = listed.iter().find(|entry| entry["name"] == name).unwrap();
        entry[key].as_str().unwrap().to_owned()
    };
    let is_on = told("tcmalloc-percpu", "version") == "per-CPU caches";
    assert_eq!(told("tcmalloc-percpu", "state") == "ready", is_on);
    assert!(is_on || told("tcmalloc-percpu", "version") == "per-thread caches");
    // Since 2.35 glibc takes the area of rseq for itself, unless it is told not to.
    assert_eq!(told("tcmalloc", "version"), "per-thread caches");
    let why = "it works with per-thread caches here, and its row is for per-CPU caches";
    assert_eq!(
        (
            told("planted", "state").as_str(),
            told("planted", "why").as_str()
        ),
        ("absent", why)
    );
    for suite in ["quick", "default"] {
        let [plan, _] = heapmark(&format!("run {suite} --dry-run --cells"));
        assert!(
            plan.contains("/tcmalloc ") && plan.contains("/tcmalloc-percpu ") == is_on,
            "{suite}: {plan}"
        );
    }
    let run = "run -o run -a planted,tcmalloc-percpu,glibc -w churn -t 1 --target-ms 2 --blocks 1 --no-floor --no-aa-copy";
    assert!(heapmark(run)[1].contains(&format!("planted: absent: {why}")));
    let rows = heapmark("export run --to csv-rows");
    let is_ok = |name: &str| {
        let row = rows[0]
            .lines()
            .find(|line| line.split(',').any(|cell| cell == name));
        row.unwrap_or_else(|| panic!("no {name} in {rows:?}"))
            .split(',')
            .any(|cell| cell == "ok")
    };
    assert_eq!(
        (is_ok("planted"), is_ok("tcmalloc-percpu"), is_ok("glibc")),
        (false, is_on, true),
        "{rows:?}"
    );
}

#[test]
fn variants_share_one_library() {
    let files = |name: &str| &READY.iter().find(|(a, _)| a.name == name).unwrap().1.files;
    assert_eq!(files("jemalloc-decay0"), files("jemalloc"));
    assert_ne!(files("hardened_malloc"), files("hardened_malloc-light"));
    assert!(files("glibc-arena1").is_empty());
}

/// What each mode shows in `modes.c`, and its original does not.
const MODES: [(&str, &str, &str); 9] = [
    ("glibc-notcache", "glibc", "twice 0"),
    ("glibc-perturb", "glibc", "freed 55"),
    ("gperftools-debug", "gperftools", "freed cd"),
    ("jemalloc-guarded", "jemalloc", "past 11"),
    ("jemalloc-junk", "jemalloc", "freed 5a"),
    ("mimalloc2-secure", "mimalloc2", "order random"),
    ("mimalloc3-secure", "mimalloc3", "order random"),
    ("scudo-zero", "scudo", "used 00"),
    ("snmalloc-checks", "snmalloc", "order random"),
];

#[test]
fn a_mode_is_in_effect_where_its_name_says_so_and_only_there() {
    has_the_modes_that_names_say(&READY);
}

fn has_the_modes_that_names_say(ready: &Ready) {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("modes");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/further/allocators/modes.c");
    let compiled = Command::new("cc")
        .args(["-O1", "-w", "-fno-builtin"])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(compiled.unwrap().success());
    let shows = |name: &str| {
        let (allocator, library) = ready.iter().find(|(one, _)| one.name == name)?;
        let files = library.files.iter().map(|file| file.display().to_string());
        let preload = files.collect::<Vec<_>>().join(":");
        let mut run = Command::new(&program);
        run.env("LD_PRELOAD", preload).envs(&allocator.environment);
        Some(String::from_utf8(run.output().unwrap().stdout).unwrap())
    };
    let mut seen = 0;
    for (mode, original, fact) in MODES {
        if let (Some(own), Some(others)) = (shows(mode), shows(original)) {
            assert!(own.lines().any(|line| line == fact), "{mode}: {own}");
            assert!(
                !others.lines().any(|line| line == fact),
                "{original}: {others}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
    if let (Some(own), Some(others)) = (shows("scudo-quarantine"), shows("scudo")) {
        let until = |facts: &str| {
            let line = facts.lines().find_map(|line| line.strip_prefix("until "));
            line.unwrap().parse::<u32>().unwrap()
        };
        assert!(until(&own) > 10 * (until(&others) + 1), "{own}{others}");
    }
}

/// The name of a planted allocator: another suite may build its own in the same cache at the same
/// time.
fn own(name: &str) -> String {
    format!("by-{}-{name}", std::process::id())
}

/// rpmalloc under another name, compiled with this definition. Nothing runs it, so it is compiled in the least time.
fn rpmalloc_with(name: &str, define: (&str, &str)) -> Allocator {
    let mut allocator = find("rpmalloc").clone();
    allocator.name = own(name);
    let recipe = allocator.build.as_mut().unwrap();
    recipe.define.insert(define.0.into(), define.1.into());
    recipe.flags.push("-O0".into());
    allocator
}

/// Removes everything that a planted allocator left in the cache.
fn forget(name: &str) {
    let (_, library) = READY
        .iter()
        .find(|(allocator, _)| allocator.build.is_some())
        .unwrap();
    let libraries = library.files[0].ancestors().nth(2).unwrap();
    for entry in std::fs::read_dir(libraries).unwrap() {
        let entry = entry.unwrap();
        if entry
            .file_name()
            .to_string_lossy()
            .trim_start_matches('.')
            .starts_with(&own(name))
        {
            let path = entry.path();
            let _ = if path.is_dir() {
                std::fs::remove_dir_all(path)
            } else {
                std::fs::remove_file(path)
            };
        }
    }
}

#[test]
fn a_failing_build_tells_its_step_and_stops_no_other() {
    let bad = rpmalloc_with("planted-bad", ("rpfree", "1+"));
    let good = rpmalloc_with("planted-good", ("PLANTED", "1"));
    let first = build(&[&bad, &good]);
    let error = format!("{:#}", first[0].result.as_ref().unwrap_err());
    for told in [
        &format!("building {}", bad.name),
        "compiling rpmalloc/rpmalloc/rpmalloc.c failed",
        "error:",
        ".log",
    ] {
        assert!(error.contains(told), "missing {told:?} in {error}");
    }
    assert!(
        matches!(build::state(&bad, &ALL), State::NotBuilt { line } if line == format!("heapmark build {}", bad.name))
    );

    let library = first[1].result.as_ref().unwrap();
    assert!(!first[1].cached);
    let second = build(&[&good]);
    assert!(second[0].cached);
    assert_eq!(second[0].result.as_ref().unwrap(), library);

    let other = rpmalloc_with("planted-good", ("PLANTED", "2"));
    let third = build(&[&other]);
    let changed = third[0].result.as_ref().unwrap();
    assert_ne!(
        changed.files, library.files,
        "a changed definition must change the library's place"
    );
    forget("planted-bad");
    forget("planted-good");
}

#[test]
fn a_library_that_is_not_what_its_entry_says_is_not_kept() {
    let mut liar = rpmalloc_with("planted-liar", ("PLANTED", "3"));
    liar.left_to_libc.insert("valloc".into(), "a lie".into());
    liar.build.as_mut().unwrap().exports.clear();
    let error = format!("{:#}", build(&[&liar])[0].result.as_ref().unwrap_err());
    assert!(
        error.contains("it defines valloc, which `left-to-libc` denies"),
        "{error}"
    );
    assert!(matches!(build::state(&liar, &ALL), State::NotBuilt { .. }));

    let mut slow = rpmalloc_with("planted-slow-tls", ("PLANTED", "4"));
    slow.build
        .as_mut()
        .unwrap()
        .flags
        .push("-DTLS_MODEL=".into());
    slow.build
        .as_mut()
        .unwrap()
        .flags
        .push("-ftls-model=global-dynamic".into());
    // rpmalloc sets the model itself; take that away to see the check fire.
    slow.build
        .as_mut()
        .unwrap()
        .flags
        .push("-Dtls_model(x)=unused".into());
    let error = format!("{:#}", build(&[&slow])[0].result.as_ref().unwrap_err());
    assert!(error.contains("-ftls-model=initial-exec"), "{error}");
    forget("planted-liar");
    forget("planted-slow-tls");
}

/// A folder that begins like this, in that one.
fn beginning(folder: &Path, start: &str) -> PathBuf {
    let mut entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap());
    entries
        .find(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .unwrap()
        .path()
}

#[test]
fn sources_that_were_changed_after_cargo_had_checked_them_are_not_compiled() {
    let unpacked = build::sources_of(&build::pin("rpmalloc-sys", None).unwrap()).unwrap();
    let (index, registry) = (
        unpacked.parent().unwrap(),
        unpacked.ancestors().nth(3).unwrap(),
    );
    let place = tempfile::tempdir().unwrap();
    // A registry of our own: the index as it is, the archives to be changed one by one, the sources of one crate.
    let own = place.path().join("cargo/registry");
    let name = index.file_name().unwrap();
    let (sources, archives) = (own.join("src").join(name), own.join("cache").join(name));
    [&sources, &archives]
        .into_iter()
        .for_each(|folder| std::fs::create_dir_all(folder).unwrap());
    std::os::unix::fs::symlink(registry.join("index"), own.join("index")).unwrap();
    for archive in std::fs::read_dir(registry.join("cache").join(name)).unwrap() {
        let archive = archive.unwrap();
        std::os::unix::fs::symlink(archive.path(), archives.join(archive.file_name())).unwrap();
    }
    let copied = Command::new("cp")
        .arg("-r")
        .arg(&unpacked)
        .arg(&sources)
        .status()
        .unwrap();
    assert!(copied.success());
    let changed = sources
        .join(unpacked.file_name().unwrap())
        .join("rpmalloc/rpmalloc/rpmalloc.c");
    std::fs::write(changed, "#error planted\n").unwrap();
    let build = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        command
            .args(["build", "rpmalloc"])
            .current_dir(place.path());
        command
            .env("CARGO_HOME", place.path().join("cargo"))
            .env("LD_RUN_PATH", "/planted/folder")
            .env("HEAPMARK_CACHE", place.path().join("cache"));
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, said) = build();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("LD_RUN_PATH: not taken"), "{said}");

    let folder = beginning(&place.path().join("cache/libraries"), "rpmalloc-");
    let built = std::fs::read(folder.join("librpmalloc.so")).unwrap();
    assert!(!built.windows(8).any(|word| word == b"/planted"));
    std::fs::remove_dir_all(folder).unwrap();
    let archive = archives
        .join(unpacked.file_name().unwrap())
        .with_added_extension("crate");
    let mut bytes = std::fs::read(&archive).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&archive).unwrap();
    std::fs::write(&archive, bytes).unwrap();
    let (code, said) = build();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("is not the archive that crates/sources/Cargo.lock pins: delete it"),
        "{said}"
    );
}

#[test]
fn sources_that_cannot_be_fetched_are_said_in_one_line_that_names_no_empty_log() {
    let place = tempfile::tempdir().unwrap();
    let cargo = place.path().join("cargo");
    let words = "error: no crate\n\nCaused by:\n  no index\n\nCaused by:\n  no such host";
    std::fs::write(&cargo, format!("#!/bin/sh\necho '{words}' >&2\nexit 101\n")).unwrap();
    std::fs::set_permissions(&cargo, Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command.args(["build", "rpmalloc"]).env("CARGO", cargo);
    command.env("HEAPMARK_CACHE", place.path().join("cache"));
    let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let told = "cargo fetch failed: error: no crate: no such host (is there a network?)";
    assert!(said.contains(told), "{said}");
    assert!(!said.contains("the whole log is in"), "{said}");
}

#[test]
fn a_library_in_the_cache_of_which_a_byte_has_changed_is_built_again() {
    let planted = rpmalloc_with("planted-flipped", ("PLANTED", "5"));
    let library = build(&[&planted]).remove(0).result.unwrap();
    let file = &library.files[0];
    let whole = std::fs::read(file).unwrap();
    let mut bytes = whole.clone();
    // Of the code, where no reader of ELF files looks.
    let read = object::File::parse(whole.as_slice()).unwrap();
    let code = read.section_by_name(".text").unwrap();
    let (begin, length) = code.file_range().unwrap();
    bytes[(begin + length / 2) as usize] ^= 1;
    std::fs::write(file, &bytes).unwrap();
    inspect(file).unwrap();
    assert!(matches!(
        build::state(&planted, &ALL),
        State::NotBuilt { .. }
    ));
    let again = build(&[&planted]).remove(0);
    assert!(!again.cached && again.result.unwrap() == library);
    assert!(std::fs::read(file).unwrap() == whole);
    forget("planted-flipped");
}

#[test]
fn flags_of_the_callers_get_into_no_library() {
    let (allocator, _) = READY
        .iter()
        .find(|(allocator, _)| allocator.build.is_some())
        .unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command
        .args(["list", "allocators", "--format", "json"])
        .env("CFLAGS", "-O0 -DPLANTED")
        .env("TARGET_CXXFLAGS", "-O0");
    let listed: Vec<serde_json::Value> =
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let state = &listed
        .iter()
        .find(|entry| entry["name"] == *allocator.name)
        .unwrap()["state"];
    // With other flags it would be another library, which is not built.
    assert_eq!(state, "ready");
    let mut other = (*allocator).clone();
    other.name = own("planted-flags");
    assert!(matches!(build::state(&other, &ALL), State::NotBuilt { .. }));
}

#[test]
fn a_pattern_that_matches_no_file_is_told() {
    let mut allocator = find("rpmalloc").clone();
    allocator.name = own("planted-missing");
    let unit = Unit {
        files: vec!["renamed/*.c".into()],
        ..Unit::default()
    };
    allocator.build = Some(Recipe {
        compile: vec![unit],
        ..Recipe::default()
    });
    let error = format!("{:#}", build(&[&allocator])[0].result.as_ref().unwrap_err());
    assert!(error.contains("`renamed/*.c` matches no file"), "{error}");
    forget("planted-missing");
}

#[test]
fn what_the_system_lacks_says_what_brings_it() {
    let mut allocator = find("gperftools").clone();
    let source = Source::System {
        files: vec!["libno-such.so.9".into()],
        package: "libno-such9".into(),
    };
    allocator.source = source;
    let State::Absent { why, line } = build::state(&allocator, &ALL) else {
        panic!("not absent")
    };
    assert!(why.contains("libno-such.so.9"), "{why}");
    assert_eq!(line, "apt-get install libno-such9");
}
