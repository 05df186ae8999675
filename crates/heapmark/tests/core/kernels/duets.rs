//! Duets: an allocator and the baseline take turns on one CPU.

use crate::support::live::{guests, start, wait_for};
use crate::support::{End, Place, of_purpose, samples, word};
use anyhow::ensure;
use heapmark_core::execute::child::own_descriptors;
use heapmark_core::execute::lanes::spread;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

const WORK: [&str; 10] = [
    "run",
    "-w",
    "churn",
    "-t",
    "1",
    "--target-ms",
    "10",
    "--no-aa-copy",
    "--no-floor",
    "--no-repeat",
];

/// Of two libraries, the first one the baseline.
fn run(place: &Place, name: &str, libraries: [&str; 2], flags: &[&str]) -> End {
    let word = |it: &&str| format!("{it}={}", place.fake(it).display());
    let both = libraries.each_ref().map(word).join(",");
    let choice = ["-a", &both, "--baseline", libraries[0], "-o", name];
    place.run(&[&WORK[..], &choice, flags].concat())
}

/// Whether this kernel's scheduler gives turns of a length that is asked for; heapmark must then say so.
fn gives_slices(end: &End) -> bool {
    let refused = end.code == Some(2);
    if refused {
        end.is_one_line(2);
        assert!(end.stderr.contains("take --turns stop"), "{}", end.stderr);
    }
    !refused
}

fn turns(sample: &Value) -> &Value {
    &sample["measurement"]["turns"]
}

#[test]
fn both_sides_of_a_duet_take_turns_on_one_cpu_whoever_gives_them() {
    let place = Place::of_turns();
    for by in ["slices", "stop"] {
        let flags = ["--turns", by, "--blocks", "2"];
        let end = run(&place, by, ["honest", "sluggish"], &flags);
        if by == "slices" && !gives_slices(&end) {
            continue;
        }
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let so_far = "block 1 of 2: best so far honest, at most ";
        assert!(end.stderr.contains(so_far), "{}", end.stderr);
        let records = samples(&place.at(by));
        let mut duets: BTreeMap<(String, String), Vec<&Value>> = BTreeMap::new();
        for sample in of_purpose(&records, "sample") {
            let key = [&sample["block"], &sample["part"]].map(Value::to_string);
            duets.entry(key.into()).or_default().push(sample);
        }
        assert_eq!(duets.len(), 2, "a duet in each block: {records:?}");
        for sides in duets.values() {
            let [one, other] = sides[..] else {
                panic!("two sides: {sides:?}");
            };
            assert_eq!(turns(one)["cpu"], turns(other)["cpu"]);
            for side in [one, other] {
                assert_eq!(word(turns(side), "by"), by);
                assert!(turns(side)["turn_ns"].as_u64() > Some(0), "{side}");
                let runs = turns(side)["runs"].as_u64().unwrap();
                let iterations = side["measurement"]["iterations"].as_array().unwrap().len();
                assert!(iterations as u64 >= runs && runs > 0, "{side}");
            }
            // The slower one is ten times slower: beside each of its processes ran several of the other.
            let runs = |name: &str| {
                let side = sides.iter().find(|side| word(side, "allocator") == name);
                turns(side.unwrap())["runs"].as_u64().unwrap()
            };
            assert!(runs("honest") > runs("sluggish"), "{sides:?}");
        }
        let trial = of_purpose(&records, "trial");
        assert_eq!(trial.len(), 1);
        assert_eq!(word(&trial[0]["outcome"], "kind"), "ok", "{trial:?}");
        let rows = place.run(&["export", by, "--to", "json"]).stdout;
        let rows: Value = serde_json::from_str(&rows).unwrap();
        let rows = &rows["analysis"]["cases"][0];
        assert_eq!(rows["took_turns"], true);
        let ratio = |row: &Value| row["state"]["time"]["ratio"]["ratio"].as_f64();
        let slow = rows["rows"].as_array().unwrap().iter();
        let slow = slow
            .filter(|row| row["allocator"] == "sluggish")
            .find_map(ratio);
        assert!(slow > Some(1.5), "{rows}");
    }
}

/// Makes `unshare` fail in this thread and in all that it starts, as the rules of a container do.
fn forbid_unshare() -> io::Result<()> {
    let step = |code: u32, no: u8, operand: u32| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: no,
        k: operand,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let is = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        step(load, 0, 0),
        step(is, 1, libc::SYS_unshare as u32),
        step(answer, 0, refused),
        step(answer, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: plain system calls; the kernel copies the filter.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            + libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program)
    };
    match failed {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[test]
fn lanes_work_at_the_same_time_even_if_they_must_share_their_descriptors() {
    let begun = AtomicUsize::new(0);
    let one = |_: &u32| {
        begun.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        while begun.load(Ordering::Relaxed) < 2 {
            let is_early = began.elapsed() < Duration::from_secs(60);
            ensure!(is_early, "the other one does not begin");
            std::thread::yield_now();
        }
        Ok(())
    };
    let done = scope(|scope| {
        let forbidden = scope.spawn(|| {
            forbid_unshare().unwrap();
            assert!(!own_descriptors());
            spread(2, &[0, 1], one, |_, ()| Ok(()))
        });
        forbidden.join().unwrap()
    });
    done.unwrap();
}

#[test]
fn processes_take_turns_where_no_thread_may_have_descriptors_of_its_own() {
    let place = Place::of_turns();
    let both = both(&place);
    let choice = ["-a", &both, "-o", "run", "--turns", "stop", "--blocks", "1"];
    let mut command = place.heapmark(&[&WORK[..], &choice].concat());
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe { command.pre_exec(forbid_unshare) };
    let end = End::of(command.output().unwrap());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let of_blocks = of_purpose(&records, "sample");
    assert_eq!(of_blocks.len(), 2, "{records:?}");
    for sample in of_blocks {
        assert!(!turns(sample).is_null(), "{sample}");
    }
}

#[test]
fn a_library_that_leaves_its_cpu_cannot_hide_in_a_duet() {
    let place = Place::of_turns();
    let flags = ["--turns", "stop", "--blocks", "2"];
    let end = run(&place, "run", ["honest", "unpinner"], &flags);
    let records = samples(&place.at("run"));
    // In its check, if there is but one CPU.
    let own = records
        .iter()
        .filter(|it| word(it, "allocator") == "unpinner");
    let outcomes: BTreeSet<(&str, &str)> = own
        .map(|it| (word(it, "purpose"), word(&it["outcome"], "kind")))
        .collect();
    assert!(
        outcomes.iter().any(|(_, kind)| *kind == "unsupported"),
        "{}",
        end.stdout
    );
    assert!(!outcomes.contains(&("sample", "ok")), "{}", end.stdout);
}

#[test]
fn a_command_that_cannot_take_turns_is_measured_alone_and_the_table_says_why() {
    let place = Place::of_turns();
    for (line, why) in [
        (
            "echo x >> out".to_string(),
            "since out changed while it ran",
        ),
        (
            format!("({HALF_AS_BUSY}) & ({HALF_AS_BUSY}) & wait"),
            "work at once",
        ),
        ("true".into(), "too short for turns"),
    ] {
        let both = both(&place);
        let run = [
            "try",
            "-o",
            "run",
            "-a",
            &both,
            "--blocks",
            "1",
            "--no-aa-copy",
            "--no-repeat",
        ];
        let command = ["--turns", "stop", "--", "sh", "-c", &line];
        let end = place.run(&[&run[..], &command].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let said = format!("{} {}", end.stdout, end.stderr);
        assert!(end.says("Measured alone"), "{said}");
        assert!(end.stderr.contains(why), "{why}: {said}");
        let records = samples(&place.at("run"));
        for sample in of_purpose(&records, "sample") {
            assert!(turns(sample).is_null(), "{sample}");
        }
        std::fs::remove_dir_all(place.at("run")).unwrap();
    }
}

/// A command, one thread of shell, that takes turns unless something keeps it from that; what each of its processes has noted.
fn try_it(place: &Place, flags: &[&str], line: &str) -> (End, Vec<Value>) {
    let both = both(place);
    let run = [
        "try",
        "-o",
        "run",
        "-a",
        &both,
        "--no-aa-copy",
        "--blocks",
        "1",
    ];
    let end = place.run(&[&run[..], flags, &["--", "sh", "-c", line]].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let records = samples(&place.at("run"));
    let of_blocks = of_purpose(&records, "sample")
        .into_iter()
        .cloned()
        .collect();
    (end, of_blocks)
}

/// The C library and another allocator.
fn both(place: &Place) -> String {
    format!("glibc,honest={}", place.fake("honest").display())
}

/// A command that takes turns needs 40 ms of CPU time. This is three times as much, since other machines are faster.
const BUSY: &str = "i=0; while [ $i -lt 80000 ]; do i=$((i+1)); done";
const HALF_AS_BUSY: &str = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done";

#[test]
fn a_command_takes_turns_unless_it_is_to_run_alone() {
    for (flags, takes_turns) in [(&[][..], true), (&["--alone", "--no-repeat"], false)] {
        let place = Place::of_turns();
        let (end, records) = try_it(&place, flags, BUSY);
        assert_eq!(records.len(), 2, "{}", end.stdout);
        for sample in &records {
            assert_eq!(turns(sample).is_null(), !takes_turns, "{sample}");
        }
    }
}

#[test]
fn a_side_that_is_named_keeps_files_apart() {
    let place = Place::of_turns();
    let line = format!("cat made-{{side}} >> out-{{side}}; {BUSY}; echo {{side}} >> out-{{side}}");
    let prepare = ["--prepare", "echo made-{side} > made-{side}"];
    let (end, records) = try_it(&place, &prepare, &line);
    assert!(
        records.iter().all(|it| !turns(it).is_null()),
        "{}",
        end.stderr
    );
    for side in ["0", "1"] {
        let written = std::fs::read_to_string(place.at(&format!("out-{side}"))).unwrap();
        let words: BTreeSet<&str> = written.lines().collect();
        assert_eq!(words, BTreeSet::from([side, &format!("made-{side}")]));
    }
    let same = ["--turns", "stop", "--prepare", "true"];
    let both = both(&place);
    let run = ["try", "-a", &both, "--", "sh", "-c", BUSY];
    let refused = place.run(&[&run[..1], &same, &run[1..]].concat());
    refused.is_one_line(2);
    assert!(
        refused.stderr.contains("only if `{side}` is in it"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_try_takes_six_allocators_and_three_minutes_unless_it_is_told_otherwise() {
    let place = Place::of_turns();
    let plan = |flags: &[&str]| {
        let end = place.run(&[&["try", "--dry-run"], flags, &["--", "true"]].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        end
    };
    let end = plan(&[]);
    assert!(
        end.says("none that would end after 180 s"),
        "{}",
        end.stdout
    );
    let said = format!("{}{}", end.stdout, end.stderr);
    for (name, is_in) in [
        ("mimalloc3", true),
        ("snmalloc", true),
        ("dlmalloc", false),
        ("scudo", false),
    ] {
        assert_eq!(said.contains(name), is_in, "{name}: {said}");
    }
    for (flags, lasts) in [
        (
            &["--precision", "1%"][..],
            "6 to 40, until each interval is within 1.00 %, nothing that takes turns",
        ),
        (
            &["--blocks", "7", "--budget", "2h"],
            "7, none that would end after 7200 s",
        ),
    ] {
        let end = plan(flags);
        assert!(end.says(lasts), "{}", end.stdout);
    }
}

#[test]
fn a_cache_that_is_written_once_keeps_nobody_from_turns() {
    let place = Place::of_turns();
    let line = format!("[ -e cache ] || echo filled > cache; {BUSY}");
    let (end, records) = try_it(&place, &[], &line);
    assert!(
        records.iter().all(|it| !turns(it).is_null()),
        "{}",
        end.stderr
    );
}

#[test]
fn lengths_of_turns_follow_each_other_from_duet_to_duet() {
    let place = Place::of_turns();
    let flags = ["--turns", "stop=10,30", "--blocks", "4"];
    let both = both(&place);
    let choice = ["-a", &both, "--no-aa-copy", "-o", "other"];
    let end = place.run(
        &[
            &WORK[..5],
            &choice,
            &["--target-ms", "10", "--no-floor"],
            &flags,
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let records = samples(&place.at("other"));
    let mut lengths: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for sample in of_purpose(&records, "sample") {
        let block = sample["block"].as_u64().unwrap_or(0);
        let length = turns(sample)["slice_ns"].as_u64().unwrap();
        lengths
            .entry(length / 1_000_000)
            .or_default()
            .insert(block % 2);
    }
    let all: Vec<usize> = lengths.values().map(BTreeSet::len).collect();
    assert_eq!(
        (lengths.keys().copied().collect::<Vec<_>>(), all),
        (vec![10, 30], vec![1, 1])
    );
    for (turns, why) in [
        ("stop=0", "expected 1 to 100, in milliseconds"),
        ("slices=20,", "expected 1 to 100, in milliseconds"),
        ("often", "expected slices or stop"),
    ] {
        let end = place.run(&["run", "-w", "churn", "-t", "1", "--turns", turns]);
        assert_eq!(end.code, Some(2), "{}", end.stderr);
        assert!(end.stderr.contains(why), "{}", end.stderr);
    }
}

#[test]
fn runs_by_different_clocks_are_not_compared() {
    let place = Place::of_turns();
    for (name, how) in [("alone", &["--alone"][..]), ("turns", &["--turns", "stop"])] {
        let flags = [how, &["--blocks", "1"]].concat();
        let end = run(&place, name, ["honest", "sluggish"], &flags);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
    }
    let end = place.run(&["compare", "alone", "turns"]);
    let said = format!("{}{}", end.stdout, end.stderr);
    assert!(
        said.contains("one run measured it in turns and by CPU time, the other alone"),
        "{said}"
    );
    let refused = place.run(&[
        "run", "-w", "larson", "-t", "2", "-a", "glibc", "--turns", "stop",
    ]);
    refused.is_one_line(2);
    assert!(
        refused.stderr.contains("nothing here can take turns"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_killed_heapmark_leaves_no_stopped_process() {
    let place = Place::of_turns();
    let both = format!("glibc,sluggish={}", place.fake("sluggish").display());
    let choice = [
        "-a", &both, "--blocks", "50", "-o", "run", "--turns", "stop",
    ];
    let mut child = start(&place, &[&WORK[..], &choice].concat());
    wait_for("a duet", || guests(&place) >= 4);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of all", || guests(&place) == 0);
}
