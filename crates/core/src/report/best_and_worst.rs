//! The case in which each allocator is best and the one in which it is worst: a mean over cases hides both.

use super::document::Sheet;
use super::sheet::SheetOf;
use super::text::count;
use crate::analyse::{Analysis, Overall, Ratio};

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
    let mut table = SheetOf::new(heading, rivals);
    table.add("allocator", |one: &Overall| &one.allocator);
    table.add("faster", |one| one.faster as u64);
    table.add("slower", |one| one.slower as u64);
    for (title, is_worst) in [("best", false), ("worst", true)] {
        let end = |one: &Overall| {
            let cases = by_ratio(analysis, &one.allocator);
            let of_end = if is_worst {
                cases.last()
            } else {
                cases.first()
            };
            of_end.cloned()
        };
        table.add(title, |one| end(one).map(|(case, _)| case));
        table.add("ratio [95 %]", |one| end(one).map(|(_, ratio)| ratio));
    }
    table.sheet
}

/// The cases in which an allocator is compared with the baseline, the one in which it saves most first.
fn by_ratio(analysis: &Analysis, allocator: &str) -> Vec<(String, Ratio)> {
    let cases = analysis.cases.iter().filter(|case| case.counts());
    let mut all: Vec<(String, Ratio)> = cases
        .filter_map(|case| {
            let ratio = case.row(allocator)?.time().ratio?;
            Some((format!("{}@{}", case.workload, case.threads), ratio))
        })
        .collect();
    all.sort_by(|(_, one), (_, other)| one.ratio.total_cmp(&other.ratio));
    all
}
