//! The text and table sections of one run: its reliability, all its tables, its failures, and how
//! and where it was measured.

use super::section::{Column, PageTable, Section};
use super::series_legend::{LegendRun, SeriesLegend};
use crate::observe::preflight::ItemState;
use crate::report::sheet::{self, Sheet};
use crate::report::sheets;
use crate::report::text::{count, plain};
use crate::report::{conclusion, legend::legend as lines, machine};

/// The evidence for and against the run's reliability.
pub(super) fn trust(legend: &SeriesLegend) -> Section {
    let of_run = |(run, told): (usize, &LegendRun)| {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut line = |what: &str, says: String| rows.push(vec![what.to_owned(), says]);
        machine::machine_line(&told.analysis)
            .into_iter()
            .for_each(|says| line("machine", without("machine: ", says)));
        let interference = conclusion::interference(&told.analysis)
            .unwrap_or_else(|| conclusion::undisturbed(&told.analysis));
        line("interference", without("Interference: ", interference));
        line("not ok", failures(told));
        if told.analysis.unplanned > 0 {
            line(
                "ignored",
                format!(
                    "{} of no planned row",
                    count(told.analysis.unplanned, "record")
                ),
            );
        }
        for sheet in sheets::all(&told.analysis) {
            let lines: Vec<String> = sheet
                .trust
                .into_iter()
                .chain(sheet.floors)
                .chain(sheet.caution)
                .collect();
            if !lines.is_empty() {
                line(&sheet.heading, lines.join("; "));
            }
        }
        PageTable::of_words(
            &caption(legend, run),
            &["of", "what the run says of itself"],
            rows,
        )
    };
    Section {
        id: "trust",
        heading: "How far to trust it".into(),
        tables: legend.runs.iter().enumerate().map(of_run).collect(),
        ..Section::default()
    }
}

/// Removes the leading word from a line that is shown after it.
fn without(word: &str, line: String) -> String {
    line.strip_prefix(word).map(String::from).unwrap_or(line)
}

fn failures(told: &LegendRun) -> String {
    match told
        .analysis
        .failures
        .iter()
        .map(|failure| failure.cells.len())
        .sum()
    {
        0 => "every process ended ok".into(),
        processes => format!("{} did not end ok", count(processes, "process")),
    }
}

/// All tables, as on the terminal.
pub(super) fn results(legend: &SeriesLegend) -> Section {
    let mut tables = Vec::new();
    for (run, told) in legend.runs.iter().enumerate() {
        tables.extend(
            sheets::all(&told.analysis)
                .into_iter()
                .map(|sheet| table(sheet, &legend.suffix(run))),
        );
        let overall = sheet::overall(&told.analysis);
        if !overall.is_empty() {
            let caption = format!(
                "{}{}",
                sheet::overall_heading(&told.analysis),
                legend.suffix(run)
            );
            let rows = overall
                .into_iter()
                .map(|(name, ratio)| vec![name, ratio])
                .collect();
            tables.push(PageTable::of_words(&caption, &["allocator", "ratio"], rows));
        }
    }
    let mut explained: Vec<String> = Vec::new();
    for line in legend
        .runs
        .iter()
        .flat_map(|told| lines(&told.analysis))
        .map(|line| plain(&line))
    {
        if !explained.contains(&line) {
            explained.push(line);
        }
    }
    Section {
        id: "tables",
        heading: "Tables".into(),
        tables,
        legend: explained,
        ..Section::default()
    }
}

/// A table of the terminal.
pub(super) fn table(sheet: Sheet, suffix: &str) -> PageTable {
    let column = |column: &sheet::Column| Column {
        title: plain(&column.title),
        number: column.number,
    };
    let height = sheet.columns.first().map_or(0, |column| column.cells.len());
    let row = |place: usize| {
        sheet
            .columns
            .iter()
            .map(|column| plain(&column.cells[place]))
            .collect()
    };
    let numberless = sheet
        .numberless
        .iter()
        .map(|row| format!("{}: {}", row.allocator, row.reason));
    let lines = sheet
        .floors
        .iter()
        .chain(&sheet.trust)
        .chain(&sheet.caution)
        .cloned();
    PageTable {
        caption: plain(&format!("{}{suffix}", sheet.heading)),
        columns: sheet.columns.iter().map(column).collect(),
        rows: (0..height).map(row).collect(),
        notes: lines.chain(numberless).map(|line| plain(&line)).collect(),
    }
}

/// Every process that did not end `ok`.
pub(super) fn not_ok(legend: &SeriesLegend) -> Section {
    let of_run = |(run, told): (usize, &LegendRun)| {
        let rows = told.analysis.failures.iter().map(|failure| {
            vec![
                failure.cells.join(", "),
                failure.outcome.to_string(),
                failure.stderr.trim().to_owned(),
            ]
        });
        let rows: Vec<Vec<String>> = rows.collect();
        let columns = ["processes", "outcome", "last lines on stderr"];
        (!rows.is_empty()).then(|| PageTable::of_words(&caption(legend, run), &columns, rows))
    };
    Section {
        id: "failures",
        heading: "Not ok".into(),
        text: vec![
            "A row with any of these has no numbers: a failure is a result, never a fast time."
                .into(),
        ],
        tables: legend.runs.iter().enumerate().filter_map(of_run).collect(),
        ..Section::default()
    }
}

/// The machine, its preflight, the allocators, and how it was measured.
pub(super) fn method(legend: &SeriesLegend) -> Section {
    let mut tables = Vec::new();
    for (run, told) in legend.runs.iter().enumerate() {
        let (head, suffix) = (told.run.head, legend.suffix(run));
        let rows = head
            .machine
            .iter()
            .map(|(key, value)| vec![key.clone(), value.clone()])
            .collect();
        tables.push(PageTable::of_words(
            &format!("Machine{suffix}"),
            &["item", "found"],
            rows,
        ));
        let looks = head.preflights.before.iter().chain(&head.preflights.after);
        let told_of = looks.flat_map(|look| {
            [ItemState::Warning, ItemState::Note]
                .into_iter()
                .flat_map(|state| look.in_state(state))
                .map(|item| {
                    let found = item.found.clone().unwrap_or_else(|| "not told".into());
                    vec![
                        item.name.clone(),
                        item.state.word().to_owned(),
                        found,
                        item.means.clone(),
                    ]
                })
        });
        let mut rows: Vec<Vec<String>> = Vec::new();
        for row in told_of {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        tables.push(PageTable::of_words(
            &format!("Set up{suffix}"),
            &["item", "state", "found", "means"],
            rows,
        ));
        let rows = head.allocators.iter().chain(&head.rows).map(|info| {
            [
                &info.name,
                &info.version,
                &info.sources,
                &info.origin,
                &info.sha256.join(" "),
            ]
            .map(String::clone)
            .into()
        });
        let columns = ["name", "version", "sources of", "from", "SHA-256"];
        tables.push(PageTable::of_words(
            &format!("Allocators and programs{suffix}"),
            &columns,
            rows.collect(),
        ));
    }
    tables.retain(|table| !table.rows.is_empty());
    Section {
        id: "method",
        heading: "Machine and method".into(),
        tables,
        ..Section::default()
    }
}

/// The title of a run, if there are several.
fn caption(legend: &SeriesLegend, run: usize) -> String {
    if legend.runs.len() > 1 {
        legend.title(run)
    } else {
        String::new()
    }
}
