//! What else the machine did while parts of blocks ran. Decided before anybody looks at a time: a part that was disturbed is
//! run again, and of several attempts the first quiet one counts; where none was quiet, the quietest.

use crate::sample::disturbance::Disturbance;
use crate::store::Record;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// CPU time of others, as a share of one core.
const MOST_FOREIGN_CPU: f64 = 0.25;
/// CPU time that the hypervisor gave to other machines, as a share of one core.
const MOST_STEAL: f64 = 0.1;
/// Share of the time in which somebody waited for memory.
const MOST_MEMORY_STALL: f64 = 0.05;

/// What disturbed a process, in words; nothing where it was left alone.
pub fn disturbed_by(disturbance: &Disturbance) -> Vec<&'static str> {
    let above = |share: Option<f64>, most: f64| share.is_some_and(|share| share > most);
    let found = [
        (above(disturbance.foreign_cpu_share, MOST_FOREIGN_CPU), "other programs"),
        (above(disturbance.steal_share, MOST_STEAL), "other machines of the same host"),
        (above(disturbance.memory_stall_share, MOST_MEMORY_STALL), "waiting for memory"),
        (disturbance.swapped_pages.is_some_and(|pages| pages > 0), "swapping"),
        (disturbance.throttled_ns.is_some_and(|ns| ns > 0), "the CPU limit of the control group"),
    ];
    found.into_iter().filter(|(yes, _)| *yes).map(|(_, what)| what).collect()
}

/// What the gate saw in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gate {
    /// Parts of blocks that count.
    pub parts: usize,
    /// Parts among them in which something disturbed a process: none of their attempts was quiet.
    pub disturbed: usize,
    /// Attempts that were made once more.
    pub repeated: usize,
    /// What disturbed those that count, and in how many parts.
    pub causes: BTreeMap<String, usize>,
}

/// A part of a block of a case.
type Part<'a> = (&'a str, u32, u32, u32);

/// The records without the attempts that do not count, but with all that failed, and what the gate saw.
pub(super) fn pass<'a>(records: &[&'a Record]) -> (Vec<&'a Record>, Gate) {
    let mut parts: BTreeMap<Part, BTreeMap<u32, Vec<&Record>>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.purpose.is_of_a_block()) {
        let part = (record.workload.as_str(), record.threads, record.block, record.part);
        parts.entry(part).or_default().entry(record.attempt).or_default().push(record);
    }
    let mut gate = Gate { parts: parts.len(), ..Gate::default() };
    let mut dropped = BTreeSet::new();
    for attempts in parts.values() {
        gate.repeated += attempts.len() - 1;
        let chosen = choose(attempts);
        let causes: BTreeSet<&str> = attempts[&chosen].iter().flat_map(|record| causes(record)).collect();
        gate.disturbed += usize::from(!causes.is_empty());
        causes.into_iter().for_each(|cause| *gate.causes.entry(cause.to_string()).or_default() += 1);
        let others = attempts.iter().filter(|(attempt, _)| **attempt != chosen);
        // Whatever disturbed it: what fails once has failed.
        let ended = others.flat_map(|(_, records)| records).filter(|record| record.outcome.is_ok());
        dropped.extend(ended.map(|record| record.cell.as_str()));
    }
    (records.iter().copied().filter(|record| !dropped.contains(record.cell.as_str())).collect(), gate)
}

/// What disturbed a process; nothing where nobody looked.
pub(super) fn causes(record: &Record) -> Vec<&'static str> {
    record.disturbance.as_ref().map(disturbed_by).unwrap_or_default()
}

/// Of the whole attempts the first quiet one, or the one whose busiest process was least disturbed by other programs.
fn choose(attempts: &BTreeMap<u32, Vec<&Record>>) -> u32 {
    let whole = attempts.values().map(Vec::len).max().unwrap_or(0);
    let whole = || attempts.iter().filter(|(_, records)| records.len() == whole);
    let quiet = whole().find(|(_, records)| records.iter().all(|record| causes(record).is_empty()));
    let foreign = |records: &[&Record]| {
        let shares = records.iter().filter_map(|record| record.disturbance.as_ref()?.foreign_cpu_share);
        shares.fold(0.0, f64::max)
    };
    let quietest = || whole().min_by(|(_, a), (_, b)| foreign(a).total_cmp(&foreign(b)));
    quiet.or_else(quietest).map_or(0, |(attempt, _)| *attempt)
}
