//! The legend of a page: every allocator and program of its runs, each with one entry, so that it
//! has one colour and one marker in all charts; and the names of the runs.

use super::page_run::PageRun;
use super::section::{Entry, Trace};
use super::views::Placed;
use crate::analyse::{Analysis, Role, Table};
use crate::report::document::Sheet;
use crate::report::text::plain;
use serde_json::Value;

/// A run and its analysis.
pub struct LegendRun<'a> {
    pub run: &'a PageRun<'a>,
    pub analysis: Analysis,
}

/// All runs of a page, and their allocators and programs.
pub struct SeriesLegend<'a> {
    pub runs: Vec<LegendRun<'a>>,
    pub entries: Vec<LegendEntry>,
}

/// An allocator or a program.
pub struct LegendEntry {
    pub name: String,
    /// The null allocator or the A/A copy of the baseline: grey, as they never rank.
    pub companion: bool,
}

impl<'a> SeriesLegend<'a> {
    pub fn new(runs: Vec<LegendRun<'a>>) -> SeriesLegend<'a> {
        let mut entries: Vec<LegendEntry> = Vec::new();
        for (name, role) in runs.iter().flat_map(|run| subjects(&run.analysis)) {
            if !entries.iter().any(|entry| entry.name == name) {
                entries.push(LegendEntry {
                    name: name.to_owned(),
                    companion: role.is_companion(),
                });
            }
        }
        SeriesLegend { runs, entries }
    }

    /// The place of an allocator or a program.
    pub fn entry(&self, name: &str) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name == name)
    }

    /// The trace of an entry in a chart.
    pub fn trace(&self, Entry { run, name }: Entry, drawn: Value) -> Trace {
        Trace::new(self.entry(name), run, drawn)
    }

    /// The series's name in a chart: `jemalloc`, with several runs `jemalloc · 2`.
    pub fn label(&self, Entry { run, name }: Entry) -> String {
        in_chart(&format!("{name}{}", self.suffix(run)))
    }

    /// The suffix of names: ` · 2` with several runs, otherwise empty.
    pub fn suffix(&self, run: usize) -> String {
        if self.runs.len() > 1 {
            format!(" · {}", run + 1)
        } else {
            String::new()
        }
    }

    /// The title of a run: `2: heapmark-results/2026-01-01-2`, or only the name if there is a single run.
    pub fn title(&self, run: usize) -> String {
        let name = self.runs[run].run.name.clone();
        if self.runs.len() > 1 {
            format!("{}: {name}", run + 1)
        } else {
            name
        }
    }

    /// The title of a run, if there are several.
    pub fn caption(&self, run: usize) -> Option<String> {
        (self.runs.len() > 1).then(|| self.title(run))
    }

    /// All values of one kind with the indices of their runs.
    pub fn all<'s, T: 's>(
        &'s self,
        of: impl Fn(&'s LegendRun<'a>) -> &'s [T],
    ) -> Vec<(usize, &'s T)> {
        self.runs
            .iter()
            .enumerate()
            .flat_map(|(run, legend_run)| of(legend_run).iter().map(move |one| (run, one)))
            .collect()
    }

    /// Returns the tables of all runs; with several runs, each heading names its run.
    pub fn sheets<I: IntoIterator<Item = Sheet>>(&self, of: impl Fn(&Analysis) -> I) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        for (run, legend_run) in self.runs.iter().enumerate() {
            for mut sheet in of(&legend_run.analysis) {
                sheet.heading += &self.suffix(run);
                sheets.push(sheet);
            }
        }
        sheets
    }

    /// Returns the cases of timed processes that a chart is about.
    pub fn cases(&self, shown: impl Fn(&Table) -> bool) -> Vec<Placed<'_>> {
        let mut cases: Vec<Placed> = self.all(|run| &run.analysis.cases);
        cases.retain(|(_, case)| shown(case));
        cases
    }
}

/// The allocators with a row, in the order of the tables.
fn subjects(analysis: &Analysis) -> Vec<(&str, Role)> {
    analysis
        .cases
        .iter()
        .chain(analysis.tables())
        .flat_map(|table| &table.rows)
        .map(|row| (row.allocator.as_str(), row.role))
        .collect()
}

/// Text for the inside of a chart, where tags and entities are interpreted: any in the text are
/// escaped.
pub fn in_chart(text: &str) -> String {
    plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
