//! Before its first duet, each case shows in a duet of the baseline with itself that two of its processes can take
//! turns. Cases that cannot are measured without turns, and the stored trial records why.

use super::Progress;
use super::calibrate::Pace;
use super::present::memory_left;
use super::run::Session;
use super::runner::{Due, DueDuet};
use crate::execute::user_command::WRITES;
use crate::execute::{Outcome, TurnsTaken};
use crate::observe::Root;
use crate::plan::{Cell, Plan, Turn};
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::rc::Rc;
use std::slice;

/// A command in which several threads or processes are ready at once for more than this share of its time would
/// behave like another program on one CPU.
const MOST_PARALLEL: f64 = 0.1;
/// For a command that is idle for more than this share of its time, the wall time is what matters.
const MOST_IDLE: f64 = 0.5;
/// A command with less CPU time than this, in nanoseconds, does little but start.
const LEAST_NS: u64 = 40_000_000;
/// Fewer looks at a check show neither how parallel nor how idle the command is.
const LEAST_LOOKS: f64 = 5.0;
/// The most trials of a case: other programs may keep a trial from ending its turns in time, and it is then repeated.
const TRIALS: usize = 3;

impl Session {
    /// Tries all cases that are to take turns.
    pub(super) fn trials(&mut self, paces: &[Pace], progress: &mut dyn Progress) -> Result<()> {
        for (place, pace) in paces.iter().enumerate() {
            let cell = self.plan.trial(place);
            let Some(turn) = self.plan.turn([&cell, &cell]) else {
                continue;
            };
            if !self.known.has(&cell.id) {
                progress.begin(&cell.id);
                self.trial(&cell, turn, pace, progress)?;
            }
            let trial = self.known.get(&cell.id);
            if let Some(Outcome::Unsupported { why }) = trial.map(|trial| &trial.outcome) {
                let label = self.plan.cases[place].label();
                progress.say(&format!("{label}: measured alone, {why}"));
            }
        }
        without_turns(Rc::make_mut(&mut self.plan), self.known.all());
        Ok(())
    }

    /// Returns the most bytes that a process of this case has held under any allocator; for a command, the bytes
    /// that all of its processes held together, as measured in its checks.
    pub(super) fn most_held_bytes(&self, cell: &Cell) -> u64 {
        let bytes = |record: &Record| {
            let usage = record.usage.as_ref().map(|usage| usage.max_rss_bytes);
            let figures = record
                .measurement
                .as_ref()
                .map(|measured| &measured.figures);
            let together = figures.and_then(|figures| figures.get("peak_pss_bytes"));
            let together = together.map(|bytes| *bytes as u64);
            usage.max(together).max(record.peak_rss_bytes())
        };
        self.of_case(cell).filter_map(bytes).max().unwrap_or(0)
    }

    fn trial(
        &mut self,
        cell: &Cell,
        turn: Turn,
        pace: &Pace,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let case = self.case(cell);
        let check = self.known.get(&self.plan.check_of_baseline(cell.case).id);
        if check.is_none_or(|check| !check.outcome.is_ok()) {
            return Ok(());
        }
        // Another build may behave differently from the baseline's; another allocator hardly changes how a command behaves.
        let of_builds = case
            .command()
            .is_some_and(|command| !command.variants.is_empty());
        let checks = self
            .of_case(cell)
            .filter(|record| record.purpose == Purpose::Check);
        let checks = checks.filter(|record| of_builds || record.allocator == cell.allocator);
        let is_command = case.command().is_some();
        let cannot = { checks }.find_map(|record| cannot_take_turns(record).filter(|_| is_command));
        let do_not_fit = || {
            do_not_fit(
                2 * self.most_held_bytes(cell),
                memory_left(&Root::machine()),
            )
        };
        if let Some(why) = cannot.or_else(do_not_fit) {
            return self.cannot_run(Purpose::Trial, cell, why);
        }
        let due = || {
            let measured = self.measured(cell, pace.iterations, pace.timeout)?;
            let purpose = Purpose::Trial;
            anyhow::Ok(Due {
                purpose,
                ..measured
            })
        };
        let duet = DueDuet {
            turn,
            sides: [due()?, due()?],
            largest_bytes: self.largest_bytes(cell),
        };
        let mut sides = [None, None];
        let mut longest = None;
        for _ in 0..TRIALS {
            self.runner
                .duets(1, slice::from_ref(&duet), &mut |(_, ended)| {
                    sides = ended;
                    Ok(())
                })?;
            let observed = sides.iter().flatten().map(|(_, observed)| observed);
            let measured = observed.filter_map(|one| one.attempt.measurement.as_ref());
            longest = measured
                .filter_map(|measured| measured.turns.clone())
                .max_by_key(|taken| taken.turn_ns);
            if !longest.as_ref().is_some_and(took_too_long) {
                break;
            }
        }
        let failed = sides.iter().flatten().find_map(|(_, observed)| {
            let outcome = &observed.attempt.outcome;
            (!outcome.is_ok()).then(|| format!("two of it at a time: {outcome}"))
        });
        let has_both = sides.iter().all(Option::is_some);
        let why = failed.or_else(|| match longest {
            Some(taken) if has_both => not_taken(&taken),
            _ => Some("its processes took no turns".into()),
        });
        let Some((started, mut observed)) = sides.into_iter().flatten().next() else {
            return Ok(());
        };
        if let Some(why) = why {
            observed.attempt.outcome = Outcome::Unsupported { why };
            observed.attempt.measurement = None;
        }
        self.ended(&duet.sides[0], started, observed, progress)
    }
}

/// Removes the turns of all cases whose stored trials show that their processes cannot take any.
fn without_turns(plan: &mut Plan, records: &[Record]) {
    let is_alone = |record: &&Record| {
        record.purpose == Purpose::Trial && matches!(record.outcome, Outcome::Unsupported { .. })
    };
    for trial in records.iter().filter(is_alone) {
        for case in &mut plan.cases {
            if trial.is_of(&case.workload, case.threads) {
                case.turns = None;
            }
        }
    }
}

/// Returns why two processes that together hold this many bytes are not started at the same time: half of the free
/// memory is left for the files that they read, and for other processes.
fn do_not_fit(bytes: u64, left_bytes: Option<u64>) -> Option<String> {
    let left_bytes = left_bytes?;
    (bytes > left_bytes / 2).then(|| {
        format!(
            "since two of it at a time would hold {} MiB of the {} MiB that are free",
            bytes >> 20,
            left_bytes >> 20
        )
    })
}

/// Why two processes of a command cannot take turns, as its check shows.
fn cannot_take_turns(check: &Record) -> Option<String> {
    let measured = check.measurement.as_ref()?;
    if let Some(file) = measured.notes.get(WRITES) {
        return Some(format!(
            "since {file} changed while it ran: two of it at a time could both write it (`{{side}}` in the command keeps them apart)"
        ));
    }
    let usage = check.usage.as_ref()?;
    if usage.cpu_ns() < LEAST_NS {
        return Some("since it is too short for turns".into());
    }
    let looks = *measured.figures.get("looks")?;
    let share = |of: &str| measured.figures.get(of).map_or(0.0, |count| count / looks);
    let (parallel, idle) = (share("parallel_looks"), share("idle_looks"));
    if looks < LEAST_LOOKS {
        Some(format!(
            "since {looks} looks at its check do not show whether several of its threads work at once"
        ))
    } else if parallel > MOST_PARALLEL {
        let percent = parallel * 100.0;
        Some(format!(
            "since several of its threads or processes work at once for {percent:.0} % of its time"
        ))
    } else if idle > MOST_IDLE {
        Some(format!(
            "since it waits for {:.0} % of its time",
            idle * 100.0
        ))
    } else {
        None
    }
}

/// Returns whether turns took too long. Shorter turns than requested count: other programs of the
/// machine have cut them short.
fn took_too_long(taken: &TurnsTaken) -> bool {
    taken.turn_ns > Some(2 * taken.slice_ns)
}

/// Why these turns do not count.
fn not_taken(taken: &TurnsTaken) -> Option<String> {
    match taken.turn_ns {
        Some(_) if !took_too_long(taken) => None,
        Some(turn_ns) => Some(format!(
            "since its turns took {:.0} ms instead of {:.0} ms",
            turn_ns as f64 / 1e6,
            taken.slice_ns as f64 / 1e6
        )),
        None => Some("since its processes are too short for turns".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_more_than_half_of_the_free_memory_twice_is_measured_alone() {
        let gib = |count: u64| count << 30;
        assert_eq!(do_not_fit(gib(4), Some(gib(8))), None);
        assert_eq!(do_not_fit(gib(4), None), None);
        let why = do_not_fit(gib(5), Some(gib(8))).unwrap();
        assert!(why.contains("5120 MiB of the 8192 MiB"), "{why}");
    }
}
