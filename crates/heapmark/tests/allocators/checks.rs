//! `heapmark check` through the built binary: each check finds what is planted in its own file, its C program shows the same without
//! heapmark, and ends of every kind are told apart.

use crate::support::{End, Place, repository, word};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// glibc's malloc is wrong here on some systems (aligned_alloc accepts what is no alignment before 2.38).
const OF_GLIBC: [&str; 1] = ["aligned-alloc-args"];
/// Its planted fault is a lock that is held for ever.
const HANGS: &str = "fork-threads";

/// Files of checks with a verdict, and those that standards leave open.
fn files() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let folder = repository().join("checks");
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|it| it == "c"))
        .collect();
    files.sort();
    let is_judged = |file: &PathBuf| {
        !fs::read_to_string(file)
            .unwrap()
            .contains("standing = \"observe\"")
    };
    files.into_iter().partition(is_judged)
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

/// The library that breaks what this check is about.
fn planted(place: &Place, check: &str) -> PathBuf {
    let (library, folder) = (
        place.at(&format!("lib{check}.so")),
        repository().join("checks"),
    );
    let ended = Command::new("cc")
        .args([
            "-std=gnu11",
            "-D_GNU_SOURCE",
            "-O1",
            "-w",
            "-fno-builtin",
            "-shared",
            "-fPIC",
        ])
        .args([
            "-DPLANTED",
            "-pthread",
            "-Wl,--unresolved-symbols=ignore-all",
        ])
        .arg(folder.join(format!("{check}.c")))
        .arg(folder.join("harness/planted.c"))
        .arg("-o")
        .arg(&library)
        .status();
    assert!(ended.unwrap().success(), "{check}");
    library
}

/// Makes these checks of one library; the JSON of its only allocator.
fn checked(place: &Place, library: &Path, only: &str, flags: &[&str]) -> (End, Value) {
    let output = format!("of-{only}-{}", flags.len());
    let own = format!("planted={}", library.display());
    let mut words = vec![
        "check", "-a", &own, "--only", only, "--json", "--output", &output,
    ];
    words.extend(flags);
    let end = place.run(&words);
    let read = serde_json::from_str(&end.stdout).unwrap_or(Value::Null);
    (end, read)
}

fn result<'a>(read: &'a Value, check: &str) -> &'a Value {
    let results = read["allocators"][0]["results"].as_array().unwrap();
    results.iter().find(|it| it["check"] == check).unwrap()
}

#[test]
fn each_check_finds_its_planted_fault_and_so_does_its_program() {
    let place = Place::new();
    let (judged, open) = files();
    assert!(judged.len() > 30 && !open.is_empty());
    for file in judged {
        let check = name_of(&file);
        let library = planted(&place, &check);
        let timeout = if check == HANGS { "2s" } else { "60s" };
        let (end, read) = checked(&place, &library, &check, &["--timeout", timeout]);
        assert_eq!(end.code, Some(0), "{check}: {}", end.stderr);
        let found = word(result(&read, &check), "verdict").to_owned();
        let expected = if check == HANGS {
            &["hang"][..]
        } else {
            &["fail", "crash"]
        };
        assert!(
            expected.contains(&found.as_str()),
            "{check}: {found}: {read}"
        );

        let program = place.run(&["check", "--program", &check]).stdout;
        assert!(program.lines().count() <= 30, "{check}: {program}");
        let (source, binary) = (place.at(&format!("{check}.c")), place.at(&check));
        fs::write(&source, program).unwrap();
        let made = Command::new("cc")
            .args(["-w", "-fno-builtin", "-pthread"])
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
            assert_eq!(code("", "60"), Some(0), "{check} under the C library");
        }
        let patience = if check == HANGS { "2" } else { "60" };
        assert_ne!(
            code(library.to_str().unwrap(), patience),
            Some(0),
            "{check} as a program"
        );
    }
}

#[test]
fn glibc_passes_and_what_is_left_open_has_values() {
    let place = Place::new();
    let end = place.run(&[
        "check",
        "-a",
        "glibc",
        "--preset",
        "full",
        "--json",
        "--output",
        "out",
        "--timeout",
        "60s",
    ]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let read: Value = serde_json::from_str(&end.stdout).unwrap();
    let (judged, open) = files();
    assert_eq!(
        read["allocators"][0]["results"].as_array().unwrap().len(),
        judged.len() + open.len()
    );
    for file in judged.iter().map(|file| name_of(file)) {
        let verdict = word(result(&read, &file), "verdict");
        assert!(
            verdict == "pass" || OF_GLIBC.contains(&file.as_str()),
            "{file}: {verdict}"
        );
    }
    for file in open.iter().map(|file| name_of(file)) {
        let notes = result(&read, &file)["notes"].as_array().unwrap();
        assert!(!notes.is_empty(), "{file}");
    }
    // The file that is kept is the same, and names what was checked.
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(place.at("out/check.json")).unwrap()).unwrap();
    assert_eq!(kept, read);
    for key in ["kernel", "cpu_model"] {
        assert!(kept["machine"][key].is_string(), "{key}");
    }
}

#[test]
fn a_crash_an_exit_and_a_hang_are_told_apart_and_cost_one_cell() {
    let place = Place::new();
    for (name, body, verdict, why) in [
        ("traps", "__builtin_trap();", "crash", "SIGILL"),
        ("exits", "_exit(9);", "crash", "exit code 9"),
        ("loops", "for (;;) pause();", "hang", "not ended after 1 s"),
        (
            "kills-parent",
            "kill(getppid(), 9); pause();",
            "hang",
            "not ended",
        ),
    ] {
        let source = place.at(&format!("{name}.c"));
        let code = format!(
            "#define _GNU_SOURCE\n#include <signal.h>\n#include <unistd.h>\nextern void *__libc_calloc(unsigned long, unsigned long);\n\
             void *calloc(unsigned long count, unsigned long size) {{ if (count == 2) {{ {body} }} return __libc_calloc(count, size); }}\n"
        );
        fs::write(&source, code).unwrap();
        let library = place.at(&format!("lib{name}.so"));
        let made = Command::new("cc")
            .args(["-w", "-shared", "-fPIC"])
            .arg(&source)
            .arg(repository().join("checks/harness/planted.c"))
            .arg("-o")
            .arg(&library)
            .status();
        assert!(made.unwrap().success());
        let output = format!("out-{name}");
        let own = format!("planted={}", library.display());
        let end = place.run(&[
            "check",
            "-a",
            &own,
            "--only",
            "calloc-overflow,free-null",
            "--json",
            "--timeout",
            "1s",
            "--output",
            &output,
        ]);
        assert_eq!(end.code, Some(0), "{name}: {}", end.stderr);
        let read: Value = serde_json::from_str(&end.stdout).unwrap();
        let found = result(&read, "calloc-overflow");
        if name != "kills-parent" {
            assert_eq!(word(found, "verdict"), verdict, "{name}: {found}");
            assert!(
                found["reasons"].to_string().contains(why),
                "{name}: {found}"
            );
        } else {
            assert_ne!(word(found, "verdict"), "pass", "{found}");
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
    if place.ready(&["tbbmalloc"]).is_empty() {
        return;
    }
    let end = place.run(&[
        "check",
        "-a",
        "tbbmalloc",
        "--only",
        "free-null",
        "--json",
        "--output",
        "out",
    ]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let read: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(
        word(result(&read, "free-null"), "verdict"),
        "pass",
        "{read}"
    );
}

#[test]
fn conditions_ask_for_a_standing_and_a_diff_names_what_changed() {
    let place = Place::new();
    let std = planted(&place, "free-errno");
    let robust = planted(&place, "small-stack");
    for (library, check, least, code) in [
        (&std, "free-errno", "std", 3),
        (&std, "no-overlap", "robust", 0),
        (&robust, "small-stack", "std", 0),
        (&robust, "small-stack", "robust", 3),
    ] {
        let own = format!("planted={}", library.display());
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
    let old = place.run(&["check", "-a", &own, "--only", "errno", "--output", "old"]);
    assert!(
        old.stdout
            .contains("old: fail: free of 1 bytes set errno to 22"),
        "{}",
        old.stdout
    );
    place.run(&["check", "-a", "glibc", "--only", "errno", "--output", "new"]);
    let diff = place.run(&["check", "diff", "old", "new"]);
    assert_eq!(diff.stdout, "glibc free-errno: fail -> pass\n");
    let same = place.run(&["check", "diff", "new", "new/check.json"]);
    assert_eq!(same.stdout, "no check ended otherwise\n");
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
