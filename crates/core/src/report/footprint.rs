//! The tables of a run that sampled memory.

use super::document::{Note, Sheet};
use super::heading::heading_of;
use super::sheet::{self, SheetOf, fewer, missing, named};
use super::{text, units};
use crate::analyse::{Analysis, Role, Table, TableCell, TableRow};
use crate::metric::{FigureMode, FigureRole, Unit, figures_of, key_in};

/// The metric of every process whose memory was sampled.
const PEAK_DEMAND: &str = "peak_demand_bytes";
/// A metric that only processes whose calls were watched have.
const WATCHED: &str = "page_occupancy";
/// A metric that only replays that sampled themselves have.
const AT_PEAK: &str = "tenth_page";

/// A metric that is 0 on most machines; it has a column only if it is above 0.
const HUGE: &str = "huge_share";

/// The title and the metric of a column.
type MetricColumn = (&'static str, &'static str);

/// The columns for what is measured in every process.
const COLUMNS: [MetricColumn; 17] = [
    ("peak demand", PEAK_DEMAND),
    ("peak heap", "peak_heap_bytes"),
    ("at peak demand", "overhead_at_peak_demand"),
    ("at peak RSS", "overhead_at_peak_footprint"),
    ("peak/peak", "peak_over_peak"),
    ("mean", "mean_overhead"),
    ("page occupancy", WATCHED),
    ("huge pages", HUGE),
    ("blow-up", "blow_up"),
    ("internal", "internal_fragmentation"),
    ("external", "external_fragmentation"),
    ("tenth page", AT_PEAK),
    ("sparse pages", "sparse_pages"),
    ("idle 0 s", "retained_bytes_0_ms"),
    ("idle 0.1 s", "retained_bytes_100_ms"),
    ("idle 1 s", "retained_bytes_1000_ms"),
    ("idle 5 s", "retained_bytes_5000_ms"),
];

/// All columns, in their order.
fn metric_columns() -> impl Iterator<Item = MetricColumn> {
    let of_figures =
        figures_of(FigureMode::Memory).filter_map(|metric| Some((metric.column()?, metric.key)));
    COLUMNS.into_iter().chain(of_figures)
}

/// The metric that some row must have if the column of the metric `key` is to be shown.
fn shown_with(key: &str) -> &str {
    match key {
        "overhead_at_peak_demand" | "overhead_at_peak_footprint" | "mean_overhead" => WATCHED,
        "internal_fragmentation" | "external_fragmentation" | "sparse_pages" => AT_PEAK,
        other => other,
    }
}

/// The tables of memory.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    // In a run that measures time, memory is measured in one process of each allocator.
    let planned = match analysis.cases.is_empty() {
        true => analysis.planned_blocks,
        false => 1,
    };
    let mut sheets: Vec<Sheet> = analysis
        .footprints
        .iter()
        .map(|case| of_case(case, planned))
        .collect();
    // Only the first table with such calls lists them: the calls at the other starts are nearly the same, and are in the exports.
    let lines = analysis.footprints.iter().map(other_calls);
    let first = sheets
        .iter_mut()
        .zip(lines)
        .find(|(_, lines)| !lines.is_empty());
    if let Some((sheet, lines)) = first {
        sheet.remark(lines);
    }
    sheets
}

/// The meaning of the columns, in their order.
pub fn legend(analysis: &Analysis) -> Vec<String> {
    let rows: Vec<&TableRow> = (analysis.footprints.iter())
        .flat_map(|case| &case.rows)
        .collect();
    let before = [
        (
            WATCHED,
            "Memory of processes in which every call is watched: each takes longer, so an allocator that gives memory back by the clock \
             has had more time to.",
        ),
        (
            WATCHED,
            "at peak demand, at peak RSS, mean: overhead there: what the allocator has in memory over requested bytes.",
        ),
        (
            HUGE,
            "huge pages: most memory in transparent huge pages / highest resident heap.",
        ),
        (
            "blow_up",
            "blow-up: highest memory over that of one thread that makes all calls.",
        ),
        (
            "internal_fragmentation",
            "internal, external: at peak demand, over requested bytes; rounding of block sizes, and free blocks, caches and metadata.",
        ),
    ];
    let last = (
        WATCHED,
        "idle: resident this long after everything was freed, without a single call.",
    );
    let of_figures =
        figures_of(FigureMode::Memory).filter_map(|metric| Some((metric.key, metric.legend()?)));
    before
        .into_iter()
        .chain(of_figures)
        .chain([last])
        .filter(|(key, _)| has(&rows, key))
        .map(|(_, line)| line.to_owned())
        .collect()
}

/// Returns whether some row has the metric; of huge pages, a share above 0.
fn has(rows: &[&TableRow], key: &str) -> bool {
    let says = |cell: &TableCell| key != HUGE || cell.spread.max > 0.0;
    rows.iter().any(|row| row.cell(key).is_some_and(says))
}

fn of_case(case: &Table, planned: u32) -> Sheet {
    // A kernel that starts processes has no heap of its own, only figures.
    let is_shown =
        |cell: &TableCell| cell.metric.key == PEAK_DEMAND || cell.metric.column().is_some();
    let (rows, others): (Vec<&TableRow>, Vec<&TableRow>) =
        (case.rows.iter()).partition(|row| row.cells.iter().any(is_shown));
    let sampled = case
        .rows
        .iter()
        .filter_map(|row| row.sampling.as_ref()?.share)
        .max_by(f64::total_cmp)
        .filter(|share| *share > 0.0)
        .map(|share| format!("sampling took at most {} of a core", units::percent(share)));
    let mut table = SheetOf::new(
        format!("{}: memory", heading_of(case)),
        rows.iter().copied(),
    );
    table.add("allocator", |row| &row.allocator);
    for (title, key) in metric_columns() {
        if has(&rows, shown_with(key)) {
            table.metric(title, key);
        }
    }
    let mut sheet = table.sheet;
    let remarks = [
        sampled,
        missed(&rows),
        growing(&rows),
        varying(&rows),
        fewer(&rows, planned),
        case.caution.clone(),
    ];
    sheet.remark(remarks.into_iter().flatten());
    let others = others.into_iter();
    sheet
        .notes
        .extend(others.map(|row| numberless(row, planned)));
    sheet
}

/// Samples that cover less than this share of the possible live bytes may have missed the peak. For some workloads, the possible live bytes
/// are an upper bound: the sum over threads.
const SEEN: f64 = 0.75;

/// `samples may have missed the peak: hoard (saw 54 %)`: the rows whose figures may describe another moment than the peak.
fn missed(rows: &[&TableRow]) -> Option<String> {
    let seen = |row: &&TableRow| {
        let cell = row.cell("seen_peak_share")?;
        let least = cell.spread.min;
        (least < SEEN).then(|| {
            format!(
                "{} (saw {})",
                row.allocator,
                units::value(cell.metric.unit, least)
            )
        })
    };
    let all: Vec<String> = rows.iter().filter_map(seen).collect();
    named("samples may have missed the peak of what can be live", &all)
}

/// `still growing: hoard (+12.0 %)`: rows whose heap grows although no more is live.
fn growing(rows: &[&TableRow]) -> Option<String> {
    let all: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let cell = row.cells.iter().find(|cell| grows(cell))?;
            Some(format!("{} (+{})", row.allocator, median(Some(cell))))
        })
        .collect();
    (!all.is_empty()).then(|| format!("still growing: {}", text::list(all)))
}

/// Whether the heap of a row grows although no more is live.
pub fn is_growing(row: &TableRow) -> bool {
    row.cells.iter().any(grows)
}

fn grows(cell: &TableCell) -> bool {
    match cell.metric.role() {
        Some(FigureRole::GrowingAbove(least)) => cell.spread.median > least,
        _ => false,
    }
}

/// The share by which processes of a row may differ before a table reports it.
const ALIKE: f64 = 0.02;
/// A difference in memory of one page or less means nothing.
const PAGE_BYTES: f64 = 4096.0;

/// `from process to process: jemalloc (worst 5.53x to 5.97x)`: what differs between the processes of a row, by the column that differs
/// most.
fn varying(rows: &[&TableRow]) -> Option<String> {
    let of_row = |row: &&TableRow| {
        let wide = metric_columns().filter_map(|(title, key)| {
            let cell = row.cell(key)?;
            Some((title, cell, difference(cell)?))
        });
        let (title, cell, _) = wide.max_by(|one, other| one.2.total_cmp(&other.2))?;
        let [least, most] =
            [cell.spread.min, cell.spread.max].map(|end| units::value(cell.metric.unit, end));
        Some(format!("{} ({title} {least} to {most})", row.allocator))
    };
    let all: Vec<String> = rows.iter().filter_map(of_row).collect();
    named("from process to process", &all)
}

/// By how much the processes of a row differ, as a share; `None` if that is little, or if the metric is not one of memory.
fn difference(cell: &TableCell) -> Option<f64> {
    let TableCell { metric, spread, .. } = cell;
    if metric.role() == Some(FigureRole::RatioOfTimes) {
        return None;
    }
    let apart = spread.max - spread.min;
    let share = apart / spread.min.abs().max(f64::MIN_POSITIVE);
    let is_wide = match metric.unit {
        Unit::Bytes => apart > PAGE_BYTES && share > ALIKE,
        Unit::Times | Unit::GibSeconds => share > ALIKE,
        // A share of the whole is relative already.
        Unit::Share => return (apart > ALIKE).then_some(apart),
        _ => false,
    };
    is_wide.then_some(share)
}

/// `jemalloc: also calls sched_getaffinity; opens /proc/cpuinfo`: what allocators request from the kernel at their start although the
/// baseline does not. Rows with the same requests share a line.
fn other_calls(case: &Table) -> Vec<String> {
    let names = |row: &TableRow, role: FigureRole| -> Vec<String> {
        row.details
            .get(key_in(role))
            .map_or("", String::as_str)
            .split(", ")
            .filter_map(|one| one.split(' ').next())
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let Some(base) = case.rows.iter().find(|row| row.role == Role::Baseline) else {
        return Vec::new();
    };
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for row in &case.rows {
        let says: Vec<String> = [
            ("also calls", FigureRole::SystemCalls),
            ("opens", FigureRole::KernelFiles),
        ]
        .map(|(verb, role)| {
            let usual = names(base, role);
            let unusual: Vec<String> = names(row, role)
                .into_iter()
                .filter(|name| !usual.contains(name))
                .collect();
            (!unusual.is_empty()).then(|| format!("{verb} {}", unusual.join(", ")))
        })
        .into_iter()
        .flatten()
        .collect();
        if says.is_empty() {
            continue;
        }
        let says = says.join("; ");
        match lines.iter_mut().find(|(known, _)| *known == says) {
            Some((_, rows)) => rows.push(row.allocator.clone()),
            None => lines.push((says, vec![row.allocator.clone()])),
        }
    }
    lines
        .into_iter()
        .map(|(says, rows)| format!("{}: {says}", rows.join(", ")))
        .collect()
}

fn median(cell: Option<&TableCell>) -> String {
    cell.map_or("-".into(), |cell| {
        units::value(cell.metric.unit, cell.spread.median)
    })
}

fn numberless(row: &TableRow, planned_blocks: u32) -> Note {
    let unseen = row.sampling.as_ref().map_or(0, |sampling| sampling.unseen);
    sheet::numberless(&row.allocator, row.failed.as_ref(), || match unseen {
        0 => missing(planned_blocks),
        unseen => format!(
            "{} ended before a sample saw live memory: use more work (--set)",
            text::count(unseen, "process")
        ),
    })
}

#[cfg(test)]
mod tests {
    use crate::analyse::fake_run::FakeRun;
    use crate::report::Format;
    use crate::report::tests::exported;

    #[test]
    fn a_row_that_was_over_too_soon_says_so() {
        let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
        let lab = lab.following_memory(|name| (name == "glibc").then_some((8, 16)));
        let page = exported(Format::Markdown, &lab);
        assert!(!page.contains("blow-up"), "{page}");
        assert!(
            page.contains("3 processes ended before a sample saw live memory"),
            "{page}"
        );
    }

    #[test]
    fn what_differs_from_process_to_process_is_said_and_what_hardly_does_is_not() {
        let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
        let mut lab = lab.following_memory(|_| Some((8, 16)));
        let line = "from process to process: hoard (peak/peak 4.00x to 4.12x)";
        for (more, says_so) in [(1.01, false), (1.03, true)] {
            let of_hoard = lab
                .records
                .iter_mut()
                .filter(|record| record.allocator == "hoard");
            let memory = of_hoard
                .filter_map(|record| record.memory.as_mut())
                .next()
                .unwrap();
            memory.peak_footprint.heap_bytes = (32.0 * more * f64::from(1 << 20)) as u64;
            let page = exported(Format::Markdown, &lab);
            assert_eq!(
                page.contains("from process to process: "),
                says_so,
                "{page}"
            );
            assert!(!says_so || page.contains(line), "{page}");
        }
    }

    #[test]
    fn samples_that_missed_the_peak_are_said() {
        let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
        let mut lab = lab.following_memory(|_| Some((8, 16)));
        let line = "samples may have missed the peak of what can be live: hoard (saw 40 %)";
        let page = exported(Format::Markdown, &lab);
        assert!(!page.contains("missed the peak"), "{page}");
        let of_hoard = lab
            .records
            .iter_mut()
            .filter(|record| record.allocator == "hoard");
        let measurement = of_hoard
            .filter_map(|record| record.measurement.as_mut())
            .next();
        measurement.unwrap().requested_peak_bytes *= 2;
        let page = exported(Format::Markdown, &lab);
        assert!(page.contains(line), "{page}");
    }

    #[test]
    fn what_a_case_has_to_say_stands_below_its_table_of_memory() {
        let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3);
        lab.run.plan.cases[0].caution = Some("Calls that failed: 3.".into());
        let lab = lab.fill(|_, _, _| 20.0).following_memory(|_| Some((8, 16)));
        let page = exported(Format::Markdown, &lab);
        assert!(page.contains("Calls that failed: 3."), "{page}");
        assert_eq!(page.matches("every call is watched").count(), 1, "{page}");
    }
}
