//! The records of one row, an allocator in a case, and the rule that one process that is not `ok`
//! leaves the row without processes.

use super::clock::Clock;
use super::failure::Failed;
use super::fixed_time;
use super::interference;
use super::role::Role;
use super::slices::{Dependence, Duet, Length, dependence, is_of_time, of_endless_turns};
use crate::execute::{Measurement, Outcome, TurnsTaken};
use crate::metric::{Metric, Process, Sample};
use crate::observe::mean_heap::MeanHeap;
use crate::plan::{Case as PlannedCase, Turns};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use heapmark_stats::{mean, median};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The number of blocks that have begun: one more than the last block that has a sample.
pub fn blocks_begun<'r>(records: impl IntoIterator<Item = &'r Record>) -> u32 {
    records
        .into_iter()
        .filter(|record| record.purpose == Purpose::Sample)
        .map(|record| record.block)
        .max()
        .map_or(0, |last| last.saturating_add(1))
}

/// Records by row, so that finding a row does not scan all others.
pub struct RecordsByRow<'a> {
    rows: HashMap<(&'a str, u32, &'a str), Vec<&'a Record>>,
    /// Faults found in functions that few workloads call, by allocator.
    findings: HashMap<&'a str, Vec<&'a String>>,
    /// Cases whose processes could not take turns, and why.
    alone: HashMap<(&'a str, u32), &'a str>,
}

impl<'a> RecordsByRow<'a> {
    pub fn new(records: impl IntoIterator<Item = &'a Record>) -> RecordsByRow<'a> {
        let mut rows: HashMap<_, Vec<&Record>> = HashMap::new();
        let mut findings: HashMap<&str, Vec<&String>> = HashMap::new();
        let mut alone = HashMap::new();
        for record in records {
            let allocator = record.allocator.as_str();
            let checks = [Purpose::Check, Purpose::Search];
            if checks.contains(&record.purpose) || record.purpose.is_of_a_block() {
                let row = (record.workload.as_str(), record.threads, allocator);
                rows.entry(row).or_default().push(record);
            } else if let (Purpose::Trial, Outcome::Unsupported { why }) =
                (record.purpose, &record.outcome)
            {
                alone.insert((record.workload.as_str(), record.threads), why.as_str());
            } else if record.purpose == Purpose::Corners {
                findings
                    .entry(allocator)
                    .or_default()
                    .extend(&*record.findings);
            }
        }
        RecordsByRow {
            rows,
            findings,
            alone,
        }
    }

    /// The checks of a row, and its processes of one kind; records with another purpose are
    /// ignored.
    pub fn of_row(
        &self,
        case: &PlannedCase,
        allocator: &AllocatorInfo,
        purpose: Purpose,
    ) -> Vec<&'a Record> {
        let row = (
            case.workload.as_str(),
            case.threads,
            allocator.name.as_str(),
        );
        self.rows
            .get(&row)
            .into_iter()
            .flatten()
            .copied()
            .filter(|record| record.purpose == Purpose::Check || record.purpose == purpose)
            .collect()
    }

    /// Why the processes of a case took no turns although they were meant to.
    pub fn alone(&self, workload: &str, threads: u32) -> Option<&'a str> {
        self.alone.get(&(workload, threads)).copied()
    }

    /// Counts the checks and samples that belong to no row of the plan.
    pub fn unplanned(&self, run: &RunFile) -> usize {
        let planned = |workload: &str, threads: u32, allocator: &str| {
            let case = run
                .plan
                .cases
                .iter()
                .find(|case| case.workload == workload && case.threads == threads);
            case.is_some_and(|case| run.rows_of(case).any(|info| info.name == allocator))
        };
        let mut unplanned = 0;
        for ((workload, threads, allocator), records) in &self.rows {
            if !planned(workload, *threads, allocator) {
                unplanned += records.len();
            }
        }
        unplanned
    }
}

/// A slot, which is a block and one of its parts: processes of the same slot are compared because
/// they ran one after the other.
pub type PairKey = (u32, u32);

/// The processes of one row.
pub struct Group<'a> {
    /// The case.
    pub case: &'a PlannedCase,
    /// The allocator.
    pub allocator: &'a AllocatorInfo,
    /// The row's part in the comparison.
    pub role: Role,
    /// The failure, if any check or sample did not end `ok`; `processes` is then empty.
    pub failed: Option<Failed>,
    /// The row's processes.
    pub processes: BTreeMap<PairKey, Process<'a>>,
    /// The slots that had interference.
    pub disturbed: BTreeSet<PairKey>,
    /// Per slot, the stalls that the process may have caused itself.
    pub stalled: BTreeMap<PairKey, Vec<&'static str>>,
    /// The CPU times of a command's processes in the order in which they were measured, which is not that of blocks if some
    /// were repeated.
    pub cpu_ns_in_order: Vec<f64>,
    /// The measurement of the row's check, which timed nothing.
    pub check: Option<&'a Measurement>,
    /// The mean heaps of the processes whose memory was sampled.
    pub mean_heaps: BTreeMap<PairKey, &'a MeanHeap>,
    /// The number of samples that ended `ok`, but without operations, time or iterations to divide.
    pub unusable: usize,
    /// Faults of the allocator in functions that few workloads call.
    pub findings: Vec<String>,
}

impl<'a> Group<'a> {
    pub fn new(
        run: &RunFile,
        case: &'a PlannedCase,
        allocator: &'a AllocatorInfo,
        records: &RecordsByRow<'a>,
    ) -> Group<'a> {
        let of_row = records.of_row(case, allocator, Purpose::Sample);
        let findings = records.findings.get(allocator.name.as_str());
        let mut group = Group {
            case,
            allocator,
            role: Role::of(allocator, case.baseline(&run.plan.baseline)),
            failed: Failed::among(&of_row),
            processes: BTreeMap::new(),
            disturbed: BTreeSet::new(),
            stalled: BTreeMap::new(),
            cpu_ns_in_order: Vec::new(),
            check: None,
            mean_heaps: BTreeMap::new(),
            unusable: 0,
            findings: findings.into_iter().flatten().copied().cloned().collect(),
        };
        if group.failed.is_some() {
            return group;
        }
        let (checks, samples): (Vec<&Record>, Vec<&Record>) = of_row
            .into_iter()
            .partition(|record| record.purpose == Purpose::Check);
        group.check = checks
            .first()
            .and_then(|record| record.measurement.as_ref());
        let mut processes = Vec::new();
        for record in samples {
            let slot = (record.block, record.part);
            group
                .mean_heaps
                .extend(record.mean_heap.as_deref().map(|heap| (slot, heap)));
            if !interference::causes(record).is_empty() {
                group.disturbed.insert(slot);
            }
            let stalls = interference::stalls(record);
            if !stalls.is_empty() {
                group.stalled.insert(slot, stalls);
            }
            let measurement = record.measurement.as_ref();
            match measurement.and_then(|measurement| Process::new(measurement, record.threads)) {
                Some(process) => processes.push((slot, process)),
                None => group.unusable += 1,
            }
        }
        if case.command().is_some() {
            let processes = processes.iter();
            group.cpu_ns_in_order = processes
                .filter_map(|(_, process)| process.cpu_ns_per_op())
                .collect();
        }
        // Collected at once: a map that grows in key order ends up half empty.
        group.processes = processes.into_iter().collect();
        group
    }

    /// Returns the group's processes as the input of metrics.
    pub fn samples(&self) -> Vec<(PairKey, Sample<'a>)> {
        self.processes
            .iter()
            .map(|(slot, process)| {
                let sample = Sample {
                    measurement: process.measurement,
                    process: Some(*process),
                    memory: None,
                    mean_heap: self.mean_heaps.get(slot).copied(),
                };
                (*slot, sample)
            })
            .collect()
    }

    /// The number of blocks in which the row has a process.
    pub fn blocks(&self) -> usize {
        let blocks: BTreeSet<u32> = self.processes.keys().map(|(block, _)| *block).collect();
        blocks.len()
    }

    /// ln of this row's value over the other row's, for each slot in which both have one, as it was measured.
    pub fn measured_ratios(
        &self,
        other: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> BTreeMap<PairKey, f64> {
        let duets = self.duets(other, value).into_iter();
        duets.map(|(slot, duet)| (slot, duet.log)).collect()
    }

    /// Returns the same ratios as [`Group::measured_ratios`], for times: if a ratio depends on the length of
    /// turns, as it would be with endless turns.
    pub fn log_ratios(
        &self,
        other: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> BTreeMap<PairKey, f64> {
        let (slots, duets): (Vec<PairKey>, Vec<Duet>) =
            self.duets(other, value).into_iter().unzip();
        slots.into_iter().zip(of_endless_turns(&duets)).collect()
    }

    /// The turns that the row's processes took.
    fn turns(&self) -> impl Iterator<Item = &'a TurnsTaken> {
        let processes = self.processes.values();
        processes.filter_map(|process| process.measurement.turns.as_ref())
    }

    /// Whether the row's processes took turns.
    pub fn took_turns(&self) -> bool {
        self.turns().next().is_some()
    }

    /// The lengths of the turns that the scheduler gave the row's processes.
    pub fn turns_of_scheduler(&self) -> impl Iterator<Item = Length> {
        let turns = self.turns();
        let given = turns.filter(|turns| turns.by == Turns::Slices && turns.turn_ns.is_some());
        given.map(Length::of)
    }

    /// Returns how the ratio of this row's value to the other's depends on the length of turns;
    /// `None` if no dependence was found.
    pub fn depends_on_turns(
        &self,
        other: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> Option<Dependence> {
        let duets = self.duets(other, value).into_iter().map(|(_, duet)| duet);
        dependence(&duets.collect::<Vec<_>>())
    }

    fn duets(
        &self,
        other: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> Vec<(PairKey, Duet)> {
        let both = self.processes.iter().filter_map(|(slot, ours)| {
            let theirs = other.processes.get(slot)?;
            let duet = Duet {
                log: (value(ours)? / value(theirs)?).ln(),
                turn: ours.measurement.turns.as_ref().map(Length::of),
            };
            Some((*slot, duet))
        });
        both.collect()
    }

    /// ln of this row's time over the other row's, by block: a candidate runs once in a block, so
    /// the block identifies the pair.
    pub fn log_times(&self, other: &Group, clock: Clock) -> BTreeMap<u32, f64> {
        self.log_ratios(other, |process| clock.of(process))
            .into_iter()
            .map(|((block, _), log)| (block, log))
            .collect()
    }

    /// The median of a value over the processes that have it.
    pub fn median_of(&self, value: impl Fn(&Process) -> Option<f64>) -> Option<f64> {
        median(&self.values(value))
    }

    /// The median ns per operation, the main figure of the row.
    pub fn median_ns_per_op(&self) -> Option<f64> {
        self.median_of(|process| Some(process.ns_per_op()))
    }

    /// The values of the processes, in block order.
    pub fn values(&self, value: impl Fn(&Process) -> Option<f64>) -> Vec<f64> {
        self.processes.values().filter_map(value).collect()
    }
}

/// The mean of each block. The baseline runs in all parts of a block, which are not independent of each other: tests
/// count blocks.
pub(super) fn of_blocks(values: impl IntoIterator<Item = (PairKey, f64)>) -> Vec<f64> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((block, _), value) in values {
        blocks.entry(block).or_default().push(value);
    }
    blocks.values().filter_map(|values| mean(values)).collect()
}

/// The rows of a case.
pub struct CaseGroups<'a> {
    /// The case.
    pub case: &'a PlannedCase,
    /// The rows, in plan order.
    pub groups: Vec<Group<'a>>,
}

impl<'a> CaseGroups<'a> {
    /// Whether the processes of the case took turns.
    pub fn took_turns(&self) -> bool {
        self.groups.iter().any(Group::took_turns)
    }

    pub fn baseline(&self) -> Option<&Group<'a>> {
        self.of(Role::Baseline).next()
    }

    pub fn of(&self, role: Role) -> impl Iterator<Item = &Group<'a>> {
        self.groups.iter().filter(move |group| group.role == role)
    }

    pub fn named(&self, name: &str) -> Option<&Group<'a>> {
        self.groups
            .iter()
            .find(|group| group.allocator.name == name)
    }

    /// What the rows are ranked by: time, or a number that the command reports about itself.
    pub fn clock(&self) -> Clock {
        match self.case.command().map(|command| &command.values[..]) {
            None | Some([]) => Clock::Wall,
            Some(_) => Clock::Own,
        }
    }

    /// The value of a process by which its row is ranked.
    pub fn ranked_by(&self, process: &Process) -> Option<f64> {
        self.clock().of(process)
    }

    /// Whether the case's times say nothing about an allocator: they are recorded ones, or those of
    /// a command that runs for a fixed time.
    pub fn is_paced(&self) -> bool {
        let check = || self.baseline()?.check;
        self.case.is_paced() || check().is_some_and(fixed_time::is_fixed)
    }

    /// ln of a row's value by this metric over the baseline's, for each slot in which both have one.
    pub fn logs_by(
        &self,
        group: &Group,
        by: &Metric,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> Vec<f64> {
        match is_of_time(by) {
            true => self.logs(group, value),
            false => self.measured_logs(group, value),
        }
    }

    /// ln of a row's value over the baseline's, for each slot in which both have one, as it was measured.
    pub fn measured_logs(
        &self,
        group: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> Vec<f64> {
        let baseline = self.baseline();
        let ratios = baseline.map(|baseline| group.measured_ratios(baseline, value));
        ratios.unwrap_or_default().into_values().collect()
    }

    /// Returns the same as [`CaseGroups::measured_logs`], for times: if the values depend on the length of turns,
    /// those of endless turns.
    pub fn logs(&self, group: &Group, value: impl Fn(&Process) -> Option<f64>) -> Vec<f64> {
        let baseline = self.baseline();
        baseline
            .map(|baseline| group.log_ratios(baseline, value).into_values().collect())
            .unwrap_or_default()
    }

    /// The row of this role with the least median time; `None` if the times say nothing about allocators.
    pub fn fastest(&self, role: Role) -> Option<&Group<'a>> {
        self.of(role)
            .filter(|_| !self.is_paced())
            .filter_map(|row| Some((row.median_ns_per_op()?, row)))
            .min_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, row)| row)
    }

    /// Whether the harness takes more than half of the fastest allocator's time.
    pub fn floor_is_high(&self) -> bool {
        let median_ns = |role| self.fastest(role)?.median_ns_per_op();
        let fastest_ns = [Role::Baseline, Role::Candidate]
            .into_iter()
            .filter_map(median_ns)
            .min_by(f64::total_cmp);
        median_ns(Role::Floor)
            .zip(fastest_ns)
            .is_some_and(|(floor_ns, fastest_ns)| floor_ns > fastest_ns / 2.0)
    }
}
