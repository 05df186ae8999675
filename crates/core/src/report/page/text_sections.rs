//! The text and table sections of one run: its reliability, all its tables, its failures, and how
//! and where it was measured.

use super::section::Section;
use super::series_legend::{LegendRun, SeriesLegend};
use super::views::distinct;
use crate::observe::preflight::ItemState;
use crate::report::document::{Mark, Sheet};
use crate::report::known_faults;
use crate::report::run::sheets;
use crate::report::text::{count, join, short};
use crate::report::{conclusion, legend::legend as lines, machine, units};
use crate::store::AllocatorInfo;
use std::collections::BTreeMap;

/// A table of texts for each run.
fn of_each_run(
    legend: &SeriesLegend,
    columns: &[&str],
    rows: impl Fn(&LegendRun) -> Vec<Vec<String>>,
) -> Vec<Sheet> {
    legend
        .runs
        .iter()
        .enumerate()
        .map(|(run, legend_run)| {
            let caption = legend.caption(run).unwrap_or_default();
            Sheet::of_text(caption, columns, rows(legend_run))
        })
        .collect()
}

/// The evidence for and against the run's reliability.
pub fn trust(legend: &SeriesLegend) -> Section {
    let columns = ["about", "what was seen"];
    let tables = of_each_run(legend, &columns, |run| {
        let mut rows = Vec::new();
        let mut line = |what: &str, says: String| rows.push(vec![what.to_owned(), says]);
        if let Some(says) = machine::machine_line(&run.analysis) {
            line("machine", without("machine: ", says));
        }
        if let Some(prices) = &run.analysis.prices {
            let says =
                machine::price_warning(prices).unwrap_or_else(|| machine::prices_line(prices));
            line("prices", without("prices here: ", says));
        }
        let interference = conclusion::interference(&run.analysis)
            .unwrap_or_else(|| conclusion::undisturbed(&run.analysis));
        line("interference", without("Interference: ", interference));
        line("failures", failures(run));
        if run.analysis.unplanned > 0 {
            let records = count(run.analysis.unplanned, "record");
            line("ignored", format!("{records} of no planned row"));
        }
        for sheet in sheets(&run.analysis) {
            let notes = sheet
                .notes
                .into_iter()
                .filter(|note| note.mark == Mark::None);
            let lines = sheet.above.into_iter().chain(notes.map(|note| note.text));
            let lines: Vec<String> = lines.collect();
            if !lines.is_empty() {
                line(&sheet.heading, lines.join("; "));
            }
        }
        rows
    });
    Section::of_tables("trust", "How far to trust it", tables)
}

/// Removes a leading word from a line that is shown behind that word.
fn without(word: &str, line: String) -> String {
    line.strip_prefix(word).map(String::from).unwrap_or(line)
}

fn failures(run: &LegendRun) -> String {
    let failures = run.analysis.failures.iter();
    match failures.map(|failure| failure.cells.len()).sum::<usize>() {
        0 => "every process ended ok".into(),
        processes => format!("{} did not end ok", count(processes, "process")),
    }
}

/// The most tables that are open at first.
const MOST_OPEN: usize = 3;

/// All tables, as on the terminal.
pub fn results(legend: &SeriesLegend) -> Section {
    let mut tables = legend.sheets(sheets);
    // Few readers need every one of many tables.
    let folded = tables.len() > MOST_OPEN;
    tables.iter_mut().for_each(|table| table.folded = folded);
    let explained = legend.runs.iter().flat_map(|run| lines(&run.analysis));
    Section {
        id: "tables".into(),
        heading: "Tables".into(),
        tables,
        legend: distinct(explained),
        ..Section::default()
    }
}

/// Every process that did not end `ok`.
pub fn not_ok(legend: &SeriesLegend) -> Section {
    let columns = ["processes", "outcome", "last lines on stderr"];
    let tables = of_each_run(legend, &columns, |run| {
        run.analysis
            .failures
            .iter()
            .map(|failure| {
                vec![
                    failure.cells.join(", "),
                    failure.outcome.to_string(),
                    failure.stderr.trim().to_owned(),
                ]
            })
            .collect()
    });
    Section {
        text: vec![
            "A row with any of these has no numbers: a failure is a result, never a fast time."
                .into(),
        ],
        ..Section::of_tables("failures", "Not ok", tables)
    }
}

/// The checks that allocators were known to fail before the run.
pub fn failed_checks(legend: &SeriesLegend) -> Section {
    let columns = ["allocator", "check", "who says so", "found", "by", "again"];
    let tables = of_each_run(legend, &columns, |run| {
        let mut rows = Vec::new();
        for (name, checked) in &run.analysis.checked {
            rows.extend(checked.findings.iter().map(|finding| {
                vec![
                    name.clone(),
                    finding.check.clone(),
                    known_faults::standing(finding.standing).to_owned(),
                    join([finding.verdict.to_string(), short(&finding.found)], ": "),
                    format!(
                        "heapmark {}, {}",
                        finding.heapmark,
                        known_faults::day(&finding.at)
                    ),
                    format!("heapmark check -a {name} --only {}", finding.check),
                ]
            }));
        }
        rows
    });
    Section {
        text: vec![
            "What heapmark check had found of these very libraries before the run. A program may not rely on these, \
             whatever the times say."
                .into(),
        ],
        ..Section::of_tables("checked", "Checks that fail", tables)
    }
}

/// The properties of a machine that most readers look for, and what they are called.
const MACHINE: [(&str, &str); 10] = [
    ("cpu_model", "CPU"),
    ("usable_cpus", "CPUs that may be used"),
    ("smt_active", "several threads per core"),
    ("cache_l2_unified", "L2 cache"),
    ("cache_l3_unified", "L3 cache"),
    ("memory_total", "memory"),
    ("transparent_huge_pages", "transparent huge pages"),
    ("kernel", "Linux"),
    ("c_library", "C library"),
    ("heapmark_build", "build of heapmark"),
];

/// A table of the properties of a machine that most readers look for.
pub fn machine_table(caption: &str, machine: &BTreeMap<String, String>) -> Sheet {
    let named = MACHINE
        .iter()
        .filter_map(|(key, name)| Some(vec![name.to_string(), in_words(key, machine.get(*key)?)]));
    Sheet::of_text(caption, &["item", "found"], named)
}

/// A property of the machine in the words that readers know.
fn in_words(key: &str, value: &str) -> String {
    let kib = value
        .strip_suffix(" kB")
        .and_then(|kib| kib.parse::<f64>().ok());
    match (key, value, kib) {
        ("smt_active", "0", _) => "no".into(),
        ("smt_active", "1", _) => "yes".into(),
        (_, _, Some(kib)) => units::bytes(kib * 1024.0),
        _ => value.to_owned(),
    }
}

/// A table of the libraries that were measured.
pub fn allocators_table<'a>(
    caption: &str,
    infos: impl Iterator<Item = &'a AllocatorInfo>,
) -> Sheet {
    let rows = infos.map(|info| {
        vec![
            info.name.clone(),
            info.released(),
            info.version.clone(),
            info.origin.clone(),
            info.build_ids.join(" "),
            info.sha256.join(" "),
        ]
    });
    let columns = ["name", "release", "version", "from", "build-id", "SHA-256"];
    Sheet::of_text(caption, &columns, rows)
}

fn folded(sheet: Sheet) -> Sheet {
    Sheet {
        folded: true,
        ..sheet
    }
}

/// The machine, its preflight, the allocators, and how the run was measured.
pub fn method(legend: &SeriesLegend) -> Section {
    let mut tables = Vec::new();
    for (run, legend_run) in legend.runs.iter().enumerate() {
        let head = legend_run.run.head;
        let suffix = legend.suffix(run);
        let mut add = |table: Sheet| {
            tables.push(Sheet {
                heading: format!("{}{suffix}", table.heading),
                ..table
            });
        };
        add(machine_table("Machine", &head.machine));
        let told_of = head
            .preflights
            .before
            .iter()
            .chain(&head.preflights.after)
            .flat_map(|look| {
                look.in_state(ItemState::Warning)
                    .chain(look.in_state(ItemState::Note))
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
        let columns = ["item", "state", "found", "means"];
        add(Sheet::of_text("Set up", &columns, distinct(told_of)));
        // The head of the page has the versions; few readers need the rest.
        for prices in &head.preflights.prices {
            add(folded(machine::price_table(prices)));
        }
        let infos = head.allocators.iter().chain(&head.rows);
        add(folded(allocators_table("Allocators and programs", infos)));
        let known = |key: &str| MACHINE.iter().any(|(known, _)| *known == key);
        let further = head
            .machine
            .iter()
            .filter(|(key, _)| !known(key))
            .map(|(key, value)| vec![key.replace('_', " "), value.clone()]);
        let caption = format!("More about the machine{suffix}");
        tables.push(folded(Sheet::of_text(caption, &["item", "found"], further)));
    }
    Section::of_tables("method", "Machine and method", tables)
}
