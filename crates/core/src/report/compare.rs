//! A comparison as a table with its notes.

use super::document::{Block, Cell, Sheet};
use super::sheet::{SheetOf, numberless};
use super::{conclusion, text, units};
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
    /// The earlier of two runs.
    pub old: Option<&'a RunFile>,
    /// The metric that rows are judged by.
    pub by: &'static Metric,
    /// A difference up to this share is too small to matter.
    pub threshold: f64,
}

/// Returns a comparison's table and notes.
pub fn comparison(subject: ComparisonSubject, comparison: &Comparison) -> Vec<Block> {
    let words = words(subject, comparison).into_iter();
    let words = words.chain(failed_checks(subject, comparison));
    vec![
        Block::Sheet(table(subject, comparison)),
        Block::notes(words),
    ]
}

/// A comparison as JSON, for programs.
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

/// Returns the faults of the baseline and of these rows' allocators that were known before a run.
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

/// The failed checks in sentences; for the old run, only those that the new run does not have.
fn failed_checks(subject: ComparisonSubject, comparison: &Comparison) -> Vec<String> {
    let sentences = |run| {
        let all = findings(run, comparison);
        let texts = all.filter_map(|(name, findings)| known_faults::failed(name, findings));
        texts.collect::<Vec<String>>()
    };
    let new = sentences(subject.new);
    let mut old = subject.old.map(sentences).unwrap_or_default();
    old.retain(|line| !new.contains(line));
    let old = old.into_iter().map(|line| format!("In the old run {line}"));
    new.into_iter().chain(old).collect()
}

/// The table of the compared rows.
pub fn table(subject: ComparisonSubject, comparison: &Comparison) -> Sheet {
    let clock = subject.by.noun;
    let over = match subject.old {
        Some(_) => "old",
        None => &subject.new.plan.baseline,
    };
    let heading = match subject.old {
        Some(old) => format!(
            "{} beside {}",
            conclusion::moment(subject.new),
            conclusion::moment(old)
        ),
        None => format!("{clock} beside {over}"),
    };
    let mut table = SheetOf::new(heading, &comparison.rows);
    table.sheet.heads = 2;
    table.add("workload", |row| case_name(&row.workload, row.threads));
    table.add("allocator", |row| &row.allocator);
    table.add(format!("{clock} / {over}"), |row| row.ratio);
    if let Some(anchor) = &comparison.anchor {
        table.add(format!("beside {anchor}"), |row| row.beside_anchor);
    }
    table.add("verdict", |row| match row.verdict {
        None => "the runs themselves".into(),
        verdict => Cell::verdict(
            verdict,
            subject.by,
            Some(row.beside_anchor.unwrap_or(row.ratio)),
        ),
    });
    let mut sheet = table.sheet;
    let left_out = comparison.left_out.iter();
    let left_out = left_out.map(|left| numberless(&left.row, None, || left.why.clone()));
    sheet.notes.extend(left_out);
    sheet
}

/// The notes that must be read with the rows of two runs.
pub fn words(subject: ComparisonSubject, comparison: &Comparison) -> Vec<String> {
    let mut words = Vec::new();
    let Some(old) = subject.old else { return words };
    let differing = comparison.differences.iter().map(|difference| {
        format!(
            "{}: {} -> {}",
            difference.what, difference.old, difference.new
        )
    });
    let differing = text::join(differing, "; ");
    if !differing.is_empty() {
        words.push(format!("Not the same in both: {differing}."));
    }
    // Other programs hardly change such a value, so there is no drift to separate.
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
    // The two libraries, if an allocator of the same name has a different library in each run.
    let changed = subject.new.allocators.iter().find_map(|info| {
        let mut before = old.allocators.iter();
        let before =
            before.find(|before| before.name == info.name && before.hashes() != info.hashes())?;
        Some((before.files.first()?.as_str(), info.files.first()?.as_str()))
    });
    // A file that was built anew is not there twice.
    let changed = changed.filter(|(before, now)| before != now);
    let (before, now) = changed.unwrap_or(("/path/old.so", "/path/new.so"));
    let state = match subject.by.between_runs() {
        0.0 => String::new(),
        state => format!(
            " Intervals and verdicts count {} for the state of the machine in each run, so that small changes stay unclear.",
            units::percent(state)
        ),
    };
    words.extend([
        format!(
            "These are two runs, and their blocks were not interleaved: drift of the machine is in every ratio. {drift}{state}"
        ),
        format!(
            "For a reliable comparison, put both into one run: heapmark run -a old={before},new={now} --baseline old"
        ),
    ]);
    words
}
