//! `heapmark try` on commands that read what is piped into heapmark, that run for a fixed time, change what they work on, are killed,
//! or are started in an unusual way: what is measured is what the user means, or a sentence says why not.

use crate::support::home::record;
use crate::support::tried::{SMALL, note, run};
use crate::support::{End, Place, head, of_purpose, samples, word, words};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A C program in the place, as `./NAME`.
fn build(place: &Place, name: &str, source: &str) {
    fs::write(place.at(&format!("{name}.c")), source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-w", "-o"]).arg(place.at(name));
    let status = cc.arg(place.at(&format!("{name}.c"))).status();
    assert!(status.unwrap().success(), "{name}");
}

/// An executable file.
fn script(place: &Place, name: &str, text: &str) {
    fs::write(place.at(name), text).unwrap();
    fs::set_permissions(place.at(name), Permissions::from_mode(0o755)).unwrap();
}

/// Tries it under glibc alone.
fn alone(place: &Place, arguments: &[&str]) -> (End, Vec<Value>) {
    run(place, &[&["-a", "glibc"], arguments].concat())
}

/// The same in more blocks, and what it prints.
fn in_blocks(place: &Place, blocks: &str, arguments: &[&str]) -> (End, Vec<Value>) {
    let _ = fs::remove_dir_all(place.at("run"));
    let flags = [
        "try",
        "-o",
        "run",
        "--no-aa-copy",
        "--no-repeat",
        "-a",
        "glibc",
        "--blocks",
        blocks,
    ];
    let end = place.run(&[&flags, arguments].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    (end, samples(&place.at("run")))
}

/// What `./counts` writes, from each process.
const COUNTS: &str = "cat | wc -c >> counts";

fn with_stdin(place: &Place, flags: &[&str], stdin: impl Into<Stdio>) -> End {
    let _ = fs::remove_dir_all(place.at("run"));
    let _ = fs::remove_file(place.at("counts"));
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let command = ["--", "sh", "-c", COUNTS];
    let mut heapmark = place.heapmark(&[&SMALL[..], &["-a", &honest], flags, &command].concat());
    End::of(heapmark.stdin(stdin).output().unwrap())
}

#[test]
fn what_is_piped_or_redirected_into_heapmark_is_the_input_of_every_process() {
    let place = Place::new();
    fs::write(place.at("input"), "one\ntwo\n").unwrap();
    let file = || File::open(place.at("input")).unwrap();
    let counts = || fs::read_to_string(place.at("counts")).unwrap();
    let piped = || {
        let mut cat = Command::new("cat");
        let cat = cat.arg(place.at("input")).stdout(Stdio::piped()).spawn();
        cat.unwrap().stdout.unwrap()
    };
    for stdin in [Stdio::from(file()), Stdio::from(piped())] {
        let end = with_stdin(&place, &[], stdin);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(
            end.stderr.contains("what came from stdin: 8.00 B"),
            "{}",
            end.stderr
        );
        // The reference, the probes of the baseline's check; of each row a check and two samples.
        assert!(counts().lines().count() >= 2 + 2 * 3 && counts().lines().all(|it| it == "8"));
    }
    let stored = &head(&place.at("run"))["plan"]["cases"][0]["target"]["command"];
    assert_eq!(stored["piped"]["bytes"], 8, "{stored}");
    assert_eq!(word(&stored["piped"], "sha256").len(), 64);

    // A named file comes before it, and without either there is nothing.
    fs::write(place.at("named"), "x").unwrap();
    with_stdin(&place, &["--stdin", "named"], file());
    assert!(counts().lines().all(|it| it == "1"), "{}", counts());
    let end = with_stdin(&place, &[], Stdio::null());
    assert!(counts().lines().all(|it| it == "0") && !end.stderr.contains("stdin"));
}

#[test]
fn a_run_that_was_interrupted_goes_on_with_the_same_input_only() {
    let place = Place::new();
    fs::write(place.at("input"), "one\ntwo\n").unwrap();
    let file = |name: &str| File::open(place.at(name)).unwrap();
    assert_eq!(with_stdin(&place, &[], file("input")).code, Some(0));
    // As after a signal in its last block.
    let lines = fs::read_to_string(place.at("run/samples.jsonl")).unwrap();
    let kept: Vec<&str> = lines.split_inclusive('\n').collect();
    fs::write(
        place.at("run/samples.jsonl"),
        kept[..kept.len() - 1].concat(),
    )
    .unwrap();
    fs::write(place.at("other"), "three\n").unwrap();
    let resume = |stdin: Stdio| {
        let mut heapmark = place.heapmark(&["try", "--resume", "run"]);
        End::of(heapmark.stdin(stdin).output().unwrap())
    };
    for stdin in [Stdio::null(), file("other").into()] {
        let end = resume(stdin);
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(
            end.stderr.contains("reads 8.00 B that were piped"),
            "{}",
            end.stderr
        );
    }
    let end = resume(file("input").into());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let counts = fs::read_to_string(place.at("counts")).unwrap();
    assert!(counts.lines().all(|it| it == "8"), "{counts}");
}

#[test]
fn a_run_goes_on_only_with_the_program_and_the_input_that_it_began_with() {
    let place = Place::new();
    script(&place, "mine", "#!/bin/sh\nexec cat\n");
    fs::write(place.at("input"), "one\n").unwrap();
    let (end, _) = alone(&place, &["--stdin", "input", "--", "./mine"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let stored = &head(&place.at("run"))["plan"]["cases"][0]["target"]["command"];
    assert_eq!(word(stored, "stdin_sha256").len(), 64);
    let resume = || place.run(&["try", "--resume", "run"]);
    for (name, other) in [("mine", "#!/bin/sh\nexec tac\n"), ("input", "two\n")] {
        let before = fs::read(place.at(name)).unwrap();
        fs::write(place.at(name), other).unwrap();
        let end = resume();
        assert_eq!(end.code, Some(1), "{}", end.stderr);
        let said = format!("{name} is not the file that this run began with: start a new run");
        assert!(end.stderr.contains(&said), "{}", end.stderr);
        fs::write(place.at(name), before).unwrap();
    }
    assert_eq!(resume().code, Some(0));
    // What is no file has no content that could be the same.
    let (end, _) = alone(&place, &["--stdin", "/dev/null", "--", "./mine"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let stored = &head(&place.at("run"))["plan"]["cases"][0]["target"]["command"];
    assert!(stored["stdin_sha256"].is_null(), "{stored}");
}

#[test]
fn a_pipe_that_says_nothing_is_waited_for_in_words() {
    let place = Place::new();
    let (read, mut write) = std::io::pipe().unwrap();
    let arguments = [&SMALL[..], &["-a", "glibc", "--", "sh", "-c", COUNTS]].concat();
    let mut heapmark = place.heapmark(&arguments);
    let heapmark = heapmark
        .stdin(read)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut running = heapmark.spawn().unwrap();
    let mut first = String::new();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    said.read_line(&mut first).unwrap();
    assert!(first.contains("waiting for the end of stdin"), "{first}");
    write.write_all(b"late").unwrap();
    drop(write);
    for line in said.lines() {
        line.unwrap();
    }
    assert!(running.wait().unwrap().success());
    let counts = fs::read_to_string(place.at("counts")).unwrap();
    assert!(counts.lines().all(|it| it == "4"), "{counts}");
}

/// Allocates as much as it can until its time is over, or a number of times.
const CHURN: &str = "
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int count, char **words) {
    double end = now() + atof(words[1]);
    long rounds = atol(words[2]), done = 0;
    static void *kept[1000];
    while (rounds ? done < rounds : now() < end)
        for (int i = 0; i < 1000; i++, done++) {
            free(kept[done % 1000]);
            kept[done % 1000] = malloc(16 + done % 999);
            memset(kept[done % 1000], 1, 16);
        }
    return printf(\"%ld rounds\\n\", done) < 0;
}";

#[test]
fn a_command_that_runs_for_a_fixed_time_gets_no_verdict_by_time_and_one_with_fixed_work_does() {
    let place = Place::new();
    build(&place, "churn", CHURN);
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let tried = |words: &[&str]| run(&place, &[&["-a", &honest, "--", "./churn"], words].concat());
    let (end, records) = tried(&["0.3", "0"]);
    let said = words(&end.stdout);
    assert!(
        said.contains("No verdict by time: this command runs for a fixed time")
            && !said.contains("Stay with"),
        "{said}"
    );
    let figures = &record(&records, "check", "glibc")["measurement"]["figures"];
    let ratio = |name: &str| figures[name].as_f64().unwrap();
    assert!(
        ratio("slower_calls_ratio") < 0.7 && ratio("slower_wall_ratio") < 1.5,
        "{figures}"
    );
    let end = place.run(&["compare", "run", "--threshold", "1%"]);
    let said = words(&(end.stdout + &end.stderr));
    assert!(said.contains("it runs for a fixed time"), "{said}");

    let (end, records) = tried(&["0", "2000000"]);
    let said = words(&end.stdout);
    assert!(
        !said.contains("a fixed time") && said.contains("2 blocks are too few"),
        "{said}"
    );
    let figures = &record(&records, "check", "glibc")["measurement"]["figures"];
    let calls = figures["slower_calls_ratio"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&calls), "the same work: {figures}");
}

#[test]
fn a_command_that_changes_what_it_works_on_is_sent_to_prepare() {
    let place = Place::new();
    fs::write(place.at("data"), "x").unwrap();
    script(
        &place,
        "once",
        "#!/bin/sh\nrm data || { echo 'no data here' >&2; exit 3; }\n",
    );
    let (end, _) = alone(&place, &["--", "./once"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    let said = "a later run of it ended otherwise than its first: exit code 3, not 0: no data here; \
                if the command changes what it works on: --prepare CMD restores that";
    assert!(end.stderr.contains(said), "{}", end.stderr);
    assert!(
        end.stderr
            .contains("once cannot be tried under glibc: a later run"),
        "{}",
        end.stderr
    );
    let (end, _) = alone(&place, &["--prepare", "touch data", "--", "./once"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);

    // Each run has much more to do than the one before, more than other programs of the machine can hide.
    let source = "#include <stdio.h>\nint main(void) {\n FILE *log = fopen(\"log\", \"a\");\n fputc('x', log);\n \
                  volatile long runs = ftell(log), done = 0, all = (20 + runs * runs * runs) * 100000;\n while (done < all) done++;\n return fclose(log);\n}";
    build(&place, "grows", source);
    let (end, _) = in_blocks(&place, "10", &["--", "./grows"]);
    let said = words(&end.stdout);
    assert!(
        said.contains("its CPU time grows from run to run, with the baseline from"),
        "{said}"
    );
    let (end, _) = in_blocks(&place, "10", &["--prepare", "rm -f log", "--", "./grows"]);
    assert!(!end.says("grows from run"), "{}", end.stdout);
}

#[test]
fn a_kill_that_the_kernel_did_not_count_is_a_signal_and_no_lack_of_memory() {
    let place = Place::new();
    script(&place, "nine", "#!/bin/sh\nkill -9 $$\n");
    let (end, records) = alone(&place, &["--", "./nine"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(
        end.stderr.contains("it ended crash: SIGKILL"),
        "{}",
        end.stderr
    );
    assert_eq!(
        record(&records, "check", "glibc")["outcome"]["kind"],
        "crash"
    );
    let last = end.stderr.lines().last().unwrap_or_default();
    assert!(!last.contains("memory"), "{last}");
}

/// Holds 64 MiB, and starts three small programs; each is a copy of it for 30 ms before.
const SPAWNS: &str = "
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    volatile char *held = malloc(64 << 20);
    for (long at = 0; at < 64 << 20; at += 4096) held[at] = 1;
    for (int i = 0; i < 3; i++) {
        int child = fork();
        if (!child) {
            usleep(30000);
            execl(\"/bin/sleep\", \"sleep\", \"0.01\", NULL);
        }
        waitpid(child, 0, 0);
    }
    return held[0] != 1;
}";

#[test]
fn what_is_forked_to_execute_a_small_program_does_not_count_its_parents_memory_again() {
    let place = Place::new();
    build(&place, "spawns", SPAWNS);
    let (_, records) = in_blocks(&place, "4", &["--", "./spawns"]);
    // On a machine with much else to do, one copy may be there for longer.
    let peak = |it: &Value| it["measurement"]["peak_rss_bytes"].as_u64().unwrap() >> 20;
    let peaks: Vec<u64> = of_purpose(&records, "sample")
        .into_iter()
        .map(peak)
        .collect();
    assert!(peaks.iter().all(|mib| *mib >= 64), "{peaks:?}");
    assert!(*peaks.iter().min().unwrap() < 96, "{peaks:?}");
}

#[test]
fn a_script_that_only_finds_the_program_is_told_with_the_path_to_name_and_its_processes() {
    let place = Place::new();
    let manager = place.at("fakeenv");
    let own = place.at("versions");
    fs::create_dir(&own).unwrap();
    script(&place, "versions/sorts", "#!/bin/sh\nexec sort /dev/null\n");
    let found = own.join("sorts").display().to_string();
    let text = format!(
        "#!/bin/sh\nif [ $1 = which ]; then echo {found}; exit; fi\n/bin/true; /bin/true; /bin/true; /bin/true\nexec {found}\n"
    );
    script(&place, "fakeenv", &text);
    let shim = format!(
        "#!/bin/sh\nexec \"{}\" exec \"sorts\" \"$@\"\n",
        manager.display()
    );
    script(&place, "sorts", &shim);
    let (end, records) = alone(&place, &["--", "./sorts"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let said = format!("which finds the program and then becomes it: name {found} instead");
    assert!(words(&end.stderr).contains(&said), "{}", end.stderr);
    let said = words(&end.stdout);
    assert!(said.contains("sorts, 8 processes"), "{said}");
    let becomes = note(&records, "glibc", "becomes").to_owned();
    assert!(becomes.ends_with("/sort"), "{becomes}");

    // A script of one's own that does not hide it has no such manager, and the same note.
    script(&place, "own", &text.replace("$1 = which", "\"$1\" = which"));
    let (end, _) = alone(&place, &["--", "./own"]);
    let said = words(&end.stdout);
    assert!(
        said.contains("only find and start") && said.contains("name that instead"),
        "{said}"
    );
    let (end, _) = alone(&place, &["--", "sh", "-c", "true; exec sort /dev/null"]);
    assert!(!end.says("only find and start"), "{}", end.stdout);
}

#[test]
fn two_builds_of_a_program_are_not_the_same_work() {
    let place = Place::new();
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    for (run, number) in [("first", 1), ("again", 1), ("second", 2)] {
        if run != "again" {
            build(
                &place,
                "mine",
                &format!(
                    "int main(void) {{ volatile int own = {number}; return own != {number}; }}"
                ),
            );
        }
        let flags = [
            "try",
            "-o",
            run,
            "--blocks",
            "2",
            "--no-aa-copy",
            "--no-repeat",
        ];
        let end = place.run(&[&flags[..], &["-a", &honest, "--", "./mine"]].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
    }
    let compared = |new: &str| {
        let end = place.run(&["compare", "first", new]);
        words(&(end.stdout + &end.stderr))
    };
    let said = compared("second");
    assert!(
        said.contains("the programs differ (another file)"),
        "{said}"
    );
    assert!(!said.contains("The same glibc ran in both"), "{said}");
    let said = compared("again");
    assert!(!said.contains("the programs differ"), "{said}");
}

/// glibc's dynamic linker.
fn linker() -> String {
    let here = std::env::consts::ARCH == "x86_64";
    let path = if here {
        "/lib64/ld-linux-x86-64.so.2"
    } else {
        "/lib/ld-linux-aarch64.so.1"
    };
    path.into()
}

#[test]
fn programs_that_are_started_in_unusual_ways_are_measured() {
    let place = Place::new();
    build(&place, "churn", CHURN);
    let honest = format!("glibc,honest={}", place.fake("honest").display());
    let linker = linker();
    let words = [
        &linker,
        "--inhibit-cache",
        "--argv0",
        "x",
        "./churn",
        "0",
        "1000",
    ];
    let (end, records) = run(&place, &[&["-a", &honest, "--"], &words[..]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let proof = &record(&records, "check", "honest")["proof"];
    let owner = &proof["objects"][proof["owners"]["malloc"].as_u64().unwrap() as usize];
    assert!(word(owner, "path").ends_with("libhonest.so"), "{owner}");
    assert_eq!(record(&records, "check", "honest")["workload"], "churn");
    let end = place.run(&[&["record", "-o", "c.trace", "--"], &words[..]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(place.at("c.trace").exists());

    script(&place, "bare", "test \"$1\" = word\n");
    let (end, _) = alone(&place, &["--", "./bare", "word"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert_eq!(
        place
            .run(&["record", "-o", "b.trace", "--", "./bare", "word"])
            .code,
        Some(0)
    );
    assert_eq!(
        place
            .run(&["record", "-o", "b2.trace", "--", "./bare", "other"])
            .code,
        Some(1)
    );

    script(&place, "windows", "#!/bin/sh\r\necho hi\r\n");
    for first in [["try", "--"], ["record", "--"]] {
        let end = place.run(&[&first[..], &["./windows"]].concat());
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(
            end.stderr.contains("names the interpreter /bin/sh\\r"),
            "{}",
            end.stderr
        );
    }
}

#[test]
fn a_server_that_answers_on_a_unix_socket_is_measured() {
    let place = Place::new();
    let server = "import os, signal, socket\n\
                  if os.path.exists('own.sock'): os.remove('own.sock')\n\
                  s = socket.socket(socket.AF_UNIX)\ns.bind(os.path.abspath('own.sock'))\ns.listen()\n\
                  signal.signal(signal.SIGTERM, lambda *_: os._exit(0))\n\
                  while True:\n    c, _ = s.accept()\n    try: c.sendall(b'x')\n    except OSError: pass\n    c.close()\n";
    let client = "import socket\nfor _ in range(20):\n    c = socket.socket(socket.AF_UNIX)\n    \
                  c.connect('own.sock')\n    assert c.recv(1) == b'x'\n    c.close()\n";
    fs::write(place.at("server.py"), server).unwrap();
    fs::write(place.at("client.py"), client).unwrap();
    let both = [
        "--server",
        "python3 server.py",
        "--client",
        "python3 client.py",
    ];
    let (end, records) = alone(&place, &[&both[..], &["--ready", "./own.sock"]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert_eq!(of_purpose(&records, "sample").len(), 2);
    let stored = &head(&place.at("run"))["plan"]["cases"][0]["target"]["command"]["client"];
    assert!(
        Path::new(word(stored, "socket")).ends_with("own.sock"),
        "{stored}"
    );
    // Its program, by which a run that goes on knows it.
    assert!(!stored["sha256"].as_array().unwrap().is_empty());
    let (end, _) = alone(&place, &[&both[..], &["--ready", "own.sock"]].concat());
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr.contains("or the path of a Unix socket"),
        "{}",
        end.stderr
    );
}

#[test]
fn an_input_that_has_no_end_is_refused_before_anything_runs() {
    let place = Place::new();
    let end = with_stdin(&place, &[], File::open("/dev/zero").unwrap());
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(
        end.stderr.contains("more than 1.00 GiB, or has no end") && !place.at("counts").exists(),
        "{}",
        end.stderr
    );
    assert!(!place.at("run").exists());
}
