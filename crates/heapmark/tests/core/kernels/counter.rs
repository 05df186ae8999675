//! Runs one process under a library that counts the calls which the guest makes.

use crate::support::{CATALOG, HUNG_AFTER, compile_into};
use heapmark::build::{self, State};
use heapmark::execute::{self, Attempt, Guest, Job, Outcome, Subject};
use heapmark::plan::{Case, Cell, Override, cases};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// malloc, free, calloc, realloc, and the aligned functions together.
pub type Counts = [u64; 5];

pub struct Counter {
    dir: tempfile::TempDir,
    guest: Guest,
    subject: Subject,
}

impl Counter {
    pub fn new() -> Counter {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        Counter::with(&folder.join("../../programs/count-mallocs/count.c"))
    }

    /// With another library, which writes five numbers into the file `COUNTS`.
    pub fn with(source: &Path) -> Counter {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libcount.so");
        compile_into(&library, &[source.to_owned()]);
        let mut allocator = build::library_of_file("count", &library).unwrap();
        allocator.environment.insert(
            "COUNTS".into(),
            dir.path().join("counts").display().to_string(),
        );
        // Its blocks are those of the C library.
        allocator.wrapper = true;
        let State::Ready(library) = build::state(&allocator, &[]) else {
            panic!("the counting library is refused")
        };
        Counter {
            guest: Guest::find().unwrap(),
            subject: Subject {
                allocator,
                library,
                variant: None,
                refused: None,
            },
            dir,
        }
    }

    /// Runs one process of a workload and returns what the library counted and what the guest says it did.
    pub fn run(
        &self,
        workload: &str,
        threads: u32,
        set: &[&str],
        cold: u32,
        iterations: u32,
    ) -> (Counts, Outcome, Counts) {
        self.run_with(workload, threads, set, cold, iterations, false)
    }

    pub fn run_with(
        &self,
        workload: &str,
        threads: u32,
        set: &[&str],
        cold: u32,
        iterations: u32,
        exercise: bool,
    ) -> (Counts, Outcome, Counts) {
        let (counted, attempt) = self.attempt(workload, threads, set, cold, iterations, exercise);
        let measurement = attempt.measurement.unwrap_or_default();
        let said = |name: &str| measurement.calls.get(name).copied().unwrap_or(0);
        (
            counted,
            attempt.outcome,
            [
                said("malloc"),
                said("free"),
                said("calloc"),
                said("realloc"),
                said("posix_memalign"),
            ],
        )
    }

    /// As [`Counter::run`], with all that the process had to say.
    pub fn attempt(
        &self,
        workload: &str,
        threads: u32,
        set: &[&str],
        cold: u32,
        iterations: u32,
        exercise: bool,
    ) -> (Counts, Attempt) {
        let case = case(workload, threads, set);
        self.attempt_of(&case, cold, iterations, exercise)
    }

    /// As [`Counter::attempt`], of a case that no catalogue has.
    pub fn attempt_of(
        &self,
        case: &Case,
        cold: u32,
        iterations: u32,
        exercise: bool,
    ) -> (Counts, Attempt) {
        let mut job = job(case, cold, iterations, false);
        job.exercise = exercise;
        let (mut counted, attempt) = self.numbers(&job);
        // The pair by which every guest wakes its allocator, before anything else.
        assert!(counted[0] >= 1 && counted[1] >= 1, "{counted:?}");
        counted[0] -= 1;
        counted[1] -= 1;
        (counted, attempt)
    }

    /// Runs one process and returns the numbers that the library has written.
    pub fn numbers(&self, job: &Job) -> (Counts, Attempt) {
        let file = self.dir.path().join("counts");
        std::fs::write(&file, [0; 40]).unwrap();
        let stop = AtomicBool::new(false);
        let attempt =
            execute::run(&self.guest, &self.subject, job, HUNG_AFTER, &stop, None).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        let numbers = std::array::from_fn(|i| {
            u64::from_ne_bytes(bytes[i * 8..i * 8 + 8].try_into().unwrap())
        });
        (numbers, attempt)
    }

    pub fn expect(
        &self,
        workload: &str,
        threads: u32,
        set: &[&str],
        cold: u32,
        iterations: u32,
        pairs: u64,
    ) {
        let (counted, outcome, said) = self.run(workload, threads, set, cold, iterations);
        assert_eq!(
            outcome,
            Outcome::Ok,
            "{workload}, {threads} threads, {set:?}"
        );
        assert_eq!(
            counted,
            [pairs, pairs, 0, 0, 0],
            "{workload}, {threads} threads, {set:?}"
        );
        assert_eq!(said, counted, "{workload}, {threads} threads, {set:?}");
    }
}

/// A workload of the catalogue at its quick size, but for what is set.
pub fn case(workload: &str, threads: u32, set: &[&str]) -> Case {
    let set: Vec<Override> = set
        .iter()
        .map(|text| format!("{workload}.{text}").parse().unwrap())
        .collect();
    let workloads = CATALOG.workloads(workload).unwrap();
    cases(&workloads, "quick", &[threads], 2, &set)
        .unwrap()
        .remove(0)
}

/// One process of a case.
pub fn job(case: &Case, cold: u32, iterations: u32, check: bool) -> Job {
    let cell = Cell {
        id: "counting".into(),
        allocator: "count".into(),
        seed: 42,
        ..Cell::default()
    };
    Job::new(case, &cell, cold, iterations, check).unwrap()
}
