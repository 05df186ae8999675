//! How long single calls took, over all processes of a row. Counts are merged, times never
//! averaged: a percentile is one of all calls that were timed, and is given only if enough of them
//! lie beyond it.

use super::failure::Failed;
use super::group::RecordsByRow;
use super::role::Role;
use crate::execute::Latency;
use crate::execute::latency::{Calls, Stall};
use crate::plan::{Case, CellId};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use hdrhistogram::Histogram;
use heapmark_stats::median;
use serde::Serialize;
use std::collections::BTreeSet;

/// Calls that must lie beyond a percentile.
const BEYOND: u64 = 10;

/// A workload at a thread count.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyCase {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// More threads than usable CPUs.
    pub oversubscribed: bool,
    /// One call in this many of each thread was timed.
    pub every: u32,
    /// The cost of reading the clock; `None` if no process has reported it yet.
    pub timer: Option<Timer>,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
    /// One per allocator of the run, in plan order, and one per program.
    pub rows: Vec<LatencyRow>,
}

/// The clock of single calls, over all processes of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timer {
    /// The clocks that were read.
    pub clocks: BTreeSet<String>,
    /// The smallest difference seen between two consecutive readings.
    pub least_ns: u64,
    /// Median over processes of their medians.
    pub median_ns: f64,
}

/// An allocator in a case.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyRow {
    /// Allocator name.
    pub allocator: String,
    /// Its tier, as the run recorded it.
    pub tier: String,
    /// What it is in the comparison.
    pub role: Role,
    /// Its result so far.
    pub state: LatencyState,
}

/// The result of a row so far.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LatencyState {
    /// Every process so far ended `ok`.
    Measured {
        /// Processes that are included.
        processes: usize,
        /// Processes that ended `ok` but have no counts.
        unusable: usize,
        /// The functions that were called.
        functions: Vec<Called>,
    },
    /// At least one process did not end `ok`.
    Failed(Failed),
    /// No process with counts yet.
    Missing {
        /// Processes that ended `ok` but have no counts.
        unusable: usize,
    },
}

/// The timed calls of one function. A percentile is the time that this share of calls did not
/// exceed; `None` if fewer than ten calls are expected beyond it.
#[derive(Clone, Debug, Serialize)]
pub struct Called {
    /// `malloc`, `free`, …
    pub function: String,
    /// How many were timed.
    pub count: u64,
    /// Half of them took at most this.
    pub p50_ns: Option<u64>,
    /// 9 of 10.
    pub p90_ns: Option<u64>,
    /// 99 of 100.
    pub p99_ns: Option<u64>,
    /// 999 of 1000.
    pub p99_9_ns: Option<u64>,
    /// 9999 of 10,000.
    pub p99_99_ns: Option<u64>,
    /// The longest timed call, exactly.
    pub longest: Stall,
    /// The cell of its process.
    pub longest_cell: CellId,
}

impl Called {
    /// As the metrics of single calls, in their order.
    pub fn values(&self) -> [Option<u64>; 6] {
        [
            self.p50_ns,
            self.p90_ns,
            self.p99_ns,
            self.p99_9_ns,
            self.p99_99_ns,
            Some(self.longest.ns),
        ]
    }
}

impl LatencyRow {
    /// How it failed, if it did.
    pub fn failed(&self) -> Option<&Failed> {
        match &self.state {
            LatencyState::Failed(failed) => Some(failed),
            LatencyState::Measured { .. } | LatencyState::Missing { .. } => None,
        }
    }

    /// The functions that were called, if any.
    pub fn functions(&self) -> &[Called] {
        match &self.state {
            LatencyState::Measured { functions, .. } => functions,
            LatencyState::Failed(_) | LatencyState::Missing { .. } => &[],
        }
    }
}

/// A process and the latencies that it reported.
type TimedRecord<'a> = (&'a Record, &'a Latency);

/// One table per case of the plan.
pub(super) fn cases(run: &RunFile, every: u32, records: &RecordsByRow) -> Vec<LatencyCase> {
    run.plan
        .cases
        .iter()
        .map(|case| of_case(run, case, every, records))
        .collect()
}

fn of_case(run: &RunFile, case: &Case, every: u32, records: &RecordsByRow) -> LatencyCase {
    let mut all = Vec::new();
    let baseline = case.baseline(&run.plan.baseline);
    let rows = run
        .rows_of(case)
        .map(|allocator| row(case, allocator, baseline, records, &mut all))
        .collect();
    LatencyCase {
        workload: case.workload.clone(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        every,
        timer: timer(&all),
        caution: case.caution.clone(),
        rows,
    }
}

fn timer(all: &[TimedRecord]) -> Option<Timer> {
    let medians: Vec<f64> = all
        .iter()
        .map(|(_, latency)| latency.timer_median_ns as f64)
        .collect();
    Some(Timer {
        clocks: all
            .iter()
            .map(|(_, latency)| latency.clock.clone())
            .collect(),
        least_ns: all
            .iter()
            .map(|(_, latency)| latency.timer_least_ns)
            .min()?,
        median_ns: median(&medians)?,
    })
}

fn row<'a>(
    case: &Case,
    allocator: &AllocatorInfo,
    baseline: &str,
    records: &RecordsByRow<'a>,
    all: &mut Vec<TimedRecord<'a>>,
) -> LatencyRow {
    let own = records.of_row(case, allocator, Purpose::Latency);
    let failed = Failed::among(&own);
    let timed = own
        .iter()
        .filter(|record| record.purpose == Purpose::Latency);
    let told: Vec<TimedRecord> = timed
        .clone()
        .filter_map(|record| Some((*record, latency(record)?)))
        .collect();
    let unusable = timed.count() - told.len();
    let state = match failed {
        Some(failed) => LatencyState::Failed(failed),
        None if told.is_empty() => LatencyState::Missing { unusable },
        None => LatencyState::Measured {
            processes: told.len(),
            unusable,
            functions: functions(&told),
        },
    };
    all.extend(told);
    let role = Role::of(allocator, baseline);
    LatencyRow {
        allocator: allocator.name.clone(),
        tier: allocator.tier.clone(),
        role,
        state,
    }
}

fn latency(record: &Record) -> Option<&Latency> {
    record.measurement.as_ref()?.latency.as_deref()
}

/// In the order in which the processes list them.
fn functions(told: &[TimedRecord]) -> Vec<Called> {
    let mut names: Vec<&str> = Vec::new();
    for calls in told.iter().flat_map(|(_, latency)| &latency.functions) {
        if !names.contains(&calls.function.as_str()) {
            names.push(&calls.function);
        }
    }
    names
        .into_iter()
        .filter_map(|name| called(name, told))
        .collect()
}

fn called(name: &str, told: &[TimedRecord]) -> Option<Called> {
    let of_name = |(record, latency): &TimedRecord<'_>| {
        let mut functions = latency.functions.iter();
        Some((
            record.cell.clone(),
            functions.find(|calls| calls.function == name)?.clone(),
        ))
    };
    let all: Vec<(CellId, Calls)> = told.iter().filter_map(of_name).collect();
    // Of equal ones the first.
    let (longest_cell, longest) = all.iter().rev().max_by_key(|(_, calls)| calls.longest.ns)?;
    let longest = &longest.longest;
    let merged = merge(all.iter().map(|(_, calls)| calls));
    Some(Called {
        function: name.to_string(),
        count: merged.len(),
        p50_ns: percentile(&merged, longest, 2),
        p90_ns: percentile(&merged, longest, 10),
        p99_ns: percentile(&merged, longest, 100),
        p99_9_ns: percentile(&merged, longest, 1000),
        p99_99_ns: percentile(&merged, longest, 10_000),
        longest: longest.clone(),
        longest_cell: longest_cell.clone(),
    })
}

/// A bucket counts with its upper end, so that "at most" stays true. Two digits make buckets half
/// as wide as the guest's, with the same borders: no value is rounded twice.
fn merge<'a>(all: impl Iterator<Item = &'a Calls>) -> Histogram<u64> {
    let mut merged = Histogram::new_with_max(1 << 42, 2).expect("bounds that are valid");
    for bucket in all.flat_map(|calls| &calls.buckets) {
        merged.saturating_record_n(bucket.to_ns, bucket.count);
    }
    merged
}

/// The time that all calls but one in `one_in` do not exceed.
fn percentile(merged: &Histogram<u64>, longest: &Stall, one_in: u64) -> Option<u64> {
    let enough = merged.len() >= BEYOND * one_in;
    // The end of the longest call's bucket lies beyond that call.
    enough.then(|| {
        merged
            .value_at_quantile(1.0 - 1.0 / one_in as f64)
            .min(longest.ns)
    })
}
