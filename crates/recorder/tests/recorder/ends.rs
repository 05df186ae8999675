//! However a program ends, and whatever stops its recording from growing: all calls until then are
//! recorded, and the program is not affected.

use crate::support::{Ledger, Scenario, good};
use heapmark_wire::capture::{Call, Event, FIRST_BYTES};
use std::os::unix::process::ExitStatusExt;

/// Pairs of calls that fit into a stream's first chunk, at least.
const FIRST_CHUNK: usize = FIRST_BYTES / 5;

/// How many the program reports as done.
fn done(scenario: &Scenario) -> usize {
    u64::from_le_bytes(
        std::fs::read(scenario.dir.path().join("count"))
            .unwrap()
            .try_into()
            .unwrap(),
    ) as usize
}

#[test]
fn exit_without_destructors_loses_nothing() {
    let scenario = Scenario::new("counted.c");
    let (_, capture) = scenario.recorded(&["50000"]);
    assert_eq!(
        (done(&scenario), capture.mallocs(9001), capture.text("end")),
        (50_000, 50_000, "")
    );
}

#[test]
fn what_libraries_do_in_destructors_after_the_recorders_own_is_on_record() {
    let home = tempfile::tempdir().unwrap();
    let library = home.path().join("late_library.so");
    crate::support::compile("late_library.c", &library, &["-shared", "-fPIC"]);
    let scenario = Scenario::with_flags("late_destructor.c", &[library.to_str().unwrap()]);
    let (_, capture) = scenario.recorded(&[]);
    assert_eq!(
        (
            capture.mallocs(8951),
            Ledger::of(&capture).alive(8951),
            capture.mallocs(8952)
        ),
        (1000, 0, 10)
    );
    assert_eq!((capture.text("end"), capture.unsealed), ("exit", 0));
}

#[test]
fn killed_at_any_moment_all_that_was_done_is_on_record() {
    for round in 0..5 {
        let scenario = Scenario::new("counted.c");
        let mut child = scenario
            .command(scenario.program())
            .arg("0")
            .spawn()
            .unwrap();
        let has_begun =
            || std::fs::read(scenario.dir.path().join("count")).is_ok_and(|count| count.len() == 8);
        while !has_begun() || done(&scenario) == 0 {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(13 + 29 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let capture = scenario.capture();
        Ledger::of(&capture).assert_consistent();
        let (done, recorded) = (done(&scenario), capture.mallocs(9001));
        assert!(
            recorded == done || recorded == done + 1,
            "{done} done, {recorded} recorded"
        );
        assert!(done > 0);
    }
}

#[test]
fn where_files_may_not_grow_recording_ends_and_the_program_goes_on() {
    let scenario = Scenario::new("closefrom.c");
    let program = scenario.program().to_str().unwrap();
    let mut shell = scenario.command("/bin/sh");
    // In units of 512 bytes: 768 KiB.
    shell
        .arg("-c")
        .arg(format!("ulimit -f 1536; exec {program}"));
    good(shell.output().unwrap());
    let captures = scenario.captures();
    let capture = captures.last().unwrap();
    Ledger::of(capture).assert_consistent();
    assert_eq!(
        (capture.text("end"), capture.chunks),
        ("file-size-limit", 2)
    );
    assert!(capture.mallocs(8502) > 10_000);
}

#[test]
fn on_a_full_disk_recording_ends_and_the_program_goes_on() {
    let scenario = Scenario::new("closefrom.c");
    let disk = scenario.dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let run = |command: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(command);
        command
            .args(arguments)
            .arg(&disk)
            .output()
            .is_ok_and(|end| end.status.success())
    };
    if !run("mount", &["-t", "tmpfs", "-o", "size=800k", "tmpfs"]) {
        eprintln!("not tested: nothing may be mounted here");
        return;
    }
    let end = scenario
        .command(scenario.program())
        .env("HEAPMARK_RECORD_TO", disk.join("run"))
        .output();
    let captures = crate::support::captures(&disk);
    // Lazily: a process that another test starts just now still has what was open here, until it runs its program.
    assert!(run("umount", &["--lazy"]));
    good(end.unwrap());
    let [capture] = &captures[..] else {
        panic!("one process, one recording")
    };
    Ledger::of(capture).assert_consistent();
    // The text, a small chunk of events and two large ones.
    assert_eq!((capture.text("end"), capture.chunks), ("no-space", 3));
    assert!(capture.mallocs(8502) > 10_000);
}

#[test]
fn recording_ends_at_the_size_that_was_asked_for() {
    // A small first chunk is there in any case. Of 768 KiB, 56 are the text and that chunk.
    for (bytes, chunks) in [(1, 1), (768 << 10, 3)] {
        let scenario = Scenario::new("closefrom.c").with("HEAPMARK_RECORD_MAX_BYTES", bytes);
        let (_, capture) = scenario.recorded(&[]);
        assert_eq!((capture.text("end"), capture.chunks), ("max-bytes", chunks));
    }
}

#[test]
fn recording_ends_at_the_moment_that_was_asked_for() {
    let scenario = Scenario::new("closefrom.c").with("HEAPMARK_RECORD_UNTIL_NS", 1);
    let (_, capture) = scenario.recorded(&[]);
    assert_eq!(
        (capture.text("end"), capture.mallocs(8502)),
        ("duration", 0)
    );
}

#[test]
fn where_the_file_is_out_of_reach_recording_ends_and_the_program_goes_on() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not tested: only root may chroot");
        return;
    }
    let (_, capture) = Scenario::new("chroot.c").recorded(&[]);
    assert_eq!(
        (capture.text("end"), capture.mallocs(8601)),
        ("file-gone", 1)
    );
    assert!(capture.mallocs(8602) > FIRST_CHUNK);
}

#[test]
fn where_no_file_can_be_made_the_program_runs_as_ever() {
    let scenario = Scenario::new("family.c");
    let mut command = scenario.command(scenario.program());
    command.env(
        "HEAPMARK_RECORD_TO",
        scenario.dir.path().join("no such folder/run"),
    );
    good(command.output().unwrap());
    assert!(scenario.captures().is_empty());
    // A file that was created but cannot get space is removed; the shell had space.
    let mut shell = scenario.command("/bin/sh");
    shell.arg("-c").arg(format!(
        "ulimit -f 100; exec {}",
        scenario.program().display()
    ));
    good(shell.output().unwrap());
    assert!(
        scenario
            .captures()
            .iter()
            .all(|capture| capture.text("exe").ends_with("sh"))
    );
}

#[test]
fn calls_of_the_system_that_a_program_forbids_itself_end_recording_and_not_the_program() {
    // SECCOMP_RET_ERRNO
    let answers = |error: i32| 0x5_0000 | error as u32;
    for (call, error, end) in [
        (libc::SYS_openat, libc::EPERM, "no-permission"),
        (libc::SYS_openat, libc::EMFILE, "no-descriptor"),
        (libc::SYS_pwrite64, libc::EDQUOT, "quota"),
        (libc::SYS_mmap, libc::EPERM, "no-permission"),
        (libc::SYS_mmap, libc::ENOMEM, "no-memory"),
    ] {
        let (_, capture) =
            Scenario::new("seccomp.c").recorded(&[&call.to_string(), &answers(error).to_string()]);
        assert_eq!(
            (capture.text("end"), capture.mallocs(8901)),
            (end, 1),
            "call {call}, error {error}"
        );
        assert!(
            (FIRST_CHUNK..400_000).contains(&capture.mallocs(8902)),
            "{}",
            capture.mallocs(8902)
        );
    }
}

#[test]
fn a_program_that_is_killed_for_a_forbidden_call_is_on_record_until_then() {
    let scenario = Scenario::new("seccomp.c");
    // SECCOMP_RET_KILL_PROCESS
    let words = [libc::SYS_openat.to_string(), 0x8000_0000_u32.to_string()];
    let end = scenario
        .command(scenario.program())
        .args(words)
        .status()
        .unwrap();
    assert_eq!(end.signal(), Some(libc::SIGSYS));
    let capture = scenario.capture();
    Ledger::of(&capture).assert_consistent();
    assert_eq!((capture.text("end"), capture.mallocs(8901)), ("", 1));
    assert!(capture.mallocs(8902) > FIRST_CHUNK);
}

#[test]
fn where_no_memory_is_left_recording_ends_and_the_program_goes_on() {
    let scenario = Scenario::new("no_memory.c");
    let program = scenario.program().to_str().unwrap();
    let mut shell = scenario.command("/bin/sh");
    // In units of 1024 bytes.
    shell
        .arg("-c")
        .arg(format!("ulimit -v 200000; exec {program}"));
    good(shell.output().unwrap());
    let captures = scenario.captures();
    let capture = captures.last().unwrap();
    Ledger::of(capture).assert_consistent();
    assert_eq!(
        (capture.text("end"), capture.mallocs(9301)),
        ("no-memory", 100_000)
    );
    assert!(capture.mallocs(9302) > 10_000);
    assert!(
        capture.count(|e| matches!(
            e,
            Event::Failed {
                call: Call::Malloc,
                ..
            }
        )) > 1000
    );
}

#[test]
fn a_program_that_is_stopped_and_goes_on_is_on_record_all_along() {
    let scenario = Scenario::new("counted.c");
    // Reserving a chunk in memory (tmpfs) can be interrupted.
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut command = scenario.command(scenario.program());
    let mut child = command
        .arg("0")
        .env("HEAPMARK_RECORD_TO", folder.path().join("run"))
        .spawn()
        .unwrap();
    while std::fs::metadata(scenario.dir.path().join("count")).map_or(true, |file| file.len() < 8) {
        std::thread::yield_now();
    }
    let signal = |signal| {
        // SAFETY: a child of ours that was not waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        std::thread::sleep(std::time::Duration::from_micros(700));
    };
    (0..200).for_each(|_| [libc::SIGSTOP, libc::SIGCONT].into_iter().for_each(signal));
    let before = done(&scenario);
    while done(&scenario) < before + 300_000 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let [capture] = &crate::support::captures(folder.path())[..] else {
        panic!("one process, one recording")
    };
    Ledger::of(capture).assert_consistent();
    let (done, recorded) = (done(&scenario), capture.mallocs(9001));
    assert!(
        capture.text("end").is_empty() && (recorded == done || recorded == done + 1),
        "{done} done, {recorded} recorded"
    );
}
