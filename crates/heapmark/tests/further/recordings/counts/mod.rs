//! The recorder counts as an independent counter does, in programs that are on every machine that runs these tests; `make counts` has many
//! more. A counter that is off by one, and a process that is counted and not recorded, are noticed.

mod compared;

use compared::{Compared, Place};
use std::path::Path;
use std::process::Command;

const HEAPMARK: &str = env!("CARGO_BIN_EXE_heapmark");

fn compare(place: &Place, words: &[&str]) -> Compared {
    let words: Vec<String> = words.iter().map(|word| word.to_string()).collect();
    let compared = place.compare(Path::new(HEAPMARK), &words);
    let said = String::from_utf8_lossy(&compared.end.stderr);
    assert_eq!(compared.end.status.code(), Some(0), "{words:?}: {said}");
    compared
}

/// Each process agrees, there are so many of them, and they make so many calls.
fn agree(words: &[&str], processes: usize, calls: u64) {
    let place = Place::new(&[]);
    std::fs::write(place.work.path().join("Makefile"), MAKEFILE).unwrap();
    agree_in(&place, words, processes, calls);
}

fn agree_in(place: &Place, words: &[&str], processes: usize, calls: u64) {
    let compared = compare(place, words);
    let differ: Vec<String> = compared
        .processes
        .iter()
        .filter(|process| !process.agrees())
        .map(|process| process.to_string())
        .collect();
    assert_eq!(differ, [""; 0], "{words:?}");
    assert!(
        compared.processes.len() >= processes,
        "{words:?}: {:?}",
        compared.processes
    );
    let sum: u64 = compared
        .processes
        .iter()
        .map(|process| process.calls())
        .sum();
    assert!(sum >= calls, "{words:?}: {sum}");
}

const MAKEFILE: &str = "all: a b c d\n%:\n\t@echo $@ | sort > $@\n";

#[test]
fn a_shell_and_a_pipeline() {
    agree(&["sh", "-c", "seq 20000 | sort -rn | uniq | wc -l"], 5, 100);
}

#[test]
fn perl() {
    agree(
        &[
            "perl",
            "-e",
            "my %h; $h{$_ % 1000} .= $_ for 1..20000; print scalar(keys %h)",
        ],
        1,
        5_000,
    );
}

#[test]
fn python_with_threads_and_children_that_execute_nothing() {
    let program = "import os, threading\n\
                   def work(): [str(i) * 50 for i in range(5000)]\n\
                   threads = [threading.Thread(target=work) for _ in range(3)]\n\
                   [thread.start() for thread in threads]; [thread.join() for thread in threads]\n\
                   for _ in range(3):\n    if os.fork() == 0: work(); os._exit(0)\n\
                   [os.wait() for _ in range(3)]";
    agree(
        &["env", "PYTHONMALLOC=malloc", "python3", "-c", program],
        5,
        50_000,
    );
}

#[test]
fn make() {
    agree(&["make", "-s", "-j2"], 9, 1_000);
}

#[test]
#[ignore = "make test-all"]
fn five_hundred_children() {
    agree(
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 500 ]; do env true; i=$((i + 1)); done",
        ],
        501,
        // Some ten for each; more if there are more variables.
        5_000,
    );
}

#[test]
fn a_daemon_whose_launcher_has_ended() {
    let place = Place::new(&[]);
    let (source, program) = (
        place.work.path().join("daemon.c"),
        place.work.path().join("daemon"),
    );
    std::fs::write(&source, DAEMON).unwrap();
    assert!(
        Command::new("cc")
            .arg("-fno-builtin")
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .status()
            .unwrap()
            .success()
    );
    agree_in(&place, &["./daemon"], 2, 10_000);
}

/// Works after its parent has stopped waiting for it.
const DAEMON: &str = "#include <stdlib.h>\n#include <unistd.h>\n
int main(void) {
    free(malloc(100));
    if (daemon(1, 0)) return 1;
    usleep(100000);
    for (int i = 0; i < 10000; i++) free(malloc(i));
}\n";

#[test]
fn a_counter_that_is_off_by_one_is_noticed() {
    let place = Place::new(&["-DMISCOUNTS"]);
    let compared = compare(&place, &["perl", "-e", "print 1"]);
    let [process] = &compared.processes[..] else {
        panic!("{:?}", compared.processes)
    };
    let (recorded, counted) = (process.recorded.unwrap(), process.counted.unwrap());
    assert!(!process.agrees());
    assert_eq!(
        process.to_string().split_once(": ").unwrap().1,
        format!("free: {} recorded, {} counted;", recorded[4], counted[4])
    );
    assert_eq!(recorded[4] + 1, counted[4]);
}

#[test]
fn a_process_that_runs_unrecorded_is_noticed() {
    let compared = compare(
        &Place::new(&[]),
        &[
            "sh",
            "-c",
            "env -u HEAPMARK_RECORD_TO perl -e 'print 1'; true",
        ],
    );
    let differ: Vec<_> = compared
        .processes
        .iter()
        .filter(|process| !process.agrees())
        .collect();
    let [perl] = &differ[..] else {
        panic!("{differ:?}")
    };
    assert!(perl.to_string().ends_with(" calls, not recorded"), "{perl}");
}
