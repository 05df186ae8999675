//! Two runs row by row, for pages with two.

use super::section::Section;
use super::series_legend::{LegendRun, SeriesLegend};
use super::text_sections;
use crate::analyse::THRESHOLD;
use crate::analyse::compare::{Side, between};
use crate::metric::WALL;
use crate::report::compare::{self, ComparisonSubject};
use crate::report::text::plain;

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let mut section = Section {
        id: "compare",
        heading: "The second run beside the first".into(),
        ..Section::default()
    };
    if let [old, new] = legend.runs.as_slice() {
        let found = between(&side(old), &side(new), WALL, THRESHOLD);
        let subject = ComparisonSubject {
            new: new.run.head,
            old: Some(old.run.head),
            by: WALL,
            threshold: THRESHOLD,
        };
        if !found.rows.is_empty() {
            section.text = compare::words(subject, &found)
                .iter()
                .map(|line| plain(line))
                .collect();
            section.tables = vec![text_sections::table(compare::table(subject, &found), "")];
        }
    }
    section
}

fn side<'a>(told: &LegendRun<'a>) -> Side<'a> {
    Side {
        head: told.run.head,
        records: told.run.records,
    }
}
