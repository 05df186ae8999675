//! A comparison as a table with its notes. Strings from outside are not yet escaped.

use super::sheet::{self, Column, Numberless, Sheet};
use super::{Screen, conclusion, markdown, terminal, text};
use crate::analyse::Verdict;
use crate::analyse::compare::Comparison;
use crate::metric::{Judged, Metric};
use crate::plan::case_name;
use crate::report::known_faults;
use crate::store::{KnownFault, RunFile};
use serde::Serialize;
use std::collections::BTreeMap;

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
    let table = terminal::sheet_text(table(subject, comparison), screen, &mut Vec::new());
    let words = words(subject, comparison).into_iter();
    let words = words.chain(failed_checks(subject, comparison));
    let words = text::join(words.map(|line| screen.wrap(&line, 2)), "\n");
    format!("{table}\n{words}\n")
}

/// For an issue or the summary of a CI job.
pub fn comparison_markdown(subject: ComparisonSubject, comparison: &Comparison) -> String {
    let mut out = markdown::sheet_text(&table(subject, comparison));
    let words = words(subject, comparison).into_iter();
    for line in words.chain(failed_checks(subject, comparison)) {
        out += &format!("\n{}\n", text::markdown(&line));
    }
    out
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
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        failed_checks: BTreeMap<&'a str, &'a [KnownFault]>,
    }
    text::json(&ComparisonDocument {
        by: subject.by.key,
        threshold: subject.threshold,
        old_started: subject.old.map(|old| old.started.as_str()),
        new_started: &subject.new.started,
        comparison,
        failed_checks: findings(subject.new, comparison).collect(),
    })
}

/// What was known before a run of the allocators of these rows, and of what they are compared with.
fn findings<'a>(
    run: &'a RunFile,
    comparison: &Comparison,
) -> impl Iterator<Item = (&'a str, &'a [KnownFault])> {
    let is_compared = |name: &String| {
        *name == run.plan.baseline || comparison.rows.iter().any(|row| row.allocator == *name)
    };
    run.allocators
        .iter()
        .filter(move |info| is_compared(&info.name))
        .filter_map(|info| Some((info.name.as_str(), &*info.checked.as_ref()?.findings)))
        .filter(|(_, findings)| !findings.is_empty())
}

/// The same in sentences; of the old run only if it was another.
fn failed_checks(subject: ComparisonSubject, comparison: &Comparison) -> Vec<String> {
    let said = |run| {
        let all = findings(run, comparison);
        let said = all.filter_map(|(name, findings)| known_faults::failed(name, findings));
        said.collect::<Vec<String>>()
    };
    let new = said(subject.new);
    let mut old = subject.old.map(said).unwrap_or_default();
    old.retain(|line| !new.contains(line));
    let old = old.into_iter().map(|line| format!("In the old run {line}"));
    new.into_iter().chain(old).collect()
}

/// The rows.
pub fn table(subject: ComparisonSubject, comparison: &Comparison) -> Sheet {
    let clock = subject.by.noun;
    let over = match subject.old {
        Some(_) => "old",
        None => &subject.new.plan.baseline,
    };
    let rows = &comparison.rows;
    let cases = rows.iter().map(|row| case_name(&row.workload, row.threads));
    let allocators = rows.iter().map(|row| row.allocator.clone());
    let ratios = rows.iter().map(|row| sheet::interval(&row.ratio));
    let mut columns = vec![
        Column::words("workload", cases),
        Column::words("allocator", allocators),
        Column::numbers(&format!("{clock} / {over}"), ratios),
    ];
    if let Some(anchor) = &comparison.anchor {
        let ratios = rows
            .iter()
            .map(|row| row.beside_anchor.as_ref())
            .map(|ratio| ratio.map(sheet::interval).unwrap_or_default());
        columns.push(Column::numbers(&format!("beside {anchor}"), ratios));
    }
    columns.push(Column::words(
        "verdict",
        rows.iter().map(|row| match row.verdict {
            None => "the runs themselves".into(),
            Some(verdict @ (Verdict::Faster | Verdict::Slower)) => {
                verdict.word_of(subject.by).into()
            }
            verdict => sheet::verdict(verdict),
        }),
    ));
    if rows.is_empty() {
        columns.clear();
    }
    let left_out = comparison
        .left_out
        .iter()
        .map(|left| Numberless::new(&left.row, None, || left.why.clone()));
    Sheet {
        heading: match subject.old {
            Some(old) => format!(
                "{} beside {}",
                conclusion::moment(subject.new),
                conclusion::moment(old)
            ),
            None => format!("{clock} beside {over}"),
        },
        columns,
        numberless: left_out.collect(),
        ..Sheet::default()
    }
}

/// The notes that the rows of two runs must not be read without.
pub fn words(subject: ComparisonSubject, comparison: &Comparison) -> Vec<String> {
    let mut words = Vec::new();
    let Some(old) = subject.old else { return words };
    let differing = comparison
        .differences
        .iter()
        .map(|it| format!("{}: {} -> {}", it.what, it.old, it.new));
    let differing = text::join(differing, "; ");
    if !differing.is_empty() {
        words.push(format!("Not the same in both: {differing}."));
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
    // The two libraries, if there are two of one name.
    let changed = subject.new.allocators.iter().find_map(|info| {
        let mut before = old.allocators.iter();
        let before =
            before.find(|before| before.name == info.name && before.sha256 != info.sha256)?;
        Some((before.files.first()?.as_str(), info.files.first()?.as_str()))
    });
    let (before, now) = changed.unwrap_or(("/path/old.so", "/path/new.so"));
    words.extend([
        format!(
            "These are two runs, and their blocks were not interleaved: drift of the machine is in every ratio. {drift}"
        ),
        format!(
            "For a reliable comparison, put both into one run: heapmark run -a old={before},new={now} --baseline old"
        ),
    ]);
    words
}
