//! The words about aged heaps. Strings from outside are not yet escaped.

use super::sheet::{TableColumns, interval, verdict};
use super::text::{enclosed, join};
use super::units;
use crate::analyse::{Analysis, Case, Numbers, Role};
use crate::plan::LITTER;

/// Behind a heading.
pub fn words(case: &Case) -> String {
    let words = case.age.map(|age| format!("heap aged to {age} %"));
    enclosed(", ", &words.unwrap_or_default(), "")
}

/// Each row over the same allocator in a fresh heap, and the verdict on that.
pub fn columns(table: &mut TableColumns<'_>) {
    if table.rows.iter().all(|(_, numbers)| numbers.aged.is_none()) {
        return;
    }
    table.words("aged / fresh [95 %]", |_, numbers| {
        over(numbers).unwrap_or_else(|| "-".into())
    });
    table.words("with age", |_, numbers| {
        verdict(numbers.aged.and_then(|over| over.verdict))
    });
}

fn over(numbers: &Numbers) -> Option<String> {
    Some(interval(&numbers.aged?.ratio))
}

/// All rows of an aged case in a line, for tables that have no such columns.
pub fn line(case: &Case) -> Option<String> {
    let told = case.rows.iter().filter_map(|row| {
        let numbers = row.numbers()?;
        let word = verdict(numbers.aged?.verdict);
        Some(format!("{} {} {word}", row.allocator, over(numbers)?))
    });
    let told = join(told.map(|text| text.trim_end().to_owned()), ", ");
    let workload = &case.workload;
    let threads = case.threads;
    (!told.is_empty()).then(|| format!("Aged / fresh, {workload}@{threads}: {told}."))
}

/// What the litter itself takes.
pub fn memory(case: &Case) -> Option<String> {
    case.age?;
    let [live, resident, give_back] = LITTER;
    let rows = case.rows.iter().filter(|row| row.role != Role::AaCopy);
    let figure = |name: &str, numbers: &Numbers| numbers.figures.get(name).copied();
    let told = rows.clone().filter_map(|row| {
        let resident = units::bytes(figure(resident, row.numbers()?)?);
        Some(format!("{} {resident}", row.allocator))
    });
    let told = join(told, ", ");
    let most = |name: &str| {
        rows.clone()
            .filter_map(|row| figure(name, row.numbers()?))
            .max_by(f64::total_cmp)
    };
    let back = most(give_back).map(|ns| {
        format!(
            "; giving it back at the end of the process takes up to about {}, which is in the command's time",
            units::duration(ns)
        )
    });
    Some(format!(
        "the litter has {} live, and holds: {told}; all memory of these rows includes it{}",
        units::bytes(most(live)?),
        back.unwrap_or_default()
    ))
}

/// The meaning of the columns.
pub fn legend(analysis: &Analysis) -> Option<String> {
    let age = analysis.cases.iter().find_map(|case| case.age)?;
    Some(format!(
        "aged / fresh: time in a heap that was filled, replaced three times and freed to {age} % of its blocks before the clock \
         started, over that of the same allocator in a fresh heap in the same block; above 1 is slower with age. What is said of \
         allocators over all cases is said of fresh heaps."
    ))
}
