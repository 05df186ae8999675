//! The checks with a runner that follows a script: hangs, twins, order, lanes, interruption. No process
//! is started.

use super::*;
use crate::definition::{self, MisuseOutcome};
use heapmark_core::store::CheckVerdict;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;

/// How a process of the script ends, by the number of its check's earlier processes; `None`
/// interrupts the checks.
type Answer = Box<dyn Fn(&CheckJob, usize) -> Option<ProcessEnd> + Sync>;

/// A runner that answers each process as the test says, and logs it.
struct Script {
    lanes: usize,
    left_to_libc: &'static [&'static str],
    answer: Answer,
    log: Mutex<Vec<String>>,
    swept: AtomicUsize,
}

impl Script {
    fn new(answer: impl Fn(&CheckJob, usize) -> Option<ProcessEnd> + Sync + 'static) -> Script {
        Script {
            lanes: 1,
            left_to_libc: &[],
            answer: Box::new(answer),
            log: Mutex::default(),
            swept: AtomicUsize::new(0),
        }
    }

    /// Makes these checks under these allocators.
    fn make(&self, names: &[&str], is_full: bool, allocators: &[&str]) -> (CheckFile, TempDir) {
        let mut checks = definition::all().unwrap();
        checks.retain(|check| names.contains(&check.name.as_str()));
        assert_eq!(checks.len(), names.len());
        let folder = tempfile::tempdir().unwrap();
        let session = CheckSession {
            runner: self,
            checks: &checks,
            is_full,
            is_named: true,
            timeout: Some(Duration::from_millis(500)),
            folder: folder.path(),
            shelf: None,
            asked: |subject| format!("{0}=/a folder/{0}.so", subject.allocator.name),
            say: |_| (),
        };
        let subjects = allocators.iter().map(|name| {
            let info = json!({"name": name, "family": "", "tier": "", "origin": "", "version": "", "files": [],
                              "sha256": [], "left_to_libc": self.left_to_libc, "purge": "none", "purged_as": null});
            let mut subject = Subject::libc();
            subject.allocator.name = name.to_string();
            subject.allocator.wrapper = *name == "wrapper";
            (subject, serde_json::from_value(info).unwrap())
        });
        let subjects: Vec<_> = subjects.collect();
        let file = CheckFile::new("quick", BTreeMap::new());
        (session.run(&subjects, file).unwrap(), folder)
    }

    /// Makes these checks under one allocator.
    fn make_of_one(&self, names: &[&str], is_full: bool) -> CheckedAllocator {
        let (mut file, _) = self.make(names, is_full, &["one"]);
        assert!(!file.unfinished);
        file.allocators.remove(0)
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

impl CheckRunner for Script {
    fn lanes(&self) -> usize {
        self.lanes
    }

    fn trial(&self, _: &Subject, job: &CheckJob) -> Result<Trial> {
        let name = &job.check.name;
        let line = match job.check.is_wrong() {
            true => format!(
                "{name} {} {} {}",
                job.cell.0,
                if job.is_wrong { "wrong" } else { "right" },
                job.seed
            ),
            false => name.clone(),
        };
        let mut log = self.log.lock().unwrap();
        let before = log.iter().filter(|entry| entry.starts_with(name)).count();
        log.push(line);
        drop(log);
        let ended = (self.answer)(job, before).ok_or(Interrupted)?;
        Ok(Trial {
            ended,
            ..Trial::default()
        })
    }

    fn end_orphans(&self) {
        self.swept.fetch_add(1, Ordering::Relaxed);
    }
}

fn hung() -> Option<ProcessEnd> {
    Some(ProcessEnd::Hung(Duration::from_secs(10)))
}

fn crashed() -> Option<ProcessEnd> {
    Some(ProcessEnd::Broken("SIGSEGV".into()))
}

#[test]
fn after_four_hangs_no_more_processes_are_started() {
    let always = Script::new(|job, _| match job.is_wrong {
        true => hung(),
        false => Some(ProcessEnd::Done),
    });
    let one = always.make_of_one(&["fork-ways", "double-free"], true);
    let result = &one.results[0];
    assert_eq!((result.verdict, result.times), (CheckVerdict::Hang, (4, 4)));
    for cell in &one.hardening[0].cells {
        assert_eq!(cell.tally, BTreeMap::from([(MisuseOutcome::Hang, 4)]));
    }
    let every_second = Script::new(|_, before| match before % 2 {
        0 => hung(),
        _ => Some(ProcessEnd::Done),
    });
    let one = every_second.make_of_one(&["fork-ways"], true);
    assert_eq!((one.results[0].times, one.results[0].failed), ((4, 7), 4));
}

#[test]
fn what_fails_is_asked_whether_it_does_so_each_time() {
    let once = Script::new(|_, before| match before {
        0 => crashed(),
        _ => Some(ProcessEnd::Done),
    });
    let one = once.make_of_one(&["free-errno"], false);
    let result = &one.results[0];
    assert_eq!(
        (result.verdict, result.times, result.failed),
        (CheckVerdict::Crash, (1, 3), 1)
    );
    assert_eq!(result.reasons, ["SIGSEGV"]);
    let never = Script::new(|_, _| Some(ProcessEnd::Done));
    assert_eq!(
        never.make_of_one(&["free-errno"], false).results[0].times,
        (1, 1)
    );
    // The number of a wrong program's processes does not depend on their outcomes.
    let wrong = Script::new(|job, _| match job.is_wrong {
        true => crashed(),
        false => Some(ProcessEnd::Done),
    });
    let one = wrong.make_of_one(&["double-free"], false);
    assert_eq!(one.hardening[0].cells[0].tally.values().sum::<u32>(), 2);
}

#[test]
fn a_wrong_program_runs_after_its_twin_and_only_if_that_ends_well() {
    let small_twin_fails = Script::new(|job, _| match (job.is_wrong, job.cell.0) {
        (false, 24) => crashed(),
        _ => Some(ProcessEnd::Done),
    });
    let one = small_twin_fails.make_of_one(&["double-free"], false);
    assert_eq!(
        small_twin_fails.log(),
        [
            "double-free 24 right 0",
            "double-free 262144 right 0",
            "double-free 262144 wrong 0",
            "double-free 262144 wrong 1",
        ]
    );
    let [small, large] = one.hardening[0].cells.as_slice() else {
        panic!("two sizes");
    };
    assert_eq!(small.outcome, MisuseOutcome::Error);
    assert_eq!(
        small.reasons,
        ["without the misuse: before the misuse SIGSEGV"]
    );
    assert!(small.tally.is_empty());
    assert_eq!(large.outcome, MisuseOutcome::Absorbed);
    assert_eq!(
        large.again,
        "heapmark check -a 'one=/a folder/one.so' --only double-free --timeout 0.5s"
    );
}

#[test]
fn what_the_c_library_serves_is_held_against_a_library_only_by_checks_of_the_standing_gnu() {
    let script = Script {
        left_to_libc: &["malloc_usable_size", "pvalloc"],
        ..Script::new(|_, _| Some(ProcessEnd::Done))
    };
    let names = [
        "realloc-usable",
        "usable-size",
        "free-null",
        "over-1-usable",
    ];
    let one = script.make_of_one(&names, false);
    let verdicts = one.results.iter().map(|it| (it.check.as_str(), it.verdict));
    let expected = [
        ("free-null", CheckVerdict::Pass),
        ("realloc-usable", CheckVerdict::Unsupported),
        ("usable-size", CheckVerdict::Pass),
    ];
    assert_eq!(BTreeMap::from_iter(verdicts), BTreeMap::from(expected));
    let why = "malloc_usable_size is the C library's";
    let unsupported = one.results.iter().find(|it| it.check == "realloc-usable");
    assert_eq!(unsupported.unwrap().reasons, [why]);
    for cell in &one.hardening[0].cells {
        assert_eq!(cell.outcome, MisuseOutcome::Unsupported);
        assert_eq!(cell.reasons, [why]);
    }
    assert!(!script.log().iter().any(|line| line.contains("over-1")));
    // A wrapper's blocks are the C library's.
    let (file, _folder) = script.make(&names, false, &["wrapper"]);
    let of_wrapper = file.allocators[0].results.iter();
    let mut verdicts = of_wrapper.map(|it| it.verdict);
    assert!(verdicts.all(|verdict| verdict == CheckVerdict::Pass));
}

#[test]
fn those_that_may_take_longest_come_first_and_results_have_the_order_of_groups() {
    let script = Script::new(|_, _| Some(ProcessEnd::Done));
    // The processes of these checks may take 6, 10, 80 and 30 seconds in all.
    let names = ["double-free", "free-errno", "fork-ways", "give-back-large"];
    let one = script.make_of_one(&names, false);
    let mut began = script.log();
    began.dedup();
    assert_eq!(began[..3], ["fork-ways", "give-back-large", "free-errno"]);
    assert!(began[3].starts_with("double-free"), "{began:?}");
    let results = one.results.iter().map(|result| result.check.as_str());
    assert_eq!(
        Vec::from_iter(results),
        ["free-errno", "fork-ways", "give-back-large"]
    );
}

#[test]
fn as_many_processes_run_side_by_side_as_there_are_lanes() {
    let now = AtomicUsize::new(0);
    let most = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let script = Script::new(move |_, _| {
        seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Waits until the other processes are there, or are known not to come.
        let began = Instant::now();
        while seen.load(Ordering::SeqCst) < 3 && began.elapsed() < Duration::from_secs(5) {
            std::thread::yield_now();
        }
        now.fetch_sub(1, Ordering::SeqCst);
        Some(ProcessEnd::Done)
    });
    let script = Script { lanes: 3, ..script };
    let names = [
        "free-errno",
        "free-null",
        "zero-size",
        "too-big",
        "no-overlap",
        "calloc-zero",
    ];
    assert_eq!(script.make_of_one(&names, false).results.len(), 6);
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!(script.log().len(), 6);
}

#[test]
fn what_was_found_before_an_interruption_is_kept_and_nothing_more_is_begun() {
    let stop = AtomicBool::new(false);
    let script = Script::new(move |job, _| {
        stop.fetch_or(job.check.name == "free-null", Ordering::SeqCst);
        (!stop.load(Ordering::SeqCst)).then_some(ProcessEnd::Done)
    });
    let names = ["free-errno", "free-null", "too-big"];
    let (file, folder) = script.make(&names, false, &["one", "two"]);
    assert!(file.unfinished);
    let kept = CheckFile::read(folder.path()).unwrap();
    assert!(kept.unfinished);
    assert_eq!(kept.allocators.len(), 1);
    let results = &kept.allocators[0].results;
    let before = script.log().iter().position(|entry| entry == "free-null");
    assert_eq!(Some(results.len()), before);
    assert!(
        results
            .iter()
            .all(|result| result.verdict == CheckVerdict::Pass)
    );
    assert_eq!(script.swept.load(Ordering::Relaxed), 1);
}

#[test]
fn each_allocator_is_checked_and_what_its_processes_leave_is_ended() {
    let script = Script::new(|_, _| Some(ProcessEnd::Done));
    let (file, folder) = script.make(&["free-errno"], false, &["one", "two"]);
    let kept = CheckFile::read(folder.path()).unwrap();
    let again = kept
        .allocators
        .iter()
        .map(|allocator| allocator.results[0].again.as_str());
    assert_eq!(
        Vec::from_iter(again),
        [
            "heapmark check -a 'one=/a folder/one.so' --only free-errno --timeout 0.5s",
            "heapmark check -a 'two=/a folder/two.so' --only free-errno --timeout 0.5s"
        ]
    );
    assert!(!file.unfinished && !kept.unfinished);
    assert_eq!(script.swept.load(Ordering::Relaxed), 2);
}
