//! The legend of a page: every allocator and program of its runs, each with one entry, so that it
//! has one colour and one marker in all charts; and the names of the runs.

use super::page_run::PageRun;
use crate::analyse::{Analysis, Role};
use crate::report::text::plain;

/// A run and its analysis.
pub(super) struct LegendRun<'a> {
    pub run: &'a PageRun<'a>,
    pub analysis: Analysis,
}

/// All runs of a page, and their allocators and programs.
pub(super) struct SeriesLegend<'a> {
    pub runs: Vec<LegendRun<'a>>,
    pub entries: Vec<LegendEntry>,
}

/// An allocator or a program.
#[derive(Debug, PartialEq)]
pub(super) struct LegendEntry {
    pub name: String,
    /// The null allocator or the A/A copy of the baseline: grey, as they never rank.
    pub companion: bool,
}

impl<'a> SeriesLegend<'a> {
    pub fn new(runs: Vec<LegendRun<'a>>) -> SeriesLegend<'a> {
        let mut entries: Vec<LegendEntry> = Vec::new();
        for (name, role) in runs.iter().flat_map(|told| subjects(&told.analysis)) {
            if !entries.iter().any(|entry| entry.name == name) {
                let companion = matches!(role, Role::Floor | Role::AaCopy);
                entries.push(LegendEntry {
                    name: name.to_owned(),
                    companion,
                });
            }
        }
        SeriesLegend { runs, entries }
    }

    /// Its index.
    pub fn entry(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    /// Its name in a chart: `jemalloc`, with several runs `jemalloc · 2`.
    pub fn label(&self, run: usize, name: &str) -> String {
        in_chart(&format!("{name}{}", self.suffix(run)))
    }

    /// Empty, or with several runs ` · 2`.
    pub fn suffix(&self, run: usize) -> String {
        if self.runs.len() > 1 {
            format!(" · {}", run + 1)
        } else {
            String::new()
        }
    }

    /// The title of a run: `2: heapmark-results/2026-01-01-2`, or only its name if it is alone.
    pub fn title(&self, run: usize) -> String {
        let name = plain(&self.runs[run].run.name);
        if self.runs.len() > 1 {
            format!("{}: {name}", run + 1)
        } else {
            name
        }
    }

    /// All values of one kind with the indices of their runs.
    pub fn all<'s, T: 's>(
        &'s self,
        of: impl Fn(&'s LegendRun<'a>) -> &'s [T],
    ) -> Vec<(usize, &'s T)> {
        let in_run = |(run, told)| {
            of(told)
                .iter()
                .map(move |one| (run, one))
                .collect::<Vec<_>>()
        };
        self.runs.iter().enumerate().flat_map(in_run).collect()
    }
}

/// Those with a row, in the order of the plan.
fn subjects(analysis: &Analysis) -> Vec<(&str, Role)> {
    let cases = analysis.cases.iter().flat_map(|case| {
        case.rows
            .iter()
            .map(|row| (row.allocator.as_str(), row.role))
    });
    let latency = analysis.latency.iter().flat_map(|case| {
        case.rows
            .iter()
            .map(|row| (row.allocator.as_str(), row.role))
    });
    let counts = analysis.counts.iter().flat_map(|case| {
        case.rows
            .iter()
            .map(|row| (row.allocator.as_str(), row.role))
    });
    let footprints = analysis.footprints.iter().flat_map(|case| {
        case.rows
            .iter()
            .map(|row| (row.allocator.as_str(), row.role))
    });
    cases
        .chain(latency)
        .chain(counts)
        .chain(footprints)
        .collect()
}

/// Text for the inside of a chart, where tags and entities are interpreted: any in the text are
/// escaped.
pub(super) fn in_chart(text: &str) -> String {
    plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
