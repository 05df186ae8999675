//! All cases and all allocators of a run in one table: of times, and of memory.

use super::section::{InMalloc, Matrix, MatrixCell, MatrixRow, Section};
use super::series_legend::SeriesLegend;
use super::views::heading;
use crate::analyse::{Analysis, CommandFacts, Ratio, Role, Table, TableRow, Verdict};
use crate::metric::WALL;
use crate::report::matrix::names;
use crate::report::real_programs::{bars, in_malloc};
use crate::report::text::plain;
use crate::report::{sheet, units};

/// The ratio, up or down, of the strongest colour.
const STRONGEST: f64 = 8.0;

pub fn of_times(legend: &SeriesLegend) -> Section {
    let text = "Time over the baseline's: blue is faster, orange slower, the strongest colour is eight times. Grey with ~ is no \
         difference that this run can tell, with … too few blocks to tell yet, × a failure or a gap; \u{2264} and \u{2265} are bounds, where the harness takes \
         more than half of the time; hatched: the A/A copy differs, so nothing is claimed.";
    let order = match has_overall(legend) {
        true => " The fastest allocator over all cases stands first.",
        false => "",
    };
    of_runs(
        legend,
        "times",
        "Time in every case",
        &format!("{text}{order}"),
        |analysis, caption| matrix(analysis, WALL.key, caption),
    )
}

pub fn of_memory(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(has_memory);
    let commands = cases.iter().filter(|(_, case)| case.command.is_some());
    let what = match commands.count() {
        0 => "Growth of the resident set over the baseline's",
        all if all == cases.len() => "Peak RSS of whole processes over the baseline's",
        _ => {
            "Growth of the resident set over the baseline's, and of commands the peak RSS of their whole processes"
        }
    };
    let order = match has_overall(legend) {
        true => "; the allocators in the order of time",
        false => "",
    };
    of_runs(
        legend,
        "heaps",
        "Memory in every case",
        &format!("{what}: blue is less, orange more{order}."),
        |analysis, caption| matrix(analysis, "grown_bytes", caption),
    )
}

/// Whether some run orders its allocators by all cases.
fn has_overall(legend: &SeriesLegend) -> bool {
    let mut runs = legend.runs.iter();
    runs.any(|told| !told.analysis.overall.is_empty())
}

fn has_memory(case: &Table) -> bool {
    !case.whole_process || case.command.is_some()
}

/// A matrix for each run that has one.
pub fn of_runs(
    legend: &SeriesLegend,
    id: &'static str,
    heading: &str,
    text: &str,
    matrix: impl Fn(&Analysis, String) -> Option<Matrix>,
) -> Section {
    let matrices = legend.runs.iter().enumerate().filter_map(|(run, told)| {
        let caption = legend.caption(run).unwrap_or_default();
        matrix(&told.analysis, caption)
    });
    Section {
        matrices: matrices.collect(),
        ..Section::of_views(id, heading, text, Vec::new())
    }
}

/// `None` for a single case, which has the ranking, and if there is nothing to compare.
fn matrix(analysis: &Analysis, by: &str, caption: String) -> Option<Matrix> {
    let cases = analysis.cases.iter().filter(|case| match by == WALL.key {
        true => case.times_operations() || case.command.as_ref().is_some_and(|it| it.real),
        false => has_memory(case),
    });
    let cases: Vec<&Table> = cases.collect();
    let names = names(analysis, cases.iter().copied());
    let bars = bars(cases.iter().map(|case| program(case)?.malloc_share));
    let rows: Vec<MatrixRow> = cases
        .iter()
        .zip(bars)
        .map(|(case, length)| MatrixRow {
            heading: match program(case) {
                // Its command line is above its table.
                Some(_) => plain(&case.workload),
                None => heading(case),
            },
            href: None,
            in_malloc: program(case).map(|facts| InMalloc {
                shown: in_malloc(facts).unwrap_or("-".into()),
                width: 100.0 * length.unwrap_or_default(),
            }),
            cells: names.iter().map(|name| cell(case, name, by)).collect(),
        })
        .collect();
    let any = rows
        .iter()
        .flat_map(|row| &row.cells)
        .filter(|cell| cell.compared)
        .count()
        > 0;
    (any && rows.len() > 1).then(|| Matrix {
        caption,
        rows_are: "case",
        columns: names.iter().map(|name| plain(name)).collect(),
        rows,
    })
}

/// What is known of a real program.
fn program(case: &Table) -> Option<&CommandFacts> {
    case.command.as_ref().filter(|command| command.real)
}

fn cell(case: &Table, name: &str, by: &str) -> MatrixCell {
    let gap = |words: String| MatrixCell {
        shown: "×".into(),
        class: "gap",
        words: plain(&words),
        ..MatrixCell::default()
    };
    let Some(row) = case.row(name) else {
        return gap("not measured".into());
    };
    match (&row.failed, row.ratio(by)) {
        (Some(failed), _) => gap(failed.summary()),
        (None, Some(ratio)) => of_ratio(row, ratio, by),
        (None, None) if row.has_run() => gap("nothing to compare".into()),
        (None, None) => gap("missing".into()),
    }
}

fn of_ratio(row: &TableRow, ratio: Ratio, by: &str) -> MatrixCell {
    if row.role == Role::Baseline {
        return MatrixCell {
            shown: "1".into(),
            class: "baseline",
            words: "baseline".into(),
            ..MatrixCell::default()
        };
    }
    let verdict = row.verdict(by);
    let is_bound = by == WALL.key && row.ratio_is_bound;
    let bound = match ratio.ratio {
        _ if !is_bound => "",
        ..1.0 => "\u{2264}",
        _ => "\u{2265}",
    };
    let digits = units::digits(ratio.ratio);
    let differs = ratio
        .interval
        .is_some_and(|(low, high)| low > 1.0 || high < 1.0);
    let (class, mark) = match verdict {
        Some(Verdict::AaCopyDiffers) => ("withheld", ""),
        Some(Verdict::Same) => ("same", ""),
        Some(Verdict::Faster | Verdict::Slower | Verdict::Small) => (way(ratio.ratio), bound),
        // A row that is not judged has its interval.
        None if differs => (way(ratio.ratio), bound),
        Some(Verdict::TooFew { .. }) => ("unclear", "…"),
        Some(Verdict::Unclear { .. }) | None => ("unclear", "~"),
    };
    let is_strong = matches!(class, "faster" | "slower");
    let word = match (verdict, row.cell(by)) {
        (Some(verdict), Some(cell)) => verdict.word_of(cell.metric),
        _ => "",
    };
    let words = format!("{} {word}", sheet::ratio(row, Some(&ratio)));
    MatrixCell {
        shown: format!("{mark}{digits}"),
        class,
        heat: if is_strong { heat(ratio.ratio) } else { 0 },
        words: words.trim_end().to_owned(),
        compared: true,
        ..MatrixCell::default()
    }
}

/// The strength of a ratio's colour.
pub fn heat(ratio: f64) -> u32 {
    let share = (ratio.ln().abs() / STRONGEST.ln()).min(1.0);
    (share * 100.0) as u32
}

pub fn way(ratio: f64) -> &'static str {
    if ratio < 1.0 { "faster" } else { "slower" }
}
