//! How long single calls took, over all processes of a row. Counts are merged, times never
//! averaged: a percentile is one of all calls that were timed, and is given only if enough of them
//! lie beyond it.

use super::distinct;
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
    /// How it failed, if it did: then it has no functions.
    pub failed: Option<Failed>,
    /// Processes that are included.
    pub processes: usize,
    /// Processes that ended `ok` but have no counts.
    pub unusable: usize,
    /// The functions that were called.
    pub functions: Vec<Called>,
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
    /// The calls of one function, if there were any.
    pub fn function(&self, name: &str) -> Option<&Called> {
        let mut functions = self.functions.iter();
        functions.find(|called| called.function == name)
    }
}

/// A process and the latencies that it reported.
type TimedRecord<'a> = (&'a Record, &'a Latency);

/// One table per case of the plan.
pub(super) fn cases(run: &RunFile, every: u32, records: &RecordsByRow) -> Vec<LatencyCase> {
    let of_case = |case: &Case| {
        let baseline = case.baseline(&run.plan.baseline);
        let mut all = Vec::new();
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
    };
    run.plan.cases.iter().map(of_case).collect()
}

fn timer(all: &[&Latency]) -> Option<Timer> {
    let medians: Vec<f64> = all.iter().map(|it| it.timer_median_ns as f64).collect();
    Some(Timer {
        clocks: all.iter().map(|it| it.clock.clone()).collect(),
        least_ns: all.iter().map(|it| it.timer_least_ns).min()?,
        median_ns: median(&medians)?,
    })
}

/// The row; what its processes reported is added to `all`.
fn row<'a>(
    case: &Case,
    allocator: &AllocatorInfo,
    baseline: &str,
    records: &RecordsByRow<'a>,
    all: &mut Vec<&'a Latency>,
) -> LatencyRow {
    let own = records.of_row(case, allocator, Purpose::Latency);
    let timed = || {
        let own = own.iter().copied();
        own.filter(|record| record.purpose == Purpose::Latency)
    };
    let told: Vec<TimedRecord> = timed()
        .filter_map(|record| Some((record, record.measurement.as_ref()?.latency.as_deref()?)))
        .collect();
    all.extend(told.iter().map(|(_, latency)| *latency));
    let failed = Failed::among(&own);
    LatencyRow {
        allocator: allocator.name.clone(),
        tier: allocator.tier.clone(),
        role: Role::of(allocator, baseline),
        processes: told.len(),
        unusable: timed().count() - told.len(),
        functions: if failed.is_none() {
            functions(&told)
        } else {
            Vec::new()
        },
        failed,
    }
}

/// In the order in which the processes list them.
fn functions(told: &[TimedRecord]) -> Vec<Called> {
    let listed = told.iter().flat_map(|(_, latency)| &latency.functions);
    distinct(listed.map(|calls| calls.function.as_str()))
        .into_iter()
        .filter_map(|name| called(name, told))
        .collect()
}

fn called(name: &str, told: &[TimedRecord]) -> Option<Called> {
    let all: Vec<(&CellId, &Calls)> = told
        .iter()
        .filter_map(|(record, latency)| {
            let mut functions = latency.functions.iter();
            Some((
                &record.cell,
                functions.find(|calls| calls.function == name)?,
            ))
        })
        .collect();
    // Of equal ones the first.
    let (longest_cell, longest) = all.iter().rev().max_by_key(|(_, calls)| calls.longest.ns)?;
    let longest = &longest.longest;
    // A bucket counts with its upper end, so that "at most" stays true. Two digits make buckets half
    // as wide as the guest's, with the same borders: no value is rounded twice.
    let mut merged: Histogram<u64> =
        Histogram::new_with_max(1 << 42, 2).expect("bounds that are valid");
    for bucket in all.iter().flat_map(|(_, calls)| &calls.buckets) {
        merged.saturating_record_n(bucket.to_ns, bucket.count);
    }
    // The time that all calls but one in `one_in` do not exceed.
    let percentile = |one_in: u64| {
        let enough = merged.len() >= BEYOND * one_in;
        let at_most = || merged.value_at_quantile(1.0 - 1.0 / one_in as f64);
        // The end of the longest call's bucket lies beyond that call.
        enough.then(|| at_most().min(longest.ns))
    };
    Some(Called {
        function: name.to_string(),
        count: merged.len(),
        p50_ns: percentile(2),
        p90_ns: percentile(10),
        p99_ns: percentile(100),
        p99_9_ns: percentile(1000),
        p99_99_ns: percentile(10_000),
        longest: longest.clone(),
        longest_cell: (*longest_cell).clone(),
    })
}
