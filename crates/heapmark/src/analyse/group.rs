//! The records of one row, an allocator in a case, and the rule that one process not `ok` leaves the row without processes.

use super::failure::Failed;
use super::process::Process;
use super::stats::median;
use crate::execute::Measurement;
use crate::plan::Case as PlannedCase;
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use std::collections::{BTreeMap, HashMap};

/// The records that count: of those with the same cell name the last, at the place of the first.
pub fn latest(records: &[Record]) -> Vec<&Record> {
    let mut places = HashMap::new();
    let mut kept: Vec<&Record> = Vec::new();
    for record in records {
        let place = *places.entry(record.cell.as_str()).or_insert(kept.len());
        if place == kept.len() {
            kept.push(record);
        } else {
            kept[place] = record;
        }
    }
    kept
}

/// How many checks and samples belong to no row of the plan.
pub(super) fn strays(run: &RunFile, records: &[&Record]) -> usize {
    let planned = |record: &Record| {
        let mut cases = run.plan.cases.iter();
        let case = cases.find(|case| (&case.workload, case.threads) == (&record.workload, record.threads));
        case.is_some_and(|case| run.entrants(case).any(|entrant| entrant.name == record.allocator))
    };
    records.iter().filter(|record| makes_a_row(record) && !planned(record)).count()
}

fn makes_a_row(record: &Record) -> bool {
    matches!(record.purpose, Purpose::Check | Purpose::Sample)
}

/// The processes of one row.
pub(super) struct Group<'a> {
    /// The case.
    pub case: &'a PlannedCase,
    /// The allocator.
    pub allocator: &'a AllocatorInfo,
    /// Set if any check or sample did not end `ok`; then `processes` is empty.
    pub failed: Option<Failed>,
    /// By block: what was measured, and what it comes to.
    pub processes: BTreeMap<u32, (&'a Measurement, Process)>,
    /// What its check said of it, which timed nothing.
    pub check: Option<&'a Measurement>,
    /// Samples that ended `ok` and have nothing to divide.
    pub unusable: usize,
}

impl<'a> Group<'a> {
    pub fn new(case: &'a PlannedCase, allocator: &'a AllocatorInfo, records: &[&'a Record]) -> Group<'a> {
        let own: Vec<&Record> = records
            .iter()
            .copied()
            .filter(|record| makes_a_row(record) && record.allocator == allocator.name)
            .filter(|record| record.workload == case.workload && record.threads == case.threads)
            .collect();
        let failed = Failed::among(&own);
        let mut processes = BTreeMap::new();
        let mut unusable = 0;
        if failed.is_none() {
            for record in own.iter().filter(|record| record.purpose == Purpose::Sample) {
                let measurement = record.measurement.as_ref();
                match measurement.and_then(|m| Some((m, Process::new(m, record.threads)?))) {
                    Some(process) => _ = processes.insert(record.block, process),
                    None => unusable += 1,
                }
            }
        }
        let check = own.iter().find(|record| record.purpose == Purpose::Check && failed.is_none());
        let check = check.and_then(|record| record.measurement.as_ref());
        Group { case, allocator, failed, processes, check, unusable }
    }

    /// The median over processes of whatever each of them says, if it does.
    pub fn median_of(&self, value: impl Fn(&Measurement, &Process) -> Option<f64>) -> Option<f64> {
        median(&self.values(value))
    }

    /// The headline of the row.
    pub fn median_ns_per_op(&self) -> Option<f64> {
        self.median_of(|_, process| Some(process.ns_per_op))
    }

    /// What the processes say, in block order.
    pub fn values(&self, value: impl Fn(&Measurement, &Process) -> Option<f64>) -> Vec<f64> {
        self.processes.values().filter_map(|(measurement, process)| value(measurement, process)).collect()
    }
}
