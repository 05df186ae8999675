//! The records of one row, an allocator in a case, and the rule that one process that is not `ok`
//! leaves the row without processes.

use super::failure::Failed;
use super::interference;
use crate::execute::Measurement;
use crate::metric::Process;
use crate::observe::mean_heap::MeanHeap;
use crate::plan::Case as PlannedCase;
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use heapmark_stats::median;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One more than the last block that has a sample.
pub(super) fn blocks_begun(records: &[&Record]) -> u32 {
    let samples = records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample);
    samples
        .map(|record| record.block.saturating_add(1))
        .max()
        .unwrap_or(0)
}

fn makes_a_row(record: &Record) -> bool {
    record.purpose == Purpose::Check || record.purpose.is_of_a_block()
}

/// Records by row, so that finding a row does not scan all others.
pub(super) struct RecordsByRow<'a> {
    rows: HashMap<(&'a str, u32, &'a str), Vec<&'a Record>>,
    /// Faults found in functions that few workloads call, by allocator.
    findings: HashMap<&'a str, Vec<&'a String>>,
}

impl<'a> RecordsByRow<'a> {
    pub fn new(records: &[&'a Record]) -> RecordsByRow<'a> {
        let mut rows: HashMap<_, Vec<&Record>> = HashMap::new();
        for record in records.iter().filter(|record| makes_a_row(record)) {
            let row = (
                record.workload.as_str(),
                record.threads,
                record.allocator.as_str(),
            );
            rows.entry(row).or_default().push(record);
        }
        let corners = records
            .iter()
            .filter(|record| record.purpose == Purpose::Corners);
        let mut findings: HashMap<&str, Vec<&String>> = HashMap::new();
        corners.for_each(|record| {
            findings
                .entry(&record.allocator)
                .or_default()
                .extend(&record.findings)
        });
        RecordsByRow { rows, findings }
    }

    /// The faults in functions that few workloads call, for an allocator.
    fn findings(&self, allocator: &str) -> Vec<String> {
        self.findings
            .get(allocator)
            .into_iter()
            .flatten()
            .map(|finding| finding.to_string())
            .collect()
    }

    /// The checks of a row, and its processes of one kind; records with another purpose are
    /// ignored.
    pub fn of_row(
        &self,
        case: &PlannedCase,
        allocator: &AllocatorInfo,
        purpose: Purpose,
    ) -> Vec<&'a Record> {
        let own = self.rows.get(&(
            case.workload.as_str(),
            case.threads,
            allocator.name.as_str(),
        ));
        let wanted =
            |record: &&&Record| record.purpose == Purpose::Check || record.purpose == purpose;
        own.into_iter().flatten().filter(wanted).copied().collect()
    }

    /// Counts the checks and samples that belong to no row of the plan.
    pub fn unplanned(&self, run: &RunFile) -> usize {
        let planned = |(workload, threads, allocator): &(&str, u32, &str)| {
            let mut cases = run.plan.cases.iter();
            let case =
                cases.find(|case| (case.workload.as_str(), case.threads) == (*workload, *threads));
            case.is_some_and(|case| {
                run.rows_of(case)
                    .any(|candidate| candidate.name == *allocator)
            })
        };
        self.rows
            .iter()
            .filter(|(row, _)| !planned(row))
            .map(|(_, records)| records.len())
            .sum()
    }
}

/// A block and its part: processes of the same slot are compared because they ran one after the
/// other.
pub(super) type PairKey = (u32, u32);

/// The processes of one row.
pub(super) struct Group<'a> {
    /// The case.
    pub case: &'a PlannedCase,
    /// The allocator.
    pub allocator: &'a AllocatorInfo,
    /// Set if any check or sample did not end `ok`; then `processes` is empty.
    pub failed: Option<Failed>,
    /// The measurements, and the values computed from them.
    pub processes: BTreeMap<PairKey, (&'a Measurement, Process)>,
    /// The slots that had interference.
    pub disturbed: BTreeSet<PairKey>,
    /// Per slot, the stalls that the process may have caused itself.
    pub stalled: BTreeMap<PairKey, Vec<&'static str>>,
    /// The measurement of its check, which timed nothing.
    pub check: Option<&'a Measurement>,
    /// Their mean heaps, for those whose memory was sampled.
    pub mean_heaps: Vec<&'a MeanHeap>,
    /// Samples that ended `ok` but allow no division.
    pub unusable: usize,
    /// Faults of the allocator in functions that few workloads call.
    pub findings: Vec<String>,
}

impl<'a> Group<'a> {
    pub fn new(
        case: &'a PlannedCase,
        allocator: &'a AllocatorInfo,
        records: &RecordsByRow<'a>,
    ) -> Group<'a> {
        let own = records.of_row(case, allocator, Purpose::Sample);
        let failed = Failed::among(&own);
        let mut processes = Vec::new();
        let mut disturbed = BTreeSet::new();
        let mut stalled = BTreeMap::new();
        let (mut mean_heaps, mut unusable) = (Vec::new(), 0);
        if failed.is_none() {
            for record in own
                .iter()
                .filter(|record| record.purpose == Purpose::Sample)
            {
                let measurement = record.measurement.as_ref();
                mean_heaps.extend(record.mean_heap.as_deref());
                if !interference::causes(record).is_empty() {
                    disturbed.insert((record.block, record.part));
                }
                let stalls = interference::stalls(record);
                if !stalls.is_empty() {
                    stalled.insert((record.block, record.part), stalls);
                }
                match measurement.and_then(|m| Some((m, Process::new(m, record.threads)?))) {
                    Some(process) => processes.push(((record.block, record.part), process)),
                    None => unusable += 1,
                }
            }
        }
        let check = own
            .iter()
            .find(|record| record.purpose == Purpose::Check && failed.is_none());
        let check = check.and_then(|record| record.measurement.as_ref());
        let findings = records.findings(&allocator.name);
        // Collected at once: a map that grows in key order ends up half empty.
        let processes = processes.into_iter().collect();
        Group {
            case,
            allocator,
            failed,
            processes,
            disturbed,
            stalled,
            check,
            mean_heaps,
            unusable,
            findings,
        }
    }

    /// The number of blocks in which it has a process.
    pub fn blocks(&self) -> usize {
        self.processes
            .keys()
            .map(|(block, _)| block)
            .collect::<BTreeSet<_>>()
            .len()
    }

    /// ln of its value over the other's, for each slot in which both have one.
    pub fn log_ratios(
        &self,
        other: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> BTreeMap<PairKey, f64> {
        let log = |(slot, (_, ours)): (&PairKey, &(&Measurement, Process))| {
            let (_, theirs) = other.processes.get(slot)?;
            Some((*slot, (value(ours)? / value(theirs)?).ln()))
        };
        self.processes.iter().filter_map(log).collect()
    }

    /// The median of a value over the processes that have it.
    pub fn median_of(&self, value: impl Fn(&Measurement, &Process) -> Option<f64>) -> Option<f64> {
        median(&self.values(value))
    }

    /// The median ns per operation, the main figure of the row.
    pub fn median_ns_per_op(&self) -> Option<f64> {
        self.median_of(|_, process| Some(process.ns_per_op))
    }

    /// The values of the processes, in block order.
    pub fn values(&self, value: impl Fn(&Measurement, &Process) -> Option<f64>) -> Vec<f64> {
        self.processes
            .values()
            .filter_map(|(measurement, process)| value(measurement, process))
            .collect()
    }
}
