//! The smallest limit on memory of each row, what the search tried, and how much slower the row is near that limit.

use super::failure::Failed;
use super::group::RecordsByRow;
use super::ratio::Ratio;
use super::role::Role;
use super::spread::Spread;
use super::table::{Table, TableRow, TriedLimit};
use super::table_cell::{THRESHOLD, TableCell, by_range};
use crate::metric::{self, Judged, OVERHEAD_FROM_BYTES, Process};
use crate::plan::limit::TIMED_PERCENT;
use crate::plan::{Case, LimitKind};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use std::collections::BTreeMap;

/// The key of the metric that a search determines.
const SMALLEST: &str = "smallest_limit_bytes";

/// The tables of all cases.
pub fn tables(run: &RunFile, records: &RecordsByRow) -> Vec<Table> {
    run.plan
        .cases
        .iter()
        .map(|case| {
            let mut rows: Vec<TableRow> = run
                .rows_of(case)
                .map(|allocator| row(run, case, allocator, records))
                .collect();
            let base = rows.iter().find(|row| row.role == Role::Baseline).cloned();
            if let Some(base) = base {
                rows.iter_mut().for_each(|row| compare(row, &base));
            }
            Table::new(run, case, rows)
        })
        .collect()
}

fn compare(row: &mut TableRow, base: &TableRow) {
    for cell in &mut row.cells {
        // A row's slow-down is relative to the row itself, not to the baseline.
        if !cell.label.is_empty() {
            continue;
        }
        let Some(other) = base.cell(cell.metric.key) else {
            continue;
        };
        let ratio = cell.spread.median / other.spread.median;
        cell.ratio = ratio.is_finite().then(|| Ratio {
            ratio,
            ..Ratio::baseline(1)
        });
        if cell.metric.judged == Judged::ByRange && row.role != Role::Baseline {
            cell.verdict = Some(by_range(cell, other, THRESHOLD, false));
        }
    }
}

fn row(run: &RunFile, case: &Case, allocator: &AllocatorInfo, records: &RecordsByRow) -> TableRow {
    let mut of_row = records.of_row(case, allocator, Purpose::Search);
    let timed = records.of_row(case, allocator, Purpose::Limited);
    of_row.extend(
        timed
            .into_iter()
            .filter(|record| record.purpose == Purpose::Limited),
    );
    let mut row = TableRow::new(run, case, allocator, Failed::among(&of_row));
    if row.failed.is_some() {
        return row;
    }
    row.limits = tried(&of_row);
    let is_cgroup = run.plan.mode.limit() == Some(LimitKind::Cgroup);
    let mut add = |key: &str, value: Option<f64>| {
        let cell = value.and_then(|value| TableCell::new(metric::named(key), &[value]));
        row.cells.extend(cell);
    };
    let smallest = smallest(&row.limits);
    let found = smallest.map(|limit| limit.bytes as f64);
    // The process that ran without a limit.
    let free = of_row.iter().find(|record| record.demand.is_some());
    let live_bytes = free
        .and_then(|record| Some(record.measurement.as_ref()?.requested_peak_bytes as f64))
        .filter(|bytes| *bytes > 0.0);
    let free = free.and_then(|record| record.demand.as_deref());
    add("limited_live_bytes", live_bytes);
    let large = live_bytes.filter(|bytes| *bytes >= OVERHEAD_FROM_BYTES);
    add(
        "headroom_ratio",
        found.zip(large).map(|(bytes, live)| bytes / live),
    );
    let failed = found.and_then(|bytes| still_failed(&row.limits, bytes));
    add("failed_up_to_bytes", failed);
    add(
        "unlimited_bytes",
        free.filter(|free| free.most_bytes > 0)
            .map(|free| free.most_bytes.saturating_sub(free.harness_bytes) as f64),
    );
    add(
        "reclaimable_bytes",
        free.filter(|_| is_cgroup)
            .map(|free| free.reclaimable_bytes as f64),
    );
    if let Some(limit) = smallest {
        let most = failed.unwrap_or(limit.bytes as f64);
        let between = [too_small(&row.limits, limit), most];
        let cell = TableCell::new(metric::named(SMALLEST), &between);
        let n = limit.outcomes.len() as u64;
        let cell = cell.map(|cell| TableCell {
            spread: Spread {
                median: limit.bytes as f64,
                ..cell.spread
            },
            n,
            ..cell
        });
        row.cells.splice(0..0, cell);
    }
    for percent in TIMED_PERCENT {
        let cell = TableCell::new(
            metric::named("limit_slowdown"),
            &slowdowns(&of_row, percent),
        );
        row.cells.extend(cell.map(|cell| TableCell {
            label: (f64::from(percent) / 100.0).to_string(),
            ..cell
        }));
    }
    row
}

/// All limits of a search in ascending order, then those of timed processes.
fn tried(records: &[&Record]) -> Vec<TriedLimit> {
    let mut all: BTreeMap<(Option<u32>, u64), Vec<&'static str>> = BTreeMap::new();
    for record in records {
        if let Some(limit) = &record.limit
            && let Some(bytes) = limit.bytes
        {
            all.entry((limit.percent, bytes))
                .or_default()
                .push(record.outcome.word());
        }
    }
    all.into_iter()
        .map(|((percent, bytes), outcomes)| TriedLimit {
            bytes,
            percent,
            outcomes,
        })
        .collect()
}

/// The smallest limit under which the work was done; `None` if none was found yet.
fn smallest(tried: &[TriedLimit]) -> Option<&TriedLimit> {
    searched(tried).find(|limit| limit.does() == Some(true))
}

/// The largest limit below the smallest sufficient one under which no process ended `ok`.
fn too_small(tried: &[TriedLimit], smallest: &TriedLimit) -> f64 {
    searched(tried)
        .take_while(|limit| limit.bytes < smallest.bytes)
        .filter(|limit| limit.ok() == 0)
        .last()
        .map_or(0.0, |limit| limit.bytes as f64)
}

/// The largest limit, not below the smallest sufficient one, under which some process still failed:
/// the memory that a process needs varies.
fn still_failed(tried: &[TriedLimit], smallest_bytes: f64) -> Option<f64> {
    tried
        .iter()
        .filter(|limit| limit.word() != "ok")
        .map(|limit| limit.bytes as f64)
        .filter(|bytes| *bytes >= smallest_bytes)
        .max_by(f64::total_cmp)
}

fn searched(tried: &[TriedLimit]) -> impl Iterator<Item = &TriedLimit> {
    tried.iter().filter(|limit| limit.percent.is_none())
}

/// How much slower the row was near its smallest limit, in each block; none if a process there did not end `ok`.
fn slowdowns(records: &[&Record], percent: u32) -> Vec<f64> {
    let time = |record: &Record| {
        let measurement = record.measurement.as_ref()?;
        Some(Process::new(measurement, record.threads)?.ns_per_op())
    };
    let of = |record: &&&Record| record.purpose == Purpose::Limited;
    let under = |record: &Record| record.limit.as_ref()?.percent;
    let near = || {
        records
            .iter()
            .filter(of)
            .filter(|record| under(record) == Some(percent))
    };
    if !near().all(|record| record.outcome.is_ok()) {
        return Vec::new();
    }
    near()
        .filter_map(|record| {
            let free = records
                .iter()
                .filter(of)
                .find(|other| under(other).is_none() && other.block == record.block)?;
            Some(time(record)? / time(free)?)
        })
        .collect()
}
