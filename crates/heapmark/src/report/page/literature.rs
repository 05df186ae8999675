//! The claims of the reference documents, and whether they hold in the runs of a page.

use super::section::{PageTable, Section};
use crate::analyse::claims::{JudgedClaim, Verdict};
use crate::report::claims;

/// Empty if no document covers the runs.
pub(super) fn section(judged: &[JudgedClaim]) -> Section {
    let tested = judged
        .iter()
        .filter(|one| one.verdict != Verdict::NotTestable);
    let row = |one: &JudgedClaim| {
        let verdict = one.verdict.word().to_owned();
        vec![
            one.id.clone(),
            verdict,
            one.says.clone(),
            claims::reason(one),
        ]
    };
    let rows: Vec<Vec<String>> = tested.map(row).collect();
    let mut section = Section {
        id: "claims",
        heading: "What the literature says".into(),
        text: vec![
            "Claims of the reference documents, held against this page's runs by their own rule (docs/CLAIMS.md). One that does not \
             hold is a result: versions and machines are other ones."
                .into(),
        ],
        ..Section::default()
    };
    if !rows.is_empty() {
        section.tables = vec![PageTable::of_words(
            "",
            &["id", "verdict", "claim", "reason"],
            rows,
        )];
        section.legend = vec![claims::summary(judged)];
    }
    section
}
