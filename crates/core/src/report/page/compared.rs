//! Two runs row by row, for pages with two.

use super::section::Section;
use super::series_legend::SeriesLegend;
use crate::analyse::THRESHOLD;
use crate::analyse::compare::{Side, between};
use crate::metric::WALL;
use crate::report::compare::{self, ComparisonSubject};

/// The section is empty unless there are two runs that timed whole processes or operations.
pub fn section(legend: &SeriesLegend) -> Section {
    let [old, new] = legend.runs.as_slice() else {
        return Section::default();
    };
    let sides = [old, new].map(|legend_run| Side {
        head: legend_run.run.head,
        records: legend_run.run.records,
    });
    let found = between(&sides[0], &sides[1], WALL, THRESHOLD);
    let is_timed = [old, new].iter().all(|run| !run.analysis.cases.is_empty());
    if !is_timed || found.rows.is_empty() && found.left_out.is_empty() {
        return Section::default();
    }
    let subject = ComparisonSubject {
        new: new.run.head,
        old: Some(old.run.head),
        by: WALL,
        threshold: THRESHOLD,
    };
    Section {
        id: "compare".into(),
        heading: "The second run beside the first".into(),
        text: compare::words(subject, &found),
        // If no row can be compared, the notes of the table say why.
        tables: vec![compare::table(subject, &found)],
        ..Section::default()
    }
}
