//! How long single calls took, over all processes of a row. Counts are merged, and times are never
//! averaged: a percentile is that of all timed calls, and is given only if enough of them lie beyond it.

use super::distinct;
use crate::execute::Latency;
use crate::execute::latency::{Calls, Stall};
use crate::plan::CellId;
use crate::store::{Purpose, Record};
use hdrhistogram::Histogram;
use heapmark_stats::median;
use serde::Serialize;
use std::collections::BTreeSet;

/// The number of calls that must lie beyond a percentile.
const BEYOND: u64 = 10;

/// How the calls of a table were timed.
#[derive(Clone, Debug, Serialize)]
pub struct Timing {
    /// The interval of timed calls: in each thread, one in this many was timed.
    pub every: u32,
    /// The cost of reading the clock; `None` if no process has reported it yet.
    pub timer: Option<Timer>,
}

/// The clock of single calls, over all processes of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timer {
    /// The clocks that were read.
    pub clocks: BTreeSet<String>,
    /// The smallest difference seen between two consecutive readings.
    pub least_ns: u64,
    /// The difference between two consecutive readings: the median over processes of each process's median.
    pub median_ns: f64,
}

/// Facts about the timed calls of a row that its cells do not contain.
#[derive(Clone, Debug, Serialize)]
pub struct TimedCalls {
    /// The number of processes that are included.
    pub processes: usize,
    /// The number of processes that ended `ok` but have no counts.
    pub unusable: usize,
    /// The longest call of each function that was called.
    pub longest: Vec<LongestCall>,
}

/// The longest timed call of a function.
#[derive(Clone, Debug, Serialize)]
pub struct LongestCall {
    /// The function's name: `malloc`, `free`, …
    pub function: String,
    /// How many calls of the function were timed.
    pub timed_calls: u64,
    /// The longest timed call of the function.
    #[serde(flatten)]
    pub call: Stall,
    /// The cell of the process that made the call.
    pub cell: CellId,
}

/// The times that half of a function's calls, 9 in 10 and so on did not exceed, each `None` if
/// fewer than ten calls are expected beyond it; and the function's longest call.
pub(super) type Called = ([Option<u64>; 5], LongestCall);

/// A process and the latencies that it reported.
pub(super) type TimedRecord<'a> = (&'a Record, &'a Latency);

/// Returns the clock of some processes; `None` if there are no processes.
pub(super) fn timer(all: &[&Latency]) -> Option<Timer> {
    let medians: Vec<f64> = all
        .iter()
        .map(|latency| latency.timer_median_ns as f64)
        .collect();
    Some(Timer {
        clocks: all.iter().map(|latency| latency.clock.clone()).collect(),
        least_ns: all.iter().map(|latency| latency.timer_least_ns).min()?,
        median_ns: median(&medians)?,
    })
}

/// Returns the processes of a row that reported latencies, and the number of those that ended `ok` without any.
pub(super) fn timed<'a>(records: &[&'a Record]) -> (Vec<TimedRecord<'a>>, usize) {
    let timed = records
        .iter()
        .filter(|record| record.purpose == Purpose::Latency);
    let reported: Vec<TimedRecord> = timed
        .clone()
        .filter_map(|&record| Some((record, record.measurement.as_ref()?.latency.as_deref()?)))
        .collect();
    let unusable = timed.count() - reported.len();
    (reported, unusable)
}

/// The called functions, in the order in which the processes list them.
pub(super) fn functions(records: &[TimedRecord]) -> Vec<Called> {
    let listed = records.iter().flat_map(|(_, latency)| &latency.functions);
    distinct(listed.map(|calls| calls.function.as_str()))
        .into_iter()
        .filter_map(|name| called(name, records))
        .collect()
}

fn called(name: &str, records: &[TimedRecord]) -> Option<Called> {
    let all: Vec<(&CellId, &Calls)> = records
        .iter()
        .filter_map(|(record, latency)| {
            let mut functions = latency.functions.iter();
            Some((
                &record.cell,
                functions.find(|calls| calls.function == name)?,
            ))
        })
        .collect();
    // Of several equally long calls, the first one is reported.
    let (longest_cell, longest) = all.iter().rev().max_by_key(|(_, calls)| calls.longest.ns)?;
    let longest = &longest.longest;
    // Each bucket counts at its upper end, so that "at most" stays true. Two significant digits make
    // buckets half as wide as the guest's, with the same borders: no value is rounded twice.
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
    let percentiles = [2, 10, 100, 1000, 10_000].map(percentile);
    let longest = LongestCall {
        function: name.to_string(),
        timed_calls: merged.len(),
        call: longest.clone(),
        cell: (*longest_cell).clone(),
    };
    Some((percentiles, longest))
}
