//! What else the machine did while parts of blocks ran. Interference is judged before any time is
//! looked at: a part with interference is run again, and the first quiet attempt counts; if none
//! was quiet, the quietest one counts.
//!
//! Only causes that cannot come from the measured process decide. Waiting for memory, swapping and
//! throttling mostly come from the process itself: running it again until one attempt is fast would
//! be a choice by the outcome. Such stalls are only reported, and their processes count.

use crate::observe::interference::Interference;
use crate::plan::{CellId, Factor};
use crate::store::{Purpose, Record};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The most CPU time that other processes may take, as a share of one core.
const MOST_FOREIGN_CPU: f64 = 0.25;
/// The most CPU time that other processes may take, as a share of all CPUs that the process may run
/// on: with many CPUs, other processes leave enough of them free.
const MOST_FOREIGN_OF_ALL: f64 = 0.125;
/// The most CPU time that the hypervisor may give to other machines, as a share of one core.
const MOST_STEAL: f64 = 0.1;
/// The largest share of the time in which some task may wait for memory.
const MOST_MEMORY_STALL: f64 = 0.05;
/// The kernel counts CPU time in clock ticks: over a short time, a difference can be wrong by one tick for each CPU
/// at its beginning and at its end. A difference that such errors can explain counts as no interference.
const TICK_NS: f64 = 10e6;
/// The most CPU time that the kernel counts as busy but charges to no process, for each thread or
/// process that ends: this time is spent after the total of the process has been taken. Measured with
/// `larson-threads`: 9 us.
const UNACCOUNTED_NS: f64 = 10e3;

/// Returns the sources of interference with a process: each load as a share of its limit, and the source in words.
fn loads(interference: &Interference) -> [(f64, &'static str); 2] {
    let cpus = interference.cpus.map_or(0.0, f64::from);
    let most_foreign = MOST_FOREIGN_CPU.max(MOST_FOREIGN_OF_ALL * cpus);
    let tick = TICK_NS / interference.wall_ns.max(1) as f64;
    let above = |share: Option<f64>, ticks: f64| (share.unwrap_or(0.0) - ticks * tick).max(0.0);
    // Independent errors add up as the square root of their number.
    let foreign = above(interference.foreign_cpu_share, (2.0 * cpus.max(1.0)).sqrt());
    let tasks = interference.new_tasks.unwrap_or(0) as f64;
    let unaccounted = tasks * UNACCOUNTED_NS / interference.wall_ns.max(1) as f64;
    let foreign = (foreign - unaccounted).max(0.0);
    [
        (foreign / most_foreign, "other programs"),
        (
            above(interference.steal_share, 1.0) / MOST_STEAL,
            "other machines of the same host",
        ),
    ]
}

/// The causes of interference with a process, in words; empty if there was none.
pub fn disturbed_by(interference: &Interference) -> Vec<&'static str> {
    loads(interference)
        .into_iter()
        .filter(|(load, _)| *load > 1.0)
        .map(|(_, what)| what)
        .collect()
}

/// What stalled a process but may be the process's own doing, in words. The process's own control
/// group reports stalls more exactly than the whole machine does.
fn stalled_by(interference: &Interference) -> Vec<&'static str> {
    let own_memory = interference.own_memory_stall_share;
    let memory = own_memory
        .or(interference.memory_stall_share)
        .is_some_and(|share| share > MOST_MEMORY_STALL);
    let swapping = own_memory.is_none_or(|share| share > 0.0)
        && interference.swapped_pages.is_some_and(|pages| pages > 0);
    [
        (memory, "waiting for memory"),
        (swapping, "swapping"),
        (
            interference.throttled_ns.is_some_and(|ns| ns > 0),
            "the CPU limit of the control group",
        ),
    ]
    .into_iter()
    .filter(|(yes, _)| *yes)
    .map(|(_, what)| what)
    .collect()
}

/// The interference that was seen in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InterferenceSummary {
    /// The number of parts of blocks that count in the results.
    pub parts: usize,
    /// Parts of blocks with interference: none of their attempts was quiet.
    pub disturbed: usize,
    /// Parts whose processes were timed; in the others, events were counted or memory was sampled.
    pub timed: usize,
    /// Timed parts with interference.
    pub timed_disturbed: usize,
    /// Attempts that were repeated, not counting those that an interruption cut short.
    pub repeated: usize,
    /// The causes of interference in the parts that count, and the number of parts of each.
    pub causes: BTreeMap<String, usize>,
    /// Processes that count but were stalled, perhaps by themselves.
    pub stalled: usize,
    /// The causes of stalls, and the number of processes of each.
    pub stalls: BTreeMap<String, usize>,
    /// Processes of attempts that do not count.
    #[serde(skip)]
    pub discarded: BTreeSet<CellId>,
}

impl InterferenceSummary {
    /// Returns whether more than half of the timed parts were disturbed in every attempt.
    pub fn is_noisy(&self) -> bool {
        2 * self.timed_disturbed > self.timed
    }

    /// Returns whether all timed parts were disturbed; false if nothing was timed.
    pub fn all_timed_is_disturbed(&self) -> bool {
        self.timed > 0 && self.timed_disturbed == self.timed
    }
}

/// A part of a block of a case, which holds the processes of the same case under a factor, too: all are run again as one.
type BlockPart<'a> = (&'a str, u32, u32, u32);

/// The records without the attempts that do not count, but with all that failed, and a summary of
/// the interference.
pub fn pass<'a>(records: &[&'a Record]) -> (Vec<&'a Record>, InterferenceSummary) {
    let mut parts: BTreeMap<BlockPart, BTreeMap<u32, Vec<&Record>>> = BTreeMap::new();
    for record in records {
        if record.purpose.is_of_a_block() {
            let workload = Factor::plain_name(&record.workload);
            let part = (workload, record.threads, record.block, record.part);
            parts
                .entry(part)
                .or_default()
                .entry(record.attempt)
                .or_default()
                .push(record);
        }
    }
    let mut interference = InterferenceSummary {
        parts: parts.len(),
        ..InterferenceSummary::default()
    };
    for attempts in parts.values() {
        interference.repeated += attempts.len() - 1 - interrupted(attempts);
        let chosen = choose(attempts);
        let counting = &attempts[&chosen];
        let causes: BTreeSet<&str> = counting.iter().flat_map(|record| causes(record)).collect();
        interference.disturbed += usize::from(!causes.is_empty());
        if counting
            .iter()
            .any(|record| record.purpose == Purpose::Sample)
        {
            interference.timed += 1;
            interference.timed_disturbed += usize::from(!causes.is_empty());
        }
        for cause in causes {
            *interference.causes.entry(cause.to_string()).or_default() += 1;
        }
        for stalls in counting.iter().map(|record| stalls(record)) {
            interference.stalled += usize::from(!stalls.is_empty());
            for stall in stalls {
                *interference.stalls.entry(stall.to_string()).or_default() += 1;
            }
        }
        let others = attempts.iter().filter(|(attempt, _)| **attempt != chosen);
        // Interference is no excuse: a process that failed once has failed.
        let ended = others
            .flat_map(|(_, records)| records)
            .filter(|record| record.outcome.is_ok());
        let cells = ended.map(|record| record.cell.clone());
        interference.discarded.extend(cells);
    }
    let mut counting = records.to_vec();
    counting.retain(|record| !interference.discarded.contains(&record.cell));
    (counting, interference)
}

/// The causes of interference with a process; empty if the process was not observed, or took turns
/// with the one that it is compared with: both met the same interference.
pub(super) fn causes(record: &Record) -> Vec<&'static str> {
    match &record.interference {
        Some(interference) if !record.took_turns() => disturbed_by(interference),
        _ => Vec::new(),
    }
}

/// The stalls of a process that may be its own doing; empty if it was not observed.
pub(super) fn stalls(record: &Record) -> Vec<&'static str> {
    record
        .interference
        .as_ref()
        .map(stalled_by)
        .unwrap_or_default()
}

/// How many attempts lack a row that a later attempt has.
fn interrupted(attempts: &BTreeMap<u32, Vec<&Record>>) -> usize {
    let (mut later, mut interrupted) = (BTreeSet::new(), 0);
    for records in attempts.values().rev() {
        let rows: BTreeSet<(&str, &str)> = records
            .iter()
            .map(|record| (record.workload.as_str(), record.allocator.as_str()))
            .collect();
        interrupted += usize::from(!later.is_subset(&rows));
        later.extend(rows);
    }
    interrupted
}

/// Returns the first quiet one of the complete attempts. If there is none, returns the attempt in
/// which the largest load of any process, as a share of its limit, is smallest. A row that failed
/// is not run again: an attempt without it is complete, too.
fn choose(attempts: &BTreeMap<u32, Vec<&Record>>) -> u32 {
    let ended = |records: &[&Record]| {
        records
            .iter()
            .filter(|record| record.outcome.is_ok())
            .count()
    };
    let most = attempts
        .values()
        .map(|records| ended(records))
        .max()
        .unwrap_or(0);
    let whole = || {
        attempts
            .iter()
            .filter(|(_, records)| ended(records) == most)
    };
    let worst = |records: &[&Record]| {
        records
            .iter()
            .filter_map(|record| record.interference.as_ref())
            .flat_map(loads)
            .map(|(load, _)| load)
            .fold(0.0, f64::max)
    };
    whole()
        .find(|(_, records)| records.iter().all(|record| causes(record).is_empty()))
        .or_else(|| whole().min_by(|(_, a), (_, b)| worst(a).total_cmp(&worst(b))))
        .map_or(0, |(attempt, _)| *attempt)
}
