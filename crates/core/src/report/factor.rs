//! The words about factors: aged heaps, huge pages, other CPUs seen.

use super::document::Cell;
use super::sheet::SheetOf;
use super::text::{enclosed, join};
use super::units::{self, interval};
use crate::analyse::{Analysis, FactorRatio, Role, Table, TableRow};
use crate::metric::WALL;
use crate::plan::{Factor, HugePages, LITTER, OTHER_SIZES};

/// The words for a factor.
struct FactorWords {
    /// The words for the factor behind a heading.
    case: String,
    /// The titles of two columns: the ratio, and the verdict on it.
    columns: [String; 2],
    /// The meaning of the ratio.
    legend: String,
}

fn words_of(factor: Factor) -> FactorWords {
    match factor {
        Factor::Age(age) => FactorWords {
            case: format!("heap aged to {age} %"),
            columns: ["aged / fresh".into(), "with age".into()],
            legend: format!(
                "aged / fresh: time in a heap that was filled, replaced three times and freed to {age} % of its blocks before the clock \
                 started, over that of the same allocator in a fresh heap in the same block; above 1 is slower with age. What is said of \
                 allocators over all cases is said of fresh heaps."
            ),
        },
        Factor::HugePages(which) => FactorWords {
            case: format!("huge pages: {}", which.word()),
            columns: [format!("{} / never", which.word()), "in huge pages".into()],
            legend: format!(
                "{} / never: time with transparent huge pages{} over that of the same allocator without any, in the same block; below 1 is \
                 faster in huge pages. What is said of allocators over all cases is said of memory without them.",
                which.word(),
                match which {
                    HugePages::Advised => ", if a program asks for them,",
                    _ => " as this machine is set",
                }
            ),
        },
        Factor::CpusSeen(count) => FactorWords {
            case: format!("{count} CPUs seen"),
            columns: [format!("{count} seen / own"), "with them".into()],
            legend: format!(
                "{count} seen / own: time where the command is told of {count} CPUs and no quota, over that of the same allocator where it \
                 hears the truth, in the same block; above 1 is slower. Both are asked of heapmark at each opening of a file for reading. \
                 What is said of allocators over all cases is said of this machine's CPUs."
            ),
        },
    }
}

/// The words for a case's factor, to be put behind a heading; empty without a factor.
pub fn words(case: &Table) -> String {
    let words = case.factor.map(|factor| words_of(factor).case);
    enclosed(", ", &words.unwrap_or_default(), "")
}

/// Adds columns with each row's ratio to the same allocator without the factor, and the verdict on that.
pub fn columns(table: &mut SheetOf<TableRow>, case: &Table) {
    let Some(factor) = case.factor else {
        return;
    };
    if table.rows.iter().all(|row| row.factor.is_none()) {
        return;
    }
    let [ratio, judged] = words_of(factor).columns;
    table.add(format!("{ratio} [95 %]"), |row| Some(row.factor?.ratio));
    table.add(judged, |row| row.factor.map(verdict));
}

fn verdict(over: FactorRatio) -> Cell {
    Cell::verdict(over.verdict, WALL, Some(over.ratio))
}

/// All rows of a case with a factor, in a line, for tables that have no such columns.
pub fn line(case: &Table) -> Option<String> {
    let [ratio, _] = words_of(case.factor?).columns;
    let ratios = case.rows.iter().filter_map(|row| {
        let over = row.factor?;
        let (ratio, word) = (interval(&over.ratio), verdict(over));
        Some(format!("{} {ratio} {word}", row.allocator))
    });
    let ratios = join(ratios.map(|text| text.trim_end().to_owned()), ", ");
    let name = case.label();
    (!ratios.is_empty()).then(|| format!("Time {ratio}, {name}: {ratios}."))
}

/// A sentence about the memory that the litter itself takes.
pub fn memory(case: &Table) -> Option<String> {
    if !matches!(case.factor, Some(Factor::Age(_))) {
        return None;
    }
    let [live, resident, give_back] = LITTER;
    let rows = case.rows.iter().filter(|row| row.role != Role::AaCopy);
    let figure = |name: &str, row: &TableRow| row.figures.get(name).copied();
    let held = rows.clone().filter_map(|row| {
        let resident = units::bytes(figure(resident, row)?);
        Some(format!("{} {resident}", row.allocator))
    });
    let held = join(held, ", ");
    let most = |name: &str| {
        let of_rows = rows.clone();
        let of_rows = of_rows.filter_map(|row| figure(name, row));
        of_rows.max_by(f64::total_cmp)
    };
    let back = most(give_back).map(|ns| {
        format!(
            "; giving it back at the end of the process takes up to about {}, which is in the command's time",
            units::duration(ns)
        )
    });
    let sizes = match most(OTHER_SIZES) {
        Some(_) => ", of sizes as servers ask for, since none of the workload's own can be used",
        None => "",
    };
    Some(format!(
        "the litter has {} live{sizes}, and holds: {held}; all memory of these rows includes it{}",
        units::bytes(most(live)?),
        back.unwrap_or_default()
    ))
}

/// Returns the meaning of a factor's columns.
pub fn legend(analysis: &Analysis) -> Option<String> {
    let factor = analysis.cases.iter().find_map(|case| case.factor)?;
    Some(words_of(factor).legend)
}
