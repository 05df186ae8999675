//! Builds the tables of a run from its records. Ratios pair the processes of a block; verdicts come
//! from tests in timed runs, and elsewhere from ranges.

use super::failure::Failed;
use super::footprint::{self, Sampling};
use super::group::{PairKey, RecordsByRow};
use super::latency::{self, TimedCalls, Timing};
use super::limit;
use super::measured_cell::MeasuredCell;
use super::ratio::Ratio;
use super::role::Role;
use super::sample::sample;
use super::table::{Table, TableRow};
use super::table_cell::TableCell;
use super::timed_tables;
use crate::metric::{self, Sample};
use crate::plan::{Case, Mode};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};

/// All tables of a run, with their rows in plan order.
pub fn tables(run: &RunFile, records: &[Record]) -> Vec<Table> {
    let counting = super::counting(records);
    run.parts()
        .iter()
        .flat_map(|run| match run.plan.mode {
            Mode::Time => of_times(run, &counting),
            Mode::Latency { every } => of_calls(run, every, &counting),
            Mode::Count(_) => of_samples(run, Purpose::Count, &counting),
            Mode::Memory => of_memory(run, &counting),
            Mode::Limit(_) => limit::tables(run, &counting),
        })
        .collect()
}

/// Tables of timed processes, judged by tests.
fn of_times(run: &RunFile, records: &RecordsByRow) -> Vec<Table> {
    let mut tables = timed_tables::judged_cases(run, &super::grid(run, records), true);
    for table in &mut tables {
        let Some(factor) = table.factor else {
            continue;
        };
        for row in &mut table.rows {
            row.cells.extend(row.factor.map(|over| TableCell {
                metric: metric::named(factor.metric()),
                label: String::new(),
                spread: over.blocks,
                n: over.ratio.pairs as u64,
                values: Vec::new(),
                ratio: Some(over.ratio),
                verdict: over.verdict,
            }));
        }
    }
    tables
}

/// Builds tables of processes in which events are counted or whose memory is sampled; their judged metrics
/// are judged by ranges.
pub fn of_samples(run: &RunFile, purpose: Purpose, records: &RecordsByRow) -> Vec<Table> {
    // A simulated processor counts the same each time.
    let is_exact = run.plan.mode.spec().simulated;
    run.plan
        .cases
        .iter()
        .map(|case| {
            let rows: Vec<MeasuredRow> = run
                .rows_of(case)
                .map(|allocator| MeasuredRow::new(run, case, allocator, purpose, records))
                .collect();
            let base = rows
                .iter()
                .find(|measured| measured.row.role == Role::Baseline);
            let base = base.map_or(&[][..], |base| &base.cells);
            let compared = rows.iter().map(|measured| TableRow {
                cells: (measured.cells.iter())
                    .map(|cell| cell.beside(measured.row.role, base, is_exact))
                    .collect(),
                ..measured.row.clone()
            });
            Table::new(run, case, compared.collect())
        })
        .collect()
}

/// Tables of timed calls: percentiles over all processes of a row.
pub fn of_calls(run: &RunFile, every: u32, records: &RecordsByRow) -> Vec<Table> {
    let of_case = |case: &Case| {
        let mut all = Vec::new();
        let mut rows = Vec::new();
        for allocator in run.rows_of(case) {
            let of_row = records.of_row(case, allocator, Purpose::Latency);
            let (reported, unusable) = latency::timed(&of_row);
            for (_, latency) in &reported {
                all.push(*latency);
            }
            let mut row = TableRow::new(run, case, allocator, Failed::among(&of_row));
            let mut longest = Vec::new();
            if row.failed.is_none() {
                for (percentiles, call) in latency::functions(&reported) {
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
                processes: reported.len(),
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

/// Tables of processes whose memory was sampled, with how much more memory several threads need
/// than one thread that makes all calls.
pub fn of_memory(run: &RunFile, records: &RecordsByRow) -> Vec<Table> {
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

/// A row that is not yet compared, with the values behind each of its cells.
struct MeasuredRow {
    row: TableRow,
    cells: Vec<MeasuredCell>,
}

impl MeasuredRow {
    fn new(
        run: &RunFile,
        case: &Case,
        allocator: &AllocatorInfo,
        purpose: Purpose,
        records: &RecordsByRow,
    ) -> MeasuredRow {
        let of_row = records.of_row(case, allocator, purpose);
        let mut row = TableRow::new(run, case, allocator, Failed::among(&of_row));
        let mut samples: Vec<(PairKey, Sample)> = of_row
            .iter()
            .filter(|record| record.purpose == purpose && row.failed.is_none())
            .filter_map(|record| Some(((record.block, record.part), sample(record)?)))
            .collect();
        samples.sort_by_key(|(slot, _)| *slot);
        let mut cells = Vec::new();
        for metric in metric::of_mode(run.plan.mode) {
            let mut notes = samples.iter().map(|(_, sample)| &sample.measurement.notes);
            let note = notes.find_map(|notes| notes.get(metric.key));
            let note = note.map(|note| (metric.key.to_owned(), note.clone()));
            if let Some(cell) = MeasuredCell::new(metric, &samples, None) {
                cells.push(cell);
                row.details.extend(note);
            } else {
                row.why_not.extend(note);
            }
        }
        MeasuredRow { row, cells }
    }
}
