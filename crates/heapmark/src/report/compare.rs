//! A comparison as a table with its notes. Strings from outside are not yet escaped.

use super::screen::Screen;
use super::sheet::{self, Column, Numberless, Sheet};
use super::terminal;
use super::{markdown, text};
use crate::analyse::Verdict;
use crate::analyse::compare::{Compared, Comparison};
use crate::metric::{Judged, Metric};
use crate::store::RunFile;
use serde::Serialize;

/// The runs of a comparison.
#[derive(Clone, Copy)]
pub struct ComparisonSubject<'a> {
    /// The run, or the later of two.
    pub new: &'a RunFile,
    /// The earlier of two.
    pub old: Option<&'a RunFile>,
    /// What rows are judged by.
    pub by: &'static Metric,
    /// A difference up to this share is too small to matter.
    pub threshold: f64,
}

/// For a terminal.
pub fn comparison(subject: ComparisonSubject, comparison: &Comparison, screen: Screen) -> String {
    let mut dropped = Vec::new();
    let table = terminal::sheet_text(table(subject, comparison), screen, &mut dropped);
    let words: Vec<String> = words(subject, comparison)
        .iter()
        .map(|line| text::plain(line))
        .collect();
    let words = words
        .iter()
        .map(|line| text::wrap(line, screen.width, 2))
        .collect::<Vec<_>>()
        .join("\n");
    format!("{table}\n{words}\n")
}

/// For an issue or the summary of a CI job.
pub fn comparison_markdown(subject: ComparisonSubject, comparison: &Comparison) -> String {
    let table = table(subject, comparison);
    let words: String = words(subject, comparison)
        .iter()
        .map(|line| format!("\n{}\n", text::markdown(line)))
        .collect();
    format!(
        "## {}\n\n{}{words}",
        text::markdown(&table.heading),
        markdown::sheet_text(&table)
    )
}

/// For programs.
pub fn comparison_json(subject: ComparisonSubject, comparison: &Comparison) -> String {
    #[derive(Serialize)]
    struct ComparisonDocument<'a> {
        by: &'static str,
        threshold: f64,
        old_started: Option<&'a str>,
        new_started: &'a str,
        #[serde(flatten)]
        comparison: &'a Comparison,
    }
    let document = ComparisonDocument {
        by: subject.by.key,
        threshold: subject.threshold,
        old_started: subject.old.map(|old| old.started.as_str()),
        new_started: &subject.new.started,
        comparison,
    };
    text::json(&document)
}

/// The rows.
pub(super) fn table(subject: ComparisonSubject, comparison: &Comparison) -> Sheet {
    let clock = subject.by.noun;
    let over = match subject.old {
        Some(_) => "old".to_owned(),
        None => subject.new.plan.baseline.clone(),
    };
    let rows = &comparison.rows;
    let cells = |cell: &dyn Fn(&Compared) -> String| rows.iter().map(cell).collect::<Vec<_>>();
    let mut columns = vec![
        Column::words(
            "workload",
            cells(&|row| format!("{}@{}", row.workload, row.threads)),
        ),
        Column::words("allocator", cells(&|row| row.allocator.clone())),
        Column::numbers(
            &format!("{clock} / {over}"),
            cells(&|row| sheet::interval(&row.ratio)),
        ),
    ];
    if let Some(anchor) = &comparison.anchor {
        let beside = |row: &Compared| {
            row.beside_anchor
                .as_ref()
                .map(sheet::interval)
                .unwrap_or_default()
        };
        columns.push(Column::numbers(&format!("beside {anchor}"), cells(&beside)));
    }
    let verdict = |row: &Compared| match row.verdict {
        None => "the runs themselves".into(),
        Some(verdict @ (Verdict::Faster | Verdict::Slower)) => verdict.word_of(subject.by).into(),
        verdict => sheet::verdict(verdict),
    };
    columns.push(Column::words("verdict", cells(&verdict)));
    let left_out = comparison
        .left_out
        .iter()
        .map(|left| Numberless::new(&left.row, None, || left.why.clone()));
    Sheet {
        heading: match subject.old {
            Some(old) => format!("{} beside {}", moment(subject.new), moment(old)),
            None => format!("{clock} beside {over}"),
        },
        columns: if rows.is_empty() { Vec::new() } else { columns },
        numberless: left_out.collect(),
        ..Sheet::default()
    }
}

/// `2026-01-01 10:00:00 UTC`.
fn moment(run: &RunFile) -> String {
    let seconds = run.started.split(['.', 'Z']).next().unwrap_or_default();
    format!("{} UTC", seconds.replace('T', " "))
}

/// The notes that the rows of two runs must not be read without.
pub(super) fn words(subject: ComparisonSubject, comparison: &Comparison) -> Vec<String> {
    let mut words = Vec::new();
    let Some(old) = subject.old else { return words };
    let differing: Vec<String> = comparison
        .differences
        .iter()
        .map(|it| format!("{}: {} -> {}", it.what, it.old, it.new))
        .collect();
    if !differing.is_empty() {
        words.push(format!("Not the same in both: {}.", differing.join("; ")));
    }
    // What other programs do changes such a value hardly: there is no drift to separate.
    if subject.by.judged == Judged::ByRange {
        return words;
    }
    let drift = match &comparison.anchor {
        Some(anchor) => format!(
            "The same {anchor} ran in both, so each row is judged by what moved beside it; how far {anchor} itself moved is how \
             much the runs differ."
        ),
        None => "The runs have no baseline in common, so drift cannot be separated from a change."
            .to_owned(),
    };
    words.push(format!(
        "These are two runs, and their blocks were not interleaved: drift of the machine is in every ratio. {drift}"
    ));
    words.push(format!(
        "For a reliable comparison, put both into one run: {}",
        right(old, subject.new)
    ));
    words
}

/// The command that compares the two libraries, if there are two of one name.
fn right(old: &RunFile, new: &RunFile) -> String {
    let changed = new.allocators.iter().find_map(|info| {
        let before = old
            .allocators
            .iter()
            .find(|before| before.name == info.name && before.sha256 != info.sha256)?;
        Some((before.files.first()?, info.files.first()?))
    });
    match changed {
        Some((before, now)) => format!("heapmark run -a old={before},new={now} --baseline old"),
        None => "heapmark run -a old=/path/old.so,new=/path/new.so --baseline old".into(),
    }
}
