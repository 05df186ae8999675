//! Instructions per operation, counted by valgrind's callgrind. No clock is read, so the count is
//! the same on a busy machine. Runs two processes, one with a single iteration and one with
//! several: start-up and set-up cancel out in the difference, which leaves only iterations.

use super::{Attempt, Guest, Job, Outcome, Subject, per_operation};
use anyhow::Result;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The name of the figure that holds a process's instruction count.
const INSTRUCTIONS: &str = "instructions";
/// Iterations of the longer process. What varies from run to run (how often a thread checks whether
/// it may begin) is spread over all of them.
const MORE: u32 = 5;
/// The factor by which the timeout grows: valgrind makes everything some 50 times slower, and runs one thread at a time.
const SLOWER: u32 = 100;

/// Counts the instructions per operation of one cell.
pub fn count(
    guest: &Guest,
    subject: &Subject,
    job: &Job,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<Attempt> {
    let Some(valgrind) = crate::build::in_path("valgrind") else {
        let why = "valgrind is not there: apt-get install valgrind".into();
        return Ok(Attempt::without_process(Outcome::Unsupported { why }));
    };
    let below = |iterations| {
        let job = Job {
            iterations,
            cold: 0,
            below: Some(valgrind.clone()),
            ..job.clone()
        };
        let timeout = timeout.saturating_mul(SLOWER);
        super::run(guest, subject, &job, timeout, stop, None).map(as_unsupported)
    };
    let one = below(1)?;
    if !one.outcome.is_ok() {
        return Ok(one);
    }
    let mut several = below(MORE)?;
    if let Some(((few, few_ops), (more, more_ops))) = counted(&one).zip(counted(&several))
        && let Some(measurement) = &mut several.measurement
    {
        let operations = more_ops.saturating_sub(few_ops).max(1) as f64;
        let figures = &mut measurement.figures;
        figures.insert(per_operation(INSTRUCTIONS), (more - few) / operations);
    }
    Ok(several)
}

/// Returns the numbers of instructions and operations of a process.
fn counted(attempt: &Attempt) -> Option<(f64, u64)> {
    let measurement = attempt.measurement.as_ref()?;
    let operations = measurement.iterations.iter().map(|one| one.ops).sum();
    Some((*measurement.figures.get(INSTRUCTIONS)?, operations))
}

/// Returns the words that precede the guest's command, so that it runs under callgrind.
pub(super) fn words(valgrind: &Path) -> [OsString; 3] {
    [
        valgrind.into(),
        "--tool=callgrind".into(),
        "--callgrind-out-file=/dev/null".into(),
    ]
}

/// Adds the instruction count that callgrind printed when it ended.
pub(super) fn note(attempt: &mut Attempt, stderr: &str) {
    let Some(measurement) = &mut attempt.measurement else {
        return;
    };
    if let Some(instructions) = collected(stderr) {
        let figures = &mut measurement.figures;
        figures.insert(INSTRUCTIONS.into(), instructions as f64);
    } else {
        let what = "callgrind did not report how many instructions it counted".into();
        (attempt.outcome, attempt.measurement) = (Outcome::Error { what }, None);
    }
}

/// Returns the number after `Collected :`, which is the instruction count.
fn collected(stderr: &str) -> Option<u64> {
    let (_, rest) = stderr
        .lines()
        .find_map(|line| line.split_once("Collected :"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Turns failures into `unsupported`: what fails under valgrind fails only there, because the
/// checked process has shown that the allocator works.
fn as_unsupported(mut attempt: Attempt) -> Attempt {
    if !matches!(
        attempt.outcome,
        Outcome::Ok
            | Outcome::Unsupported { .. }
            | Outcome::NotLoaded { .. }
            | Outcome::Error { .. }
    ) {
        let why = format!("does not run below valgrind: {}", attempt.outcome);
        attempt.outcome = Outcome::Unsupported { why };
    }
    attempt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read() {
        assert_eq!(
            collected("==12== \n==12== Collected : 345678\n"),
            Some(345_678)
        );
        assert_eq!(collected("==12== Collected : \n"), None);
        assert_eq!(collected("nothing"), None);
    }
}
