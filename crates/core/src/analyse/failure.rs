//! The processes that did not end `ok`. None of them may be lost: a failure is a result.

use crate::execute::Outcome;
use crate::plan::CellId;
use crate::store::Record;
use serde::Serialize;

/// Why a row has no numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failed {
    /// How many processes ended in which way other than `ok`, in the order in which the ways first
    /// occurred.
    pub counts: Vec<(&'static str, usize)>,
    /// The number of checks and samples that ran, including those that ended `ok`.
    pub of: usize,
    /// How the first process that failed ended.
    pub first: Outcome,
}

impl Failed {
    /// The failure among these records; `None` if all ended `ok`.
    pub(super) fn among(records: &[&Record]) -> Option<Failed> {
        let mut failures = records
            .iter()
            .filter(|record| record.has_failed())
            .map(|record| &record.outcome);
        let first = failures.next()?;
        let mut counts = vec![(first.word(), 1)];
        for outcome in failures {
            match counts.iter_mut().find(|(word, _)| *word == outcome.word()) {
                Some((_, count)) => *count += 1,
                None => counts.push((outcome.word(), 1)),
            }
        }
        Some(Failed {
            counts,
            of: records.len(),
            first: first.clone(),
        })
    }

    /// The failure in words: `crash 1 of 11: SIGSEGV in phase run`.
    pub fn summary(&self) -> String {
        // If the allocator is absent, there was nothing to count.
        if self.first.is_absent() {
            return self.first.to_string();
        }
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        format!(
            "{} of {}: {}",
            counts.join(", "),
            self.of,
            detail(&self.first)
        )
    }

    /// The word for the outcome of the first process that failed.
    pub fn word(&self) -> &'static str {
        self.first.word()
    }
}

/// An outcome's sentence without its first word.
pub fn detail(outcome: &Outcome) -> String {
    let sentence = outcome.to_string();
    match sentence.strip_prefix(outcome.word()) {
        Some(rest) => rest.trim_start_matches(": ").to_owned(),
        None => sentence,
    }
}

/// Processes of the same workload, thread count and allocator that ended in the same way.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// The cells of these processes.
    pub cells: Vec<CellId>,
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// How the processes ended.
    pub outcome: Outcome,
    /// The last lines that the first of these processes wrote to stderr.
    pub stderr: String,
}

/// Every process that has failed, with equal ones grouped. Absent allocators have not failed:
/// their rows report them.
pub(super) fn collect(records: &[&Record]) -> Vec<Failure> {
    let mut failures: Vec<Failure> = Vec::new();
    for record in records
        .iter()
        .filter(|record| record.has_failed() && !record.outcome.is_absent())
    {
        let like = failures.iter_mut().find(|failure| {
            failure.workload == record.workload
                && failure.threads == record.threads
                && failure.allocator == record.allocator
                && failure.outcome == record.outcome
        });
        match like {
            Some(failure) => failure.cells.push(record.cell.clone()),
            None => failures.push(Failure {
                cells: vec![record.cell.clone()],
                workload: record.workload.to_string(),
                threads: record.threads,
                allocator: record.allocator.to_string(),
                outcome: record.outcome.clone(),
                stderr: record.stderr.to_string(),
            }),
        }
    }
    failures
}
