//! `heapmark try --variant`, `--variant-env`: builds and settings as rows, static ones too; each says what serves it.

use crate::support::home::record;
use crate::support::tried::{SMALL, note, run};
use crate::support::{End, Place, Port, copy_program, head, of_purpose, word, words};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// A loop over malloc and free, whose mimalloc is only a name; with `SAYS` it prints another line.
const WORK: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    void *mi_malloc(size_t size) { return malloc(size); }\n\
    int main(int c, char **v) {\n    void *p[64] = {0};\n    \
    for (int i = 0; i < 200000; i++) { free(p[i % 64]); p[i % 64] = malloc(16 + i % 900); }\n    \
    printf(\"%s\\n\", c > 1 ? v[1] : SAYS);\n    return CODE;\n}\n";

/// A build of it.
fn build(place: &Place, name: &str, flags: &[&str]) {
    fs::write(place.at("work.c"), WORK).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-DSAYS=\"done\"", "-DCODE=0"]).args(flags);
    let status = cc
        .arg("-o")
        .args([place.at(name), place.at("work.c")])
        .status();
    assert!(status.unwrap().success(), "{name}");
}

fn compared(place: &Place, arguments: &[&str]) -> (End, Vec<Value>) {
    run(
        place,
        &[
            &["--variant", "one=./one", "--variant", "two=./two"],
            arguments,
        ]
        .concat(),
    )
}

#[test]
fn builds_are_rows_and_each_says_what_serves_it() {
    let place = Place::new();
    build(&place, "one", &["-Wl,-s"]);
    build(&place, "two", &["-static"]);
    let (end, records) = compared(&place, &["--check-output", "--", "same"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let rows: BTreeSet<&str> = records.iter().map(|it| word(it, "allocator")).collect();
    assert_eq!(
        rows,
        BTreeSet::from(["libc", "one", "two"]),
        "with the control"
    );
    let dynamic = note(&records, "one", "served_by");
    assert!(
        dynamic.contains("/libc.so.6") && !dynamic.contains("mimalloc"),
        "{dynamic}"
    );
    let fixed = note(&records, "two", "served_by");
    for words in [
        "mimalloc (its symbol mi_malloc)",
        "glibc (",
        " calls of brk and ",
    ] {
        assert!(fixed.contains(words), "no {words} in {fixed}");
    }
    let table = words(&end.stdout);
    for words in [
        "variant time / one",
        "one: one same; served by ",
        "two: two same; served by ",
    ] {
        assert!(table.contains(words), "no {words} in {table}");
    }
    // Both ran what they are, and the page has the files.
    let head = head(&place.at("run"));
    let files: Vec<&str> = (head["allocators"].as_array().unwrap().iter())
        .map(|it| it["files"][0].as_str().unwrap())
        .collect();
    assert!(
        files[0].ends_with("/one") && files[1].ends_with("/two"),
        "{files:?}"
    );
}

#[test]
fn a_build_that_does_other_work_is_a_wrong_result() {
    let place = Place::new();
    build(&place, "one", &[]);
    let outcome = |flags: &[&str]| {
        build(&place, "two", flags);
        let (end, records) = compared(&place, &["--check-output"]);
        assert_eq!(end.code, Some(4), "{}", end.stderr);
        let outcome = &record(&records, "check", "two")["outcome"];
        assert_eq!(word(outcome, "kind"), "wrong-result");
        word(outcome, "what").to_owned()
    };
    let other = outcome(&["-static", "-UCODE", "-DCODE=3"]);
    assert!(other.starts_with("exit code 3, under one 0"), "{other}");
    let other = outcome(&["-USAYS", "-DSAYS=\"other\""]);
    let wanted = "line 1 of the output: \"other\\n\", but \"done\\n\" under one";
    assert_eq!(other, wanted);
    // As after a signal between the checks: what `one` prints is then not known.
    let file = place.at("run/samples.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.split_inclusive('\n');
    let kept: String = lines
        .take_while(|line| !line.contains("/check/two"))
        .collect();
    fs::write(&file, kept).unwrap();
    let end = place.run(&["try", "--resume", "run"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let records = crate::support::samples(&place.at("run"));
    let outcome = &record(&records, "check", "two")["outcome"];
    assert_eq!(word(outcome, "what"), wanted);
}

#[test]
fn a_build_that_fails_by_itself_is_not_run_under_other_allocators() {
    let place = Place::new();
    build(&place, "one", &[]);
    build(&place, "two", &["-UCODE", "-DCODE=3"]);
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let (end, records) = compared(&place, &["-a", &honest]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let outcome = |row: &str| &record(&records, "check", row)["outcome"];
    assert_eq!(word(outcome("two+glibc"), "kind"), "wrong-result");
    let other = outcome("two+honest");
    assert_eq!(word(other, "kind"), "unsupported");
    let why = word(other, "why");
    assert!(
        why.starts_with("it does not run under two+glibc: wrong-result: exit code 3"),
        "{why}"
    );
}

#[test]
fn settings_are_rows_and_arrive() {
    let place = Place::new();
    let flags = [
        "--variant-env",
        "plain=",
        "--variant-env",
        "arena=MALLOC_ARENA_MAX=1",
        "--variant-env",
        "arena=SEEN=x y",
    ];
    let line = "echo \"$MALLOC_ARENA_MAX$SEEN\" >> seen; true";
    let mut heapmark = place.heapmark(&[&SMALL[..], &flags, &["--", "sh", "-c", line]].concat());
    let end = End::of(heapmark.env("MALLOC_ARENA_MAX", "7").output().unwrap());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let seen = fs::read_to_string(place.at("seen")).unwrap();
    let kinds: BTreeSet<&str> = seen.lines().collect();
    assert_eq!(kinds, BTreeSet::from(["", "1x y"]), "none of the caller's");
    assert!(
        end.stderr.contains("--variant-env sets them"),
        "{}",
        end.stderr
    );
    let table = words(&end.stdout);
    assert!(
        table.contains("MALLOC_ARENA_MAX=1 SEEN='x y' sh -c"),
        "{table}"
    );
}

#[test]
fn builds_under_allocators_are_a_table_of_both() {
    let place = Place::new();
    build(&place, "one", &[]);
    build(&place, "two", &["-O2"]);
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let (end, records) = compared(&place, &["-a", &honest]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    for check in of_purpose(&records, "check") {
        let (build, allocator) = word(check, "allocator").split_once('+').unwrap();
        let proof = &check["proof"];
        let owner = &proof["objects"][proof["owners"]["malloc"].as_u64().unwrap() as usize];
        let serves = word(owner, "path").contains("honest");
        assert_eq!(serves, allocator == "honest", "{build}: {owner}");
    }
    let table = words(&end.stdout);
    for words in [
        "builds by allocators variant glibc honest",
        "interaction of two and honest: ",
    ] {
        assert!(table.contains(words), "no {words} in {table}");
    }
    build(&place, "two", &["-static"]);
    let end = compared(&place, &["-a", &honest]).0;
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(end.stderr.contains("-a: two: static: "), "{}", end.stderr);
}

#[test]
fn a_run_of_builds_goes_on_only_with_the_same_files() {
    let place = Place::new();
    build(&place, "one", &[]);
    build(&place, "two", &["-static"]);
    let (end, records) = compared(&place, &[]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    // As after a signal in its last block.
    let file = place.at("run/samples.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let kept: Vec<&str> = text.lines().collect();
    fs::write(&file, kept[..kept.len() - 1].join("\n") + "\n").unwrap();
    let end = place.run(&["try", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    // Half a duet is no result: both of its sides ran again.
    assert!(crate::support::samples(&place.at("run")).len() >= records.len());
    build(&place, "two", &["-static", "-O2"]);
    let end = place.run(&["try", "--resume", "run"]);
    assert!(
        end.stderr
            .contains("two is not the file that this run began with"),
        "{}",
        end.stderr
    );
}

#[test]
fn servers_are_builds_too() {
    let place = Place::new();
    for (name, flags) in [("one", &[][..]), ("two", &["-static"])] {
        let source = crate::support::source("server");
        let mut cc = Command::new("cc");
        let status = cc
            .args(flags)
            .arg("-o")
            .args([place.at(name), source])
            .status();
        assert!(status.unwrap().success());
    }
    let client = "import socket, sys\nfor i in range(20):\n    \
        c = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n    c.sendall(b'abc')\n    \
        assert c.recv(100) == b'xxx'\n    c.close()\n";
    fs::write(place.at("client.py"), client).unwrap();
    let port = Port::free();
    let number = port.0.to_string();
    let serve = |line: &str| {
        let client = ["--client", "python3 client.py {port}", "--ready", &number];
        compared(&place, &[&["--server", line], &client[..]].concat())
    };
    let (end, records) = serve("{variant} {port} allocates-when-asked");
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let fixed = note(&records, "two", "served_by");
    assert!(fixed.contains(" calls of brk and "), "{fixed}");
    let end = serve("./one {port} allocates-when-asked").0;
    end.is_one_line(2);
    assert!(
        end.stderr.contains("{variant} must stand in it"),
        "{}",
        end.stderr
    );
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let place = Place::new();
    build(&place, "one", &[]);
    copy_program(place.at("one"), place.at("two"));
    fs::write(place.at("text"), "").unwrap();
    let one = ["--variant", "one=./one"];
    // As in two virtual environments, whose interpreters are equal.
    fs::create_dir(place.at("elsewhere")).unwrap();
    copy_program(place.at("one"), place.at("elsewhere/one"));
    let other = ["--variant", "two=elsewhere/one", "--dry-run"];
    let end = place.run(&[&["try"], &one[..], &other].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    for (flags, why) in [
        (
            &["--variant", "two=./two"][..],
            "one and two are the same: equal files",
        ),
        (&[], "--variant one: one is compared with nothing"),
        (
            &["--variant", "one=./two"],
            "--variant one: two have this name",
        ),
        (&["--variant", "two=./text"], "./text: not executable"),
        (
            &["--variant-env", "two=A=b"],
            "--variant-env two: no --variant has this name",
        ),
        (
            &["--variant-env", "one=A"],
            "--variant-env one=A: expected NAME=VAR=VALUE",
        ),
        (
            &["--variant", "two=./two 1", "--baseline", "two"],
            "the first variant is the baseline",
        ),
    ] {
        let end = run(&place, &[&one, flags].concat()).0;
        end.is_one_line(2);
        assert!(end.stderr.contains(why), "no {why} in {}", end.stderr);
    }
    // The same file with other arguments is another row.
    assert_eq!(
        run(&place, &[&one[..], &["--variant", "two=./two 1"]].concat())
            .0
            .code,
        Some(0)
    );
}

#[test]
fn a_pull_request_gets_twelve_lines_with_the_command_to_repeat_it() {
    let place = Place::new();
    build(&place, "one", &[]);
    build(&place, "two", &["-static"]);
    let (end, _) = compared(
        &place,
        &[
            "--variant-env",
            "two=A=b c",
            "--value",
            "n:higher=([0-9]+)",
            "--",
            "7",
        ],
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let end = place.run(&["export", "run", "--to", "pr", "-o", "-"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.stdout.lines().count() <= 12, "{}", end.stdout);
    let again = end.stdout.lines().last().unwrap();
    let line = "Again: `heapmark try --alone --value 'n:higher=([0-9]+)' --value-from stdout --variant 'one=one 7' --variant 'two=two 7' \
        --variant-env 'two=A=b c'`";
    assert_eq!(again, line);
    for part in [
        "| variant | n | n / one",
        "heapmark 0.1.0, 2 blocks on ",
        "one is one 7, two is A='b c' two 7.",
    ] {
        assert!(end.says(part), "no {part} in {}", end.stdout);
    }
}

#[test]
fn a_static_program_of_musl_and_one_with_another_malloc_are_told_apart() {
    let place = Place::new();
    fs::write(place.at("work.c"), WORK.replace("mi_malloc", "unused")).unwrap();
    let build = |name: &str, flags: &[&str]| {
        let mut cc = Command::new("musl-gcc");
        let own = [
            "-static",
            "-DSAYS=\"done\"",
            "-DCODE=0",
            "work.c",
            "-o",
            name,
        ];
        let status = cc.args(own).args(flags).current_dir(place.at(".")).status();
        assert!(
            status.unwrap().success(),
            "scripts/setup.sh test installs musl-tools"
        );
    };
    build("one", &[]);
    fs::write(place.at("bump.c"), BUMP).unwrap();
    build("two", &["bump.c"]);
    let (end, records) = compared(&place, &["--check-output"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let [musl, other] = ["one", "two"].map(|row| note(&records, row, "served_by"));
    assert!(
        musl.starts_with("musl (its symbol __malloc_context)"),
        "{musl}"
    );
    assert!(
        other.starts_with("rpmalloc (its symbol rpmalloc)"),
        "{other}"
    );
    assert!(other.ends_with("1 of mmap ask for its memory"), "{other}");
}

/// A malloc that calls itself rpmalloc, and takes all from one mapping.
const BUMP: &str = "#include <stddef.h>\n#include <string.h>\n#include <sys/mman.h>\n\
    static char *next;\n\
    void *rpmalloc(size_t size) {\n    if (!next) next = mmap(0, 1ul << 30, 3, 0x4022, -1, 0);\n    \
    char *own = next;\n    next += (size + 31) & ~15ul;\n    *(size_t *)own = size;\n    return own + 16;\n}\n\
    void *malloc(size_t size) { return rpmalloc(size); }\nvoid free(void *block) {}\n\
    void *calloc(size_t n, size_t size) { return rpmalloc(n * size); }\n\
    void *realloc(void *old, size_t size) {\n    void *own = rpmalloc(size);\n    \
    if (old) memcpy(own, old, size < ((size_t *)old)[-2] ? size : ((size_t *)old)[-2]);\n    return own;\n}\n";

#[test]
fn the_time_in_malloc_is_that_of_each_setting() {
    let place = Place::new();
    fs::write(
        place.at("build.py"),
        "print(len({str(i): [i] for i in range(40000)}))\n",
    )
    .unwrap();
    let setting = |name: &str| format!("{name}=PYTHONMALLOC={name}");
    let [all, few] = ["malloc", "pymalloc"].map(setting);
    let flags = ["--variant-env", &all, "--variant-env", &few];
    let (end, records) = run(
        &place,
        &[&flags[..], &["--", "python3", "build.py"]].concat(),
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let calls = |row: &str| {
        let figures = &record(&records, "check", row)["measurement"]["figures"];
        figures["malloc_calls_per_cpu_s"].as_f64().unwrap()
    };
    // pymalloc serves small objects by itself.
    assert!(
        calls("malloc") > 5.0 * calls("pymalloc"),
        "{} {}",
        calls("malloc"),
        calls("pymalloc")
    );
}
