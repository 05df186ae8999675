//! `heapmark check` through the built binary: each check finds what is planted in its own file, its C program shows the same without
//! heapmark, and ends of every kind are told apart.

use crate::support::{Place, repository, word};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

/// glibc's malloc is wrong here on some systems (aligned_alloc accepts what is no alignment before 2.38).
const OF_GLIBC: [&str; 1] = ["aligned-alloc-args"];
/// What this C library does not have, and another C library.
const ABSENT: [&str; 3] = ["free-sized", "libc-other", "sized-grid"];
/// Lines of a program that can be read in one go.
const LONGEST: usize = 70;
/// Their planted fault is a lock that is held for ever.
const HANGS: [&str; 4] = [
    "fork-matrix",
    "fork-signal",
    "fork-threads",
    "malloc-info-cancel",
];

/// Files of checks with a verdict, and those that standards leave open.
fn files() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let folders = ["checks", "checks/replacing"].map(|it| fs::read_dir(repository().join(it)));
    let files = folders.into_iter().flat_map(Result::unwrap);
    let files = files.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| matches!(ending(file), "c" | "cc"))
        .collect();
    files.sort();
    let is_judged = |file: &PathBuf| {
        !fs::read_to_string(file)
            .unwrap()
            .contains("standing = \"observe\"")
    };
    files.into_iter().partition(is_judged)
}

fn ending(file: &Path) -> &str {
    file.extension().map_or("", |it| it.to_str().unwrap())
}

/// The compiler of a source, and what it needs.
fn compiler(source: &Path) -> Command {
    let (name, own) = match ending(source) {
        "cc" => ("c++", "-fcheck-new"),
        _ => ("cc", "-Werror=implicit-function-declaration"),
    };
    let mut compiler = Command::new(name);
    compiler
        .args(["-w", "-fno-builtin", "-pthread", "-I"])
        .arg(repository().join("checks"))
        .arg(own);
    compiler
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

const FLAGS: [&str; 4] = ["-D_GNU_SOURCE", "-DPLANTED", "-O1", "-fPIC"];

/// What an allocator does right, for all libraries that do one thing wrong.
static RIGHT: LazyLock<(Place, PathBuf)> = LazyLock::new(|| {
    let place = Place::new();
    let object = place.at("planted.o");
    let harness = repository().join("checks/harness/planted.c");
    let mut cc = compiler(&harness);
    cc.args(FLAGS)
        .arg("-c")
        .arg(&harness)
        .arg("-o")
        .arg(&object);
    assert!(cc.status().unwrap().success());
    (place, object)
});

/// A library of this source, and of an allocator that does right what it leaves open.
fn compiled(place: &Place, name: &str, source: &Path) -> PathBuf {
    let library = place.at(&format!("lib{name}.so"));
    let linked = compiler(source)
        .args(FLAGS)
        .args(["-shared", "-Wl,--unresolved-symbols=ignore-all"])
        .args([source, &RIGHT.1])
        .arg("-o")
        .arg(&library)
        .status();
    assert!(linked.unwrap().success(), "{name}");
    library
}

/// The library that breaks what this check is about.
fn planted(place: &Place, file: &Path) -> PathBuf {
    compiled(place, &name_of(file), file)
}

/// What `-a` has of such a library.
fn as_allocator(library: &Path) -> String {
    format!("planted={}", library.display())
}

/// Makes checks of one allocator, which must end well; the JSON.
fn checked(place: &Place, allocator: &str, output: &str, flags: &[&str]) -> Value {
    let words = [
        "check", "-a", allocator, "--format", "json", "--output", output,
    ];
    let end = place.run(&[&words[..], flags].concat());
    assert_eq!(end.code, Some(0), "{output}: {}", end.stderr);
    serde_json::from_str(&end.stdout).unwrap()
}

fn result<'a>(read: &'a Value, check: &str) -> &'a Value {
    let results = read["allocators"][0]["results"].as_array().unwrap();
    results.iter().find(|it| it["check"] == check).unwrap()
}

#[test]
fn each_check_finds_its_planted_fault() {
    let place = Place::new();
    in_turn(&judged_in("quick"), |file| {
        finds_its_planted_fault(&place, file)
    });
}

/// Every fourth; `make test-all` takes each.
#[test]
fn a_printed_program_finds_the_planted_fault_of_its_check() {
    let place = Place::new();
    let some: Vec<PathBuf> = judged_in("quick").into_iter().step_by(4).collect();
    in_turn(&some, |file| its_program_finds_it(&place, file));
}

#[test]
#[ignore = "make test-all"]
fn so_do_all_programs_and_the_checks_of_the_full_preset() {
    let place = Place::new();
    in_turn(&judged_in("quick"), |file| {
        its_program_finds_it(&place, file)
    });
    in_turn(&judged_in("full"), |file| {
        finds_its_planted_fault(&place, file);
        its_program_finds_it(&place, file);
    });
}

/// Whether only the full preset has the check.
fn is_full(file: &Path) -> bool {
    fs::read_to_string(file).unwrap().contains("full = true")
}

/// Checks that only this preset has.
fn judged_in(preset: &str) -> Vec<PathBuf> {
    let (mut judged, open) = files();
    assert!(judged.len() > 30 && !open.is_empty());
    judged.retain(|file| is_full(file) == (preset == "full"));
    judged
}

fn in_turn(files: &[PathBuf], test: impl Fn(&Path) + Sync) {
    let next = Mutex::new(files.iter());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(file) = next.lock().unwrap().next() else {
                        break;
                    };
                    test(file);
                }
            });
        }
    });
}

fn finds_its_planted_fault(place: &Place, file: &Path) {
    let check = name_of(file);
    let library = compiled(place, &check, file);
    let hangs = HANGS.contains(&check.as_str());
    let timeout = if hangs { "1s" } else { "60s" };
    let output = format!("of-{check}");
    let flags = ["--only", &check, "--timeout", timeout];
    let read = checked(place, &as_allocator(&library), &output, &flags);
    let found = word(result(&read, &check), "verdict").to_owned();
    let expected = if hangs {
        &["hang"][..]
    } else {
        &["fail", "crash"]
    };
    assert!(
        expected.contains(&found.as_str()),
        "{check}: {found}: {read}"
    );
    if hangs {
        let times = result(&read, &check)["times"][0].as_u64();
        assert!(
            times <= Some(4),
            "{check}: each takes its whole time: {read}"
        );
    }
}

fn its_program_finds_it(place: &Place, file: &Path) {
    let check = name_of(file);
    let library = compiled(place, &check, file);
    let program = place.run(&["check", "--program", &check]).stdout;
    assert!(program.lines().count() <= LONGEST, "{check}: {program}");
    let source = place.at(&format!("{check}.{}", ending(file)));
    let binary = place.at(&check);
    fs::write(&source, program).unwrap();
    let made = compiler(&source)
        .arg(&source)
        .arg("-o")
        .arg(&binary)
        .status();
    assert!(made.unwrap().success(), "{check}");
    let code = |preload: &str, patience: &str| {
        let mut run = Command::new("timeout");
        run.arg(patience).arg(&binary).env("LD_PRELOAD", preload);
        run.output().unwrap().status.code()
    };
    if !OF_GLIBC.contains(&check.as_str()) {
        let expected = if ABSENT.contains(&check.as_str()) {
            77
        } else {
            0
        };
        let found = code("", "60");
        assert_eq!(found, Some(expected), "{check} under the C library");
    }
    let hangs = HANGS.contains(&check.as_str());
    let patience = if hangs { "1" } else { "60" };
    assert_ne!(
        code(library.to_str().unwrap(), patience),
        Some(0),
        "{check} as a program"
    );
}

/// Every fourth check; `make test-all` makes each.
#[test]
fn glibc_passes_and_what_is_left_open_has_values() {
    let (judged, open) = files();
    let quick = judged.iter().chain(&open).filter(|file| !is_full(file));
    let names: Vec<String> = quick.step_by(4).map(|file| name_of(file)).collect();
    assert!(names.len() > 20);
    glibc_passes("quick", &names.join(","), names.len());
}

#[test]
#[ignore = "make test-all"]
fn glibc_passes_each_preset() {
    let (judged, open) = files();
    let all = judged.len() + open.len();
    glibc_passes("quick", "conformance", all * 4 / 5);
    glibc_passes("full", "conformance", all);
}

fn glibc_passes(preset: &str, only: &str, least: usize) {
    let place = Place::new();
    let flags = ["--preset", preset, "--only", only, "--timeout", "60s"];
    let read = checked(&place, "glibc", "out", &flags);
    let results = read["allocators"][0]["results"].as_array().unwrap();
    let (judged, open) = files();
    let all = judged.len() + open.len();
    assert!((least..=all).contains(&results.len()), "{}", results.len());
    let is_made = |name: &String| results.iter().any(|it| it["check"] == **name);
    for file in judged.iter().map(|file| name_of(file)).filter(is_made) {
        let verdict = word(result(&read, &file), "verdict");
        assert!(
            verdict == "pass"
                || OF_GLIBC.contains(&file.as_str())
                || verdict == "unsupported" && ABSENT.contains(&file.as_str()),
            "{file}: {verdict}"
        );
    }
    for file in open.iter().map(|file| name_of(file)).filter(is_made) {
        let has_values = result(&read, &file)["notes"].is_array();
        assert!(has_values || ABSENT.contains(&file.as_str()), "{file}");
    }
    // The file that is kept is the same, and names what was checked.
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(place.at("out/check.json")).unwrap()).unwrap();
    assert_eq!(kept, read);
    for key in ["kernel", "cpu_model", "c_library"] {
        assert!(kept["machine"][key].is_string(), "{key}");
    }
}

#[test]
fn a_crash_an_exit_and_a_hang_are_told_apart_and_cost_one_cell() {
    let place = Place::new();
    for (name, body, expected) in [
        ("traps", "__builtin_trap();", Some(("crash", "SIGILL"))),
        ("exits", "_exit(9);", Some(("crash", "exit code 9"))),
        (
            "loops",
            "for (;;) pause();",
            Some(("hang", "not ended after 1")),
        ),
        // 1 s, or 10 s where others had the CPU in the first one.
        ("spins", "for (;;) {}", Some(("hang", "not ended after 1"))),
        // It may be ended with its parent, or later.
        ("kills-parent", "kill(getppid(), 9); pause();", None),
    ] {
        let source = place.at(&format!("{name}.c"));
        let code = format!(
            "#include <signal.h>\n#include <unistd.h>\nextern void *__libc_calloc(unsigned long, unsigned long);\n\
             void *calloc(unsigned long count, unsigned long size) {{ if (count == 2) {{ {body} }} return __libc_calloc(count, size); }}\n"
        );
        fs::write(&source, code).unwrap();
        let allocator = as_allocator(&compiled(&place, name, &source));
        let flags = ["--only", "calloc-overflow,free-null", "--timeout", "1s"];
        let read = checked(&place, &allocator, &format!("out-{name}"), &flags);
        let found = result(&read, "calloc-overflow");
        assert_ne!(word(found, "verdict"), "pass", "{found}");
        if let Some((verdict, why)) = expected {
            assert_eq!(word(found, "verdict"), verdict, "{name}: {found}");
            assert!(
                found["reasons"].to_string().contains(why),
                "{name}: {found}"
            );
        }
        assert_eq!(
            word(result(&read, "free-null"), "verdict"),
            "pass",
            "{name}"
        );
    }
}

#[test]
fn an_allocator_of_two_libraries_is_proven() {
    let place = Place::new();
    if !place.is_installed("tbbmalloc") {
        return;
    }
    let read = checked(&place, "tbbmalloc", "out", &["--only", "free-null"]);
    assert_eq!(
        word(result(&read, "free-null"), "verdict"),
        "pass",
        "{read}"
    );
}

#[test]
fn conditions_ask_for_a_standing_and_a_diff_names_what_changed() {
    let place = Place::new();
    let std = planted(&place, &repository().join("checks/free-errno.c"));
    let robust = planted(&place, &repository().join("checks/small-stack.c"));
    for (library, check, least, code) in [
        (&std, "free-errno", "std", 3),
        (&std, "no-overlap", "robust", 0),
        (&robust, "small-stack,free-null", "std", 0),
        (&robust, "small-stack", "robust", 3),
    ] {
        let own = as_allocator(library);
        let output = format!("out-{check}-{least}");
        let end = place.run(&[
            "check",
            "-a",
            &own,
            "--only",
            check,
            "--fail-on",
            least,
            "--output",
            &output,
        ]);
        assert_eq!(
            end.code,
            Some(code),
            "{check} {least}: {}{}",
            end.stdout,
            end.stderr
        );
    }
    let own = format!("old={}", std.display());
    let old = place.run(&[
        "check",
        "-a",
        &own,
        "--only",
        "free-errno",
        "--output",
        "old",
    ]);
    assert!(
        old.says("old: fail 3 of 3 times: free of 1 bytes set errno to 22"),
        "{}",
        old.stdout
    );
    place.run(&[
        "check",
        "-a",
        "glibc",
        "--only",
        "free-errno",
        "--output",
        "new",
    ]);
    // What repeats it does so in any folder.
    let kept = fs::read_to_string(place.at("old/check.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let again = word(result(&kept, "free-errno"), "again");
    let words = shlex::split(again).unwrap();
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let repeated = Place::new().run(&words);
    assert!(repeated.says("old: fail 3 of 3 times"), "{again}");
    let diff = place.run(&["check", "diff", "old", "new"]);
    let compared = "compared: 1 check of 1 allocator\n";
    let changed = format!("glibc free-errno: fail -> pass\n\n{compared}");
    assert_eq!(diff.stdout, changed);
    let same = place.run(&["check", "diff", "new", "new/check.json"]);
    let unchanged = format!("no check ended otherwise\n\n{compared}");
    assert_eq!(same.stdout, unchanged);
}

#[test]
fn what_cannot_be_checked_is_refused_in_a_line() {
    let place = Place::new();
    fs::create_dir(place.at("there")).unwrap();
    fs::write(place.at("other.json"), "{}").unwrap();
    for (words, why) in [
        (
            &["check", "--only", "calloc-overflov"][..],
            "no such check, and no such group (did you mean `calloc-overflow`?)",
        ),
        (
            &["check", "--program", "zero-sise"],
            "did you mean `zero-size`",
        ),
        (
            &[
                "check",
                "-a",
                "glibc",
                "--only",
                "free-null",
                "--output",
                "there",
            ],
            "there exists: choose another --output",
        ),
        (
            &["check", "--only", "double-free", "--fail-on", "robust"],
            "--fail-on: no check that --only names has such a standing",
        ),
        (
            &["check", "--only", "small-stack", "--fail-on", "std"],
            "--fail-on: no check that --only names has such a standing",
        ),
        (
            &["check", "diff", "nothing", "there"],
            "nothing: No such file",
        ),
        (
            &["check", "diff", "other.json", "other.json"],
            "other.json is no result of heapmark check",
        ),
    ] {
        let end = place.run(words);
        end.is_one_line(2);
        assert!(end.stderr.contains(why), "{why}: {}", end.stderr);
    }
}
