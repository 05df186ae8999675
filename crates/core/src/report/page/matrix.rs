//! All cases and all allocators of a run in one table: a table of times, and one of memory.

use super::section::Section;
use super::series_legend::SeriesLegend;
use crate::analyse::{Analysis, CommandFacts, Table};
use crate::metric::WALL;
use crate::report::document::{Sheet, Value};
use crate::report::heading::heading_of;
use crate::report::matrix::{cell, names};
use crate::report::real_programs::in_malloc;
use crate::report::sheet::SheetOf;

pub fn of_times(legend: &SeriesLegend) -> Section {
    let text = "Time over the baseline's: blue is faster, orange slower, the strongest colour is four times. Grey with ~ is no \
         difference that this run can tell, without it one that chance shows in some of so many cells, with … too few blocks to tell yet, \
         - a gap; <= and >= are bounds, where the harness takes \
         more than half of the time; hatched, with ?: no further apart than the A/A copy is, so nothing is claimed.";
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
    runs.any(|run| !run.analysis.overall.is_empty())
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
    matrix: impl Fn(&Analysis, String) -> Option<Sheet>,
) -> Section {
    let matrices = legend
        .runs
        .iter()
        .enumerate()
        .filter_map(|(run, legend_run)| {
            let caption = legend.caption(run).unwrap_or_default();
            matrix(&legend_run.analysis, caption)
        });
    Section {
        tables: matrices.collect(),
        ..Section::of_views(id, heading, text, Vec::new())
    }
}

/// The matrix of a run; `None` for a single case, which the ranking shows, or if there is nothing to compare.
fn matrix(analysis: &Analysis, by: &str, caption: String) -> Option<Sheet> {
    let cases = analysis.cases.iter().filter(|case| match by == WALL.key {
        true => case.times_operations() || program(case).is_some(),
        false => has_memory(case),
    });
    let cases: Vec<&Table> = cases.collect();
    let names = names(analysis, cases.iter().copied());
    let mut table = SheetOf::new(caption, cases.iter().copied());
    table.add("case", |case| match program(case) {
        // The command line of a program is above the program's own table.
        Some(_) => case.workload.clone(),
        None => heading_of(case),
    });
    if cases.iter().any(|case| program(case).is_some()) {
        let all: Vec<&CommandFacts> = cases.iter().filter_map(|case| program(case)).collect();
        table.add("in malloc", |case| Some(in_malloc(program(case)?, &all)));
    }
    for name in names {
        table.add(name, |case| cell(case, name, by));
    }
    table.sheet.is_matrix = true;
    let mut cells = table.sheet.rows.iter().flatten();
    let any = cells.any(|cell| matches!(cell.value, Value::Short(_)));
    (any && cases.len() > 1).then_some(table.sheet)
}

/// What is known about a case's real program, if it has one.
fn program(case: &Table) -> Option<&CommandFacts> {
    case.command.as_ref().filter(|command| command.real)
}
