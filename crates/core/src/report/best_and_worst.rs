//! The case in which each allocator is best and the one in which it is worst: a mean over cases hides both.

use super::document::Sheet;
use super::sheet::SheetOf;
use super::text::count;
use crate::analyse::{Analysis, Overall, Ratio, Table};

/// Returns the table, which has no rows if there is no mean over cases.
pub fn sheet(analysis: &Analysis) -> Sheet {
    let base = &analysis.baseline;
    let rivals = analysis.overall.iter().filter(|one| one.allocator != *base);
    let cases = rivals
        .clone()
        .map(|one| one.cases)
        .max()
        .unwrap_or_default();
    let heading = format!("Best and worst of {}: time / {base}", count(cases, "case"));
    let rows: Vec<Extremes> = rivals.map(|one| Extremes::of(one, analysis)).collect();
    let mut table = SheetOf::new(heading, &rows);
    table.add("allocator", |row: &Extremes| &row.overall.allocator);
    table.add("faster", |row| row.overall.faster as u64);
    table.add("slower", |row| row.overall.slower as u64);
    table.add("best", |row| row.best.map(|(case, _)| case.label()));
    table.add("ratio [95 %]", |row| row.best.map(|(_, ratio)| ratio));
    table.add("worst", |row| row.worst.map(|(case, _)| case.label()));
    table.add("ratio [95 %]", |row| row.worst.map(|(_, ratio)| ratio));
    table.sheet
}

/// The cases in which an allocator saves most and least of the baseline's time, with its ratio there.
struct Extremes<'a> {
    overall: &'a Overall,
    best: Option<(&'a Table, Ratio)>,
    worst: Option<(&'a Table, Ratio)>,
}

impl<'a> Extremes<'a> {
    fn of(overall: &'a Overall, analysis: &'a Analysis) -> Extremes<'a> {
        let cases = analysis.cases.iter().filter(|case| case.counts());
        let compared = cases.filter_map(|case| {
            let ratio = case.row(&overall.allocator)?.time().ratio?;
            Some((case, ratio))
        });
        let by_ratio = |(_, one): &(&Table, Ratio), (_, other): &(&Table, Ratio)| {
            one.ratio.total_cmp(&other.ratio)
        };
        Extremes {
            overall,
            best: compared.clone().min_by(by_ratio),
            worst: compared.max_by(by_ratio),
        }
    }
}
