//! One table for every kind of run: rows x metrics, a workload at a thread count. Ratios pair the
//! processes of a block; verdicts come from tests in timed runs, and elsewhere from ranges.

use super::failure::Failed;
use super::footprint::{self, Sampling};
use super::group::{PairKey, RecordsByRow};
use super::latency::{self, TimedCalls, Timing};
use super::limit::{self, TriedLimit};
use super::ratio::Ratio;
use super::role::Role;
use super::sample::sample;
use super::spread::Spread;
use super::table_cell::TableCell;
use super::{Row, Verdict};
use crate::metric::{self, Judged, Sample, Value};
use crate::plan::{Case, Counter, Mode};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use serde::Serialize;
use std::collections::BTreeMap;

/// A workload at a thread count.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// More threads than usable CPUs.
    pub oversubscribed: bool,
    /// The row that the others are compared with.
    pub baseline: String,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
    /// How single calls were timed, in a run that does that.
    #[serde(flatten)]
    pub timing: Option<Timing>,
    /// In plan order, unless they were sorted.
    pub rows: Vec<TableRow>,
}

/// An allocator in it.
#[derive(Clone, Debug, Serialize)]
pub struct TableRow {
    /// Its name.
    pub allocator: String,
    /// Its tier, as the run recorded it.
    pub tier: String,
    /// What it is in the comparison.
    pub role: Role,
    /// How it failed, if it did: then it has no cells.
    pub failed: Option<Failed>,
    /// What is known of it, in the order of the metrics.
    pub cells: Vec<TableCell>,
    /// Metrics without a value here, and why.
    pub why_not: BTreeMap<String, String>,
    /// What stands behind the values of some metrics, in words: names of what was counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// How the memory of its processes was sampled, in a run that does that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The timed calls of its processes, in a run that times single calls.
    #[serde(flatten)]
    pub calls: Option<TimedCalls>,
    /// The limits that were tried, in a run that looks for the smallest one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<TriedLimit>,
}

/// A difference that matters, as a share.
pub const THRESHOLD: f64 = 0.01;

impl Table {
    pub(super) fn new(run: &RunFile, case: &Case, rows: Vec<TableRow>) -> Table {
        Table {
            workload: case.workload.clone(),
            threads: case.threads,
            oversubscribed: case.oversubscribed,
            baseline: case.baseline(&run.plan.baseline).to_owned(),
            caution: case.caution.clone(),
            timing: None,
            rows,
        }
    }

    /// Rows with the least of a metric first, and those without it last.
    pub(super) fn sort_by_least(&mut self, key: &str) {
        let order = |row: &TableRow| {
            row.cell(key)
                .map_or(f64::INFINITY, |cell| cell.spread.median)
        };
        self.rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    }
}

impl TableRow {
    pub(super) fn new(
        run: &RunFile,
        case: &Case,
        allocator: &AllocatorInfo,
        failed: Option<Failed>,
    ) -> TableRow {
        TableRow {
            allocator: allocator.name.clone(),
            tier: allocator.tier.clone(),
            role: Role::of(allocator, case.baseline(&run.plan.baseline)),
            failed,
            cells: Vec::new(),
            why_not: BTreeMap::new(),
            details: BTreeMap::new(),
            sampling: None,
            calls: None,
            limits: Vec::new(),
        }
    }

    /// Whether some process of it has ended `ok`.
    pub fn has_run(&self) -> bool {
        !(self.cells.is_empty() && self.why_not.is_empty())
    }

    /// The value of a metric that has no labels.
    pub fn cell(&self, key: &str) -> Option<&TableCell> {
        self.cells.iter().find(|cell| cell.metric.key == key)
    }

    /// The value of a metric of the timed calls of a function.
    pub fn of_function(&self, function: &str, key: &str) -> Option<&TableCell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.label == function && cell.metric.key == key)
    }

    /// The same in nanoseconds, which are whole there.
    pub fn call_ns(&self, function: &str, key: &str) -> Option<u64> {
        let cell = self.of_function(function, key);
        cell.map(|cell| cell.spread.median as u64)
    }

    /// The ratios and verdicts of a row of timed processes.
    fn take(&mut self, row: &Row) {
        let Some(numbers) = row.numbers() else {
            return;
        };
        for cell in &mut self.cells {
            let known = match cell.metric.key {
                "ns_per_op" => (numbers.ratio, numbers.verdict),
                "cpu_ns_per_op" => (numbers.cpu_ratio, numbers.cpu_verdict),
                "user_ns_per_op" => (numbers.user_ratio, numbers.user_verdict),
                "grown_bytes" => (numbers.memory_ratio, numbers.memory_verdict),
                _ => continue,
            };
            (cell.ratio, cell.verdict) = known;
        }
        let over = numbers.aged.map(|over| TableCell {
            metric: metric::named("aged_ratio"),
            label: String::new(),
            spread: over.blocks,
            n: over.ratio.pairs as u64,
            ratio: Some(over.ratio),
            verdict: over.verdict,
        });
        self.cells.extend(over);
    }
}

/// All tables of a run, with their rows in plan order.
pub fn tables(run: &RunFile, records: &[Record]) -> Vec<Table> {
    let counting = super::counting(records);
    let of_part = |run: &RunFile| match run.plan.mode {
        Mode::Time => {
            // Ratios and verdicts are those of the analysis.
            let mut tables = of_samples(run, Purpose::Sample, &counting);
            let rows = tables.iter_mut().flat_map(|table| &mut table.rows);
            let judged = super::analyse(run, records).cases;
            for (row, known) in rows.zip(judged.iter().flat_map(|case| &case.rows)) {
                row.take(known);
            }
            tables
        }
        Mode::Latency { every } => of_calls(run, every, &counting),
        Mode::Count(_) => of_samples(run, Purpose::Count, &counting),
        Mode::Memory => of_memory(run, &counting),
        Mode::Limit(_) => limit::tables(run, &counting),
    };
    run.parts().iter().flat_map(of_part).collect()
}

/// Of processes: judged by ranges, for the metrics that are.
pub(super) fn of_samples(run: &RunFile, purpose: Purpose, records: &RecordsByRow) -> Vec<Table> {
    let of_case = |case: &Case| {
        let rows: Vec<MeasuredRow> = run
            .rows_of(case)
            .map(|allocator| MeasuredRow::new(run, case, allocator, purpose, records))
            .collect();
        let base = rows.iter().find(|own| own.row.role == Role::Baseline);
        let compared = rows.iter().map(|own| own.beside(base, is_exact(run)));
        Table::new(run, case, compared.collect())
    };
    run.plan.cases.iter().map(of_case).collect()
}

/// Of timed calls: percentiles over all processes of a row.
pub(super) fn of_calls(run: &RunFile, every: u32, records: &RecordsByRow) -> Vec<Table> {
    let of_case = |case: &Case| {
        let mut all = Vec::new();
        let mut rows = Vec::new();
        for allocator in run.rows_of(case) {
            let own = records.of_row(case, allocator, Purpose::Latency);
            let (told, unusable) = latency::timed(&own);
            for (_, latency) in &told {
                all.push(*latency);
            }
            let mut row = TableRow::new(run, case, allocator, Failed::among(&own));
            let mut longest = Vec::new();
            if row.failed.is_none() {
                for (percentiles, call) in latency::functions(&told) {
                    let values = percentiles.into_iter().chain([Some(call.call.ns)]);
                    for (metric, ns) in metric::of_mode(run.plan.mode).into_iter().zip(values) {
                        let cell = ns.and_then(|ns| TableCell::new(metric, &[ns as f64]));
                        row.cells.extend(cell.map(|cell| TableCell {
                            label: call.function.clone(),
                            n: call.timed_calls,
                            ..cell
                        }));
                    }
                    longest.push(call);
                }
            }
            row.calls = Some(TimedCalls {
                processes: told.len(),
                unusable,
                longest,
            });
            rows.push(row);
        }
        let base = rows.iter().find(|row| row.role == Role::Baseline).cloned();
        for row in rows.iter_mut().filter(|row| row.role != Role::Floor) {
            for cell in &mut row.cells {
                let other = base
                    .as_ref()
                    .and_then(|base| base.of_function(&cell.label, cell.metric.key))
                    .filter(|other| other.spread.median > 0.0);
                cell.ratio = other.map(|other| Ratio {
                    ratio: cell.spread.median / other.spread.median,
                    ..Ratio::baseline(1)
                });
            }
        }
        let timer = latency::timer(&all);
        Table {
            timing: Some(Timing { every, timer }),
            ..Table::new(run, case, rows)
        }
    };
    run.plan.cases.iter().map(of_case).collect()
}

/// Of processes whose memory was sampled: with how much more of it several threads need than one
/// that makes all calls.
pub(super) fn of_memory(run: &RunFile, records: &RecordsByRow) -> Vec<Table> {
    let metric = metric::named("blow_up");
    let mut tables = of_samples(run, Purpose::Memory, records);
    for (case, table) in run.plan.cases.iter().zip(&mut tables) {
        let alone = footprint::played_by_one(run, case);
        for (allocator, row) in run.rows_of(case).zip(&mut table.rows) {
            let several = records.of_row(case, allocator, Purpose::Memory);
            row.sampling = Some(Sampling::of(&several));
            let Some(alone) = alone.filter(|_| row.failed.is_none()) else {
                continue;
            };
            let one = records.of_row(alone, allocator, Purpose::Memory);
            let blow_ups = footprint::blow_up(&several, &one);
            row.cells.extend(TableCell::new(metric, &blow_ups));
        }
    }
    tables
}

/// The values of processes, by their places in the run.
type BySlot = BTreeMap<PairKey, f64>;

/// A row that is not yet compared, with the values behind each of its cells.
struct MeasuredRow {
    row: TableRow,
    values: Vec<BySlot>,
}

impl MeasuredRow {
    fn new(
        run: &RunFile,
        case: &Case,
        allocator: &AllocatorInfo,
        purpose: Purpose,
        records: &RecordsByRow,
    ) -> MeasuredRow {
        let own = records.of_row(case, allocator, purpose);
        let failed = Failed::among(&own);
        let samples: Vec<(PairKey, Sample)> = own
            .iter()
            .filter(|record| record.purpose == purpose && failed.is_none())
            .filter_map(|record| Some(((record.block, record.part), sample(record)?)))
            .collect();
        let mut checks = own.iter().filter(|record| record.purpose == Purpose::Check);
        let check = checks.find_map(|record| record.measurement.as_ref());
        let (mut cells, mut values) = (Vec::new(), Vec::new());
        let (mut why_not, mut details) = (BTreeMap::new(), BTreeMap::new());
        for metric in metric::of_case(run.plan.mode, case) {
            let of_sample =
                |(slot, sample): &(PairKey, Sample)| Some((*slot, metric.value(sample)?));
            let by_slot: BySlot = match metric.of {
                Value::Check(of) => check
                    .and_then(|check| Some((PairKey::default(), of(&check.figures)?)))
                    .into_iter()
                    .collect(),
                _ => samples.iter().filter_map(of_sample).collect(),
            };
            let all: Vec<f64> = by_slot.values().copied().collect();
            let mut notes = samples.iter().map(|(_, sample)| &sample.measurement.notes);
            let note = notes.find_map(|notes| notes.get(metric.key));
            let note = note.map(|note| (metric.key.to_owned(), note.clone()));
            if let Some(cell) = TableCell::new(metric, &all) {
                cells.push(cell);
                values.push(by_slot);
                details.extend(note);
            } else {
                why_not.extend(note);
            }
        }
        let row = TableRow {
            cells,
            why_not,
            details,
            ..TableRow::new(run, case, allocator, failed)
        };
        MeasuredRow { row, values }
    }

    /// With its ratios to the baseline, and the verdicts on them.
    fn beside(&self, base: Option<&MeasuredRow>, exact: bool) -> TableRow {
        let mut row = self.row.clone();
        let base = base.filter(|_| row.role != Role::Floor);
        for (cell, ours) in row.cells.iter_mut().zip(&self.values) {
            let key = cell.metric.key;
            let known = base.and_then(|base| {
                let mut cells = base.row.cells.iter().zip(&base.values);
                cells.find(|(other, _)| other.metric.key == key)
            });
            let Some((other, theirs)) = known else {
                continue;
            };
            if row.role == Role::Baseline {
                cell.ratio = Some(Ratio::baseline(ours.len()));
                continue;
            }
            cell.ratio = Ratio::from_logs(&log_ratios(ours, theirs));
            let judged = cell.metric.judged == Judged::ByRange;
            cell.verdict = judged.then(|| by_range(cell, other, THRESHOLD, exact));
        }
        row
    }
}

/// ln of one row's value over the other's, for each place that both have.
fn log_ratios(ours: &BySlot, theirs: &BySlot) -> Vec<f64> {
    let log = |(slot, ours): (&PairKey, &f64)| Some((ours / theirs.get(slot)?).ln());
    let logs = ours.iter().filter_map(log);
    logs.filter(|log| log.is_finite()).collect()
}

/// Fewer processes than these show no range, unless the value is exact.
const LEAST: u64 = 3;

/// The verdict on values that hardly vary: their ranges are compared, without a test. They are
/// different only if they lie further apart than either is wide. Simulated with normal, uniform and
/// heavy-tailed scatter, that calls up to 1.4 % of equals different with 3 processes on each side,
/// and 0.02 % with 5 (3.2 % and 0.3 % if values fall into two modes at random); with 2 it would be
/// 13 %.
pub(super) fn by_range(
    ours: &TableCell,
    theirs: &TableCell,
    threshold: f64,
    exact: bool,
) -> Verdict {
    let unclear = Verdict::Unclear { blocks_more: None };
    if !exact && ours.n.min(theirs.n) < LEAST {
        return unclear;
    }
    let logs = |spread: &Spread| {
        (
            spread.min.max(f64::MIN_POSITIVE).ln(),
            spread.max.max(f64::MIN_POSITIVE).ln(),
        )
    };
    let (least, most) = logs(&ours.spread);
    let (other_least, other_most) = logs(&theirs.spread);
    let width = (most - least).max(other_most - other_least);
    let gap = (least - other_most).max(other_least - most);
    let small = threshold.max(limit::resolution(ours.metric)).ln_1p();
    if most.max(other_most) - least.min(other_least) <= small {
        return Verdict::Same;
    }
    if gap <= 0.0 || gap < width {
        return unclear;
    }
    match (gap > small, least > other_most) {
        (false, _) => Verdict::Small,
        (true, true) => Verdict::Slower,
        (true, false) => Verdict::Faster,
    }
}

/// Whether the values of a run are exact: a simulated processor counts the same each time.
pub(super) fn is_exact(run: &RunFile) -> bool {
    run.plan.mode == Mode::Count(Counter::Callgrind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(min: f64, max: f64, n: u64) -> TableCell {
        let metric = metric::named("instructions");
        let spread = Spread {
            median: (min + max) / 2.0,
            min,
            max,
        };
        TableCell {
            metric,
            label: String::new(),
            spread,
            n,
            ratio: None,
            verdict: None,
        }
    }

    #[test]
    fn ranges_that_lie_further_apart_than_they_are_wide_are_different() {
        let word =
            |min, max| by_range(&cell(min, max, 5), &cell(100.0, 101.0, 5), 0.01, false).word();
        assert_eq!(word(103.0, 104.0), "slower");
        assert_eq!(word(90.0, 91.0), "faster");
        assert_eq!(word(100.5, 100.9), "same");
        assert_eq!(word(99.0, 110.0), "unclear");
        assert_eq!(
            word(103.0, 110.0),
            "unclear",
            "as wide as that they may lie anywhere"
        );
        let close = by_range(&cell(100.6, 100.7, 5), &cell(100.0, 100.1, 5), 0.005, false);
        assert_eq!(close.word(), "small");
    }

    #[test]
    fn too_few_processes_show_no_range_unless_the_value_is_exact() {
        let word =
            |n, exact| by_range(&cell(120.0, 120.0, n), &cell(100.0, 100.0, n), 0.01, exact).word();
        assert_eq!((word(2, false), word(3, false)), ("unclear", "slower"));
        assert_eq!(word(1, true), "slower");
    }
}
