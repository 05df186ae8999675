//! However a program ends, and whatever keeps its recording from growing: what was done until then is on record, and the program
//! does not notice.

mod support;

use support::{Ledger, Scenario, good};

/// What the program says it had done.
fn done(scenario: &Scenario) -> usize {
    u64::from_le_bytes(std::fs::read(scenario.dir.path().join("count")).unwrap().try_into().unwrap()) as usize
}

#[test]
fn exit_without_destructors_loses_nothing() {
    let scenario = Scenario::new("counted.c");
    let (_, capture) = scenario.recorded(&["50000"]);
    assert_eq!((done(&scenario), capture.mallocs(9001), capture.text("end")), (50_000, 50_000, ""));
}

#[test]
fn killed_at_any_moment_all_that_was_done_is_on_record() {
    for round in 0..5 {
        let scenario = Scenario::new("counted.c");
        let mut child = scenario.command(scenario.program()).arg("0").spawn().unwrap();
        while std::fs::metadata(scenario.dir.path().join("count")).map_or(true, |file| file.len() < 8) {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(13 + 29 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let capture = scenario.capture();
        Ledger::of(&capture).assert_consistent();
        let (done, recorded) = (done(&scenario), capture.mallocs(9001));
        assert!(recorded == done || recorded == done + 1, "{done} done, {recorded} recorded");
        assert!(done > 0);
    }
}

#[test]
fn where_files_may_not_grow_recording_ends_and_the_program_goes_on() {
    let scenario = Scenario::new("closefrom.c");
    let program = scenario.program().to_str().unwrap();
    let mut shell = scenario.command("/bin/sh");
    // In units of 512 bytes: 768 KiB.
    shell.arg("-c").arg(format!("ulimit -f 1536; exec {program}"));
    good(shell.output().unwrap());
    let captures = scenario.captures();
    let capture = captures.last().unwrap();
    Ledger::of(capture).assert_consistent();
    assert_eq!((capture.text("end"), capture.chunks), ("file-size-limit", 2));
    assert!(capture.mallocs(8502) > 10_000);
}

#[test]
fn on_a_full_disk_recording_ends_and_the_program_goes_on() {
    let scenario = Scenario::new("closefrom.c");
    let disk = scenario.dir.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let run = |command: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(command);
        command.args(arguments).arg(&disk).output().is_ok_and(|end| end.status.success())
    };
    if !run("mount", &["-t", "tmpfs", "-o", "size=1m", "tmpfs"]) {
        eprintln!("not tested: nothing may be mounted here");
        return;
    }
    let end = scenario.command(scenario.program()).env("HEAPMARK_RECORD_TO", disk.join("run")).output();
    let captures = support::captures(&disk);
    assert!(run("umount", &[]));
    good(end.unwrap());
    let [capture] = &captures[..] else { panic!("one process, one recording") };
    Ledger::of(capture).assert_consistent();
    // The text, and three chunks of events.
    assert_eq!((capture.text("end"), capture.chunks), ("no-space", 3));
    assert!(capture.mallocs(8502) > 10_000);
}

#[test]
fn recording_ends_at_the_size_that_was_asked_for() {
    let scenario = Scenario::new("closefrom.c").with("HEAPMARK_RECORD_MAX_BYTES", 1 << 20);
    let (_, capture) = scenario.recorded(&[]);
    assert_eq!((capture.text("end"), capture.chunks), ("max-bytes", 3));
}

#[test]
fn recording_ends_at_the_moment_that_was_asked_for() {
    let scenario = Scenario::new("closefrom.c").with("HEAPMARK_RECORD_UNTIL_NS", 1);
    let (_, capture) = scenario.recorded(&[]);
    assert_eq!((capture.text("end"), capture.mallocs(8502)), ("duration", 0));
}

#[test]
fn where_the_file_is_out_of_reach_recording_ends_and_the_program_goes_on() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("not tested: only root may chroot");
        return;
    }
    let (_, capture) = Scenario::new("chroot.c").recorded(&[]);
    assert_eq!((capture.text("end"), capture.mallocs(8601)), ("file-gone", 1));
    assert!(capture.mallocs(8602) > 10_000);
}

#[test]
fn where_no_file_can_be_made_the_program_runs_as_ever() {
    let scenario = Scenario::new("family.c");
    let mut command = scenario.command(scenario.program());
    command.env("HEAPMARK_RECORD_TO", scenario.dir.path().join("no such folder/run"));
    good(command.output().unwrap());
    assert!(scenario.captures().is_empty());
}
