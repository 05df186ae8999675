//! One table for every kind of run: rows x metrics, a workload at a thread count. Ratios pair the
//! processes of a block; verdicts come from tests in timed runs, and elsewhere from ranges.

use super::failure::Failed;
use super::group::{PairKey, RecordsByRow};
use super::latency::LatencyCase;
use super::ratio::Ratio;
use super::role::Role;
use super::sample::sample;
use super::spread::Spread;
use super::{Analysis, Row, State, Verdict, footprint};
use crate::metric::{self, Judged, Metric};
use crate::plan::{Case, Counter, Mode};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use serde::{Serialize, Serializer};
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
    /// In plan order.
    pub rows: Vec<TableRow>,
}

/// An allocator in it.
#[derive(Clone, Debug, Serialize)]
pub struct TableRow {
    /// Its name.
    pub allocator: String,
    /// What it is in the comparison.
    pub role: Role,
    /// How it failed, if it did: then it has no cells.
    pub failed: Option<Failed>,
    /// What is known of it, in the order of the metrics.
    pub cells: Vec<TableCell>,
    /// Metrics without a value here, and why.
    pub why_not: BTreeMap<String, String>,
}

/// A metric of a row.
#[derive(Clone, Debug, Serialize)]
pub struct TableCell {
    /// The metric, by its key.
    #[serde(serialize_with = "key")]
    pub metric: &'static Metric,
    /// What it is of, if the row has several: a function.
    pub label: String,
    /// Over the processes of the row.
    pub spread: Spread,
    /// How many values that is over.
    pub n: u64,
    /// Over the baseline's in the same blocks.
    pub ratio: Option<Ratio>,
    /// By that, if rows are judged by the metric.
    pub verdict: Option<Verdict>,
}

fn key<S: Serializer>(metric: &&'static Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.key)
}

/// A difference that matters, as a share.
pub const THRESHOLD: f64 = 0.01;

impl Table {
    /// The name of the case.
    pub fn label(&self) -> String {
        format!("{}@{}", self.workload, self.threads)
    }
}

impl TableRow {
    /// Whether some process of it has ended `ok`.
    pub fn has_run(&self) -> bool {
        !(self.cells.is_empty() && self.why_not.is_empty())
    }

    /// The value of a metric that has no labels.
    pub fn cell(&self, key: &str) -> Option<&TableCell> {
        self.cells.iter().find(|cell| cell.metric.key == key)
    }
}

/// All tables of a run.
pub fn tables(run: &RunFile, records: &[Record]) -> Vec<Table> {
    match run.plan.mode {
        Mode::Time => of_times(run, records, &super::analyse(run, records)),
        Mode::Latency { .. } => {
            let calls = super::analyse(run, records).latency;
            let cases = run.plan.cases.iter().zip(&calls);
            cases.map(|(case, one)| of_calls(run, case, one)).collect()
        }
        Mode::Count(_) => of_samples(run, Purpose::Count, &super::counting(records)),
        Mode::Memory => {
            let counting = super::counting(records);
            let mut tables = of_samples(run, Purpose::Memory, &counting);
            add_blow_up(run, &counting, &mut tables);
            tables
        }
    }
}

/// Of processes in which something else than time was measured: judged by ranges.
pub(super) fn of_samples(run: &RunFile, purpose: Purpose, records: &RecordsByRow) -> Vec<Table> {
    let of_case = |case: &Case| {
        let rows = run
            .rows_of(case)
            .map(|allocator| Values::of(run, case, allocator, purpose, records));
        table(run, case, rows.collect(), |cell, base| {
            let judged = cell.metric.judged == Judged::ByRange;
            judged.then(|| by_range(cell, base, THRESHOLD, is_exact(run)))
        })
    };
    run.plan.cases.iter().map(of_case).collect()
}

/// Of timed processes: ratios and verdicts are those of the analysis.
fn of_times(run: &RunFile, records: &[Record], analysis: &Analysis) -> Vec<Table> {
    let counting = super::counting(records);
    let mut tables = Vec::new();
    for (case, judged) in run.plan.cases.iter().zip(&analysis.cases) {
        let rows = run
            .rows_of(case)
            .map(|allocator| Values::of(run, case, allocator, Purpose::Sample, &counting));
        let mut table = table(run, case, rows.collect(), |_, _| None);
        for (row, known) in table.rows.iter_mut().zip(&judged.rows) {
            row.take(known);
        }
        tables.push(table);
    }
    tables
}

impl TableRow {
    /// The ratios and verdicts of a row of timed processes.
    fn take(&mut self, row: &Row) {
        let State::Measured(numbers) = &row.state else {
            return;
        };
        for cell in &mut self.cells {
            let known = match cell.metric.key {
                "ns_per_op" => (numbers.ratio, numbers.verdict),
                "cpu_ns_per_op" => (numbers.cpu_ratio, numbers.cpu_verdict),
                "grown_bytes" => (numbers.memory_ratio, numbers.memory_verdict),
                _ => continue,
            };
            (cell.ratio, cell.verdict) = known;
        }
    }
}

/// Of timed calls: percentiles over all processes of a row.
fn of_calls(run: &RunFile, case: &Case, calls: &LatencyCase) -> Table {
    let metrics = metric::of_mode(run.plan.mode);
    let baseline = case.baseline(&run.plan.baseline);
    let base = calls.rows.iter().find(|row| row.role == Role::Baseline);
    let base_of = |function: &str| {
        base?
            .functions()
            .iter()
            .find(|called| called.function == function)
    };
    let mut rows = Vec::new();
    for row in &calls.rows {
        let mut cells = Vec::new();
        for called in row.functions() {
            let values = called.values();
            let others = base_of(&called.function).map(|base| base.values());
            for (place, metric) in metrics.iter().enumerate() {
                let Some(value) = values[place] else { continue };
                let value = value as f64;
                let other = others
                    .and_then(|others| others[place])
                    .filter(|_| row.role != Role::Floor);
                let ratio = other.filter(|other| *other > 0).map(|other| Ratio {
                    ratio: value / other as f64,
                    interval: None,
                    pairs: 1,
                });
                cells.push(TableCell {
                    metric,
                    label: called.function.clone(),
                    spread: Spread {
                        median: value,
                        min: value,
                        max: value,
                    },
                    n: called.count,
                    ratio,
                    verdict: None,
                });
            }
        }
        let failed = row.failed().cloned();
        rows.push(TableRow {
            allocator: row.allocator.clone(),
            role: row.role,
            failed,
            cells,
            why_not: BTreeMap::new(),
        });
    }
    Table {
        workload: case.workload.clone(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        baseline: baseline.to_owned(),
        caution: case.caution.clone(),
        rows,
    }
}

/// Adds to each table how much more memory several threads need than one that makes all calls.
fn add_blow_up(run: &RunFile, records: &RecordsByRow, tables: &mut [Table]) {
    let Some(metric) = metric::all().find(|metric| metric.key == "blow_up") else {
        return;
    };
    for (case, table) in run.plan.cases.iter().zip(tables) {
        let Some(alone) = footprint::played_by_one(run, case) else {
            continue;
        };
        for (allocator, row) in run.rows_of(case).zip(&mut table.rows) {
            let several = records.of_row(case, allocator, Purpose::Memory);
            let one = records.of_row(alone, allocator, Purpose::Memory);
            let Some(spread) = footprint::blow_up(&several, &one).filter(|_| row.failed.is_none())
            else {
                continue;
            };
            let n = several
                .iter()
                .filter(|record| record.purpose == Purpose::Memory)
                .count() as u64;
            row.cells.push(TableCell {
                metric,
                label: String::new(),
                spread,
                n,
                ratio: None,
                verdict: None,
            });
        }
    }
}

/// The values of a row's processes, metric by metric.
struct Values {
    allocator: String,
    role: Role,
    failed: Option<Failed>,
    metrics: Vec<(&'static Metric, BySlot)>,
    why_not: BTreeMap<String, String>,
}

impl Values {
    /// The values of a metric.
    fn of_metric(&self, metric: &Metric) -> Option<&BySlot> {
        let mut all = self.metrics.iter();
        all.find(|(own, _)| own.key == metric.key)
            .map(|(_, values)| values)
    }

    fn of(
        run: &RunFile,
        case: &Case,
        allocator: &AllocatorInfo,
        purpose: Purpose,
        records: &RecordsByRow,
    ) -> Values {
        let own = records.of_row(case, allocator, purpose);
        let failed = Failed::among(&own);
        let kept: Vec<&Record> = own
            .into_iter()
            .filter(|record| record.purpose == purpose && failed.is_none())
            .collect();
        let samples: Vec<_> = kept
            .iter()
            .filter_map(|record| Some(((record.block, record.part), sample(record)?)))
            .collect();
        let mut metrics = Vec::new();
        let mut why_not = BTreeMap::new();
        for metric in metric::of_mode(run.plan.mode) {
            let values = samples
                .iter()
                .filter_map(|(slot, sample)| Some((*slot, metric.value(sample)?)));
            let values: BTreeMap<_, _> = values.collect();
            if values.is_empty() {
                let note = samples
                    .iter()
                    .find_map(|(_, sample)| sample.measurement.notes.get(metric.key));
                why_not.extend(note.map(|note| (metric.key.to_owned(), note.clone())));
            } else {
                metrics.push((metric, values));
            }
        }
        let role = Role::of(allocator, case.baseline(&run.plan.baseline));
        Values {
            allocator: allocator.name.clone(),
            role,
            failed,
            metrics,
            why_not,
        }
    }
}

/// The values of processes, by their places in the run.
type BySlot = BTreeMap<PairKey, f64>;

/// What a row's processes come to, not yet compared.
fn cell(metric: &'static Metric, values: &BySlot) -> Option<TableCell> {
    let all: Vec<f64> = values.values().copied().collect();
    Some(TableCell {
        metric,
        label: String::new(),
        spread: Spread::of(&all)?,
        n: all.len() as u64,
        ratio: None,
        verdict: None,
    })
}

/// ln of one row's value over the other's, for each place that both have.
fn log_ratios(ours: &BySlot, theirs: &BySlot) -> Vec<f64> {
    let log = |(slot, ours): (&PairKey, &f64)| Some((ours / theirs.get(slot)?).ln());
    let logs = ours.iter().filter_map(log);
    logs.filter(|log| log.is_finite()).collect()
}

fn table(
    run: &RunFile,
    case: &Case,
    rows: Vec<Values>,
    verdict: impl Fn(&TableCell, &TableCell) -> Option<Verdict>,
) -> Table {
    let base = rows.iter().find(|row| row.role == Role::Baseline);
    let mut done = Vec::new();
    for row in &rows {
        let mut cells = Vec::new();
        for (metric, ours) in &row.metrics {
            let Some(mut own) = cell(metric, ours) else {
                continue;
            };
            let others = base.filter(|_| row.role != Role::Floor);
            if let Some(theirs) = others.and_then(|base| base.of_metric(metric)) {
                if row.role == Role::Baseline {
                    own.ratio = Some(Ratio::baseline(ours.len()));
                } else {
                    own.ratio = Ratio::from_logs(&log_ratios(ours, theirs));
                    own.verdict = cell(metric, theirs).and_then(|other| verdict(&own, &other));
                }
            }
            cells.push(own);
        }
        done.push(TableRow {
            allocator: row.allocator.clone(),
            role: row.role,
            failed: row.failed.clone(),
            cells,
            why_not: row.why_not.clone(),
        });
    }
    Table {
        workload: case.workload.clone(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        baseline: case.baseline(&run.plan.baseline).to_owned(),
        caution: case.caution.clone(),
        rows: done,
    }
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
    let small = threshold.ln_1p();
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
        let metric = metric::all()
            .find(|metric| metric.key == "instructions")
            .unwrap();
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
