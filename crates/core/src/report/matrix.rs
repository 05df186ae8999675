//! The matrix of a run of several cases: allocators against workloads, on one screen.

use super::document::{Block, Cell, Mark, Sheet, Value};
use super::doubts::doubts;
use super::sheet::SheetOf;
use super::text::{count, enclosed, join};
use super::units::{self, short_bounds};
use super::{factor, operations};
use crate::analyse::{Analysis, Overall, Ratio, Role, Table, TableRow, Verdict, distinct};
use crate::metric::WALL;

/// The most rows of the matrix.
const MOST_ROWS: usize = 13;
/// The most letters of a word in a heading; a longer word is cut.
const MOST_LETTERS: usize = 8;
/// The content of the cell of a row that failed.
pub const FAILED: &str = "fail";
/// The ratio, up or down, that has the strongest colour.
const STRONGEST: f64 = 4.0;

/// The matrix of a run; `None` if the run does not have two cases that could be put side by side: then its tables are short enough.
pub fn matrix(analysis: &Analysis) -> Option<Sheet> {
    let mut sheet = table(analysis)?;
    sheet.remark(analysis.cases.iter().filter_map(factor::line));
    let meaning = [legend(analysis)].into_iter().chain(doubts(analysis));
    sheet.remark([join(meaning, " ")]);
    Some(sheet)
}

/// Returns the table of [`matrix`] for a run that is still going on, after `done` of `of` blocks. The table comes without an answer, since
/// verdicts are made for the end of a run.
pub fn provisional(analysis: &Analysis, done: u32, of: &str) -> Option<Block> {
    let heading = format!("Provisional, after {done} of {of} blocks; the answer follows:");
    let table = table(analysis)?;
    Some(Block::Sheet(Sheet { heading, ..table }))
}

fn table(analysis: &Analysis) -> Option<Sheet> {
    let mut names = names(analysis, &analysis.cases);
    let fits = names.len() > 1
        && analysis.cases.len() > 1
        && analysis.later_rounds.is_none()
        && analysis.cases.iter().all(Table::times_operations)
        && !operations::any_judged_figure(analysis);
    if !fits {
        return None;
    }
    let all = names.len();
    while names.len() > MOST_ROWS {
        let is_other = |name: &&str| *name != analysis.baseline;
        names.remove(names.iter().rposition(is_other)?);
    }
    let mut table = SheetOf::new("", &names);
    table.add("", |name| *name);
    if !analysis.overall.is_empty() {
        over_all(&mut table, analysis);
    }
    let first_case = table.sheet.columns.len();
    let cases: Vec<&Table> = analysis.cases.iter().collect();
    for (case, title) in cases.iter().zip(headings(&cases)) {
        table.add(title, |name| cell(case, name, WALL.key));
    }
    let mut sheet = table.sheet;
    sheet.is_matrix = true;
    let ratios = cases.iter().map(|case| {
        let rows = names.iter().filter_map(|name| case.row(name));
        rows.filter_map(|row| Some(row.ratio(WALL.key)?.ratio))
            .collect()
    });
    sheet.spare = closest_first(ratios, first_case);
    let left_out = all - names.len();
    let remark = || format!("{} below these.", count(left_out, "more row"));
    sheet.remark((left_out > 0).then(remark));
    Some(sheet)
}

/// The indices of columns, which are counted from `first`; columns whose values are closest to each other come first.
pub fn closest_first(columns: impl Iterator<Item = Vec<f64>>, first: usize) -> Vec<usize> {
    let apart = |values: Vec<f64>| {
        let least = values.iter().copied().min_by(f64::total_cmp);
        let most = values.iter().copied().max_by(f64::total_cmp);
        least.zip(most).map_or(1.0, |(least, most)| most / least)
    };
    let mut places: Vec<(f64, usize)> = columns.map(apart).zip(first..).collect();
    places.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    places.into_iter().map(|(_, place)| place).collect()
}

/// The rows of the matrix: the fastest over all cases first, then the allocators that are not in all cases.
pub fn names<'a>(
    analysis: &'a Analysis,
    cases: impl IntoIterator<Item = &'a Table>,
) -> Vec<&'a str> {
    let ranked = analysis.overall.iter().map(|one| one.allocator.as_str());
    let others = cases
        .into_iter()
        .flat_map(|case| &case.rows)
        .filter(|row| row.role.ranks())
        .map(|row| row.allocator.as_str());
    distinct(ranked.chain(others))
}

/// Adds columns for all cases together: time and memory.
fn over_all(table: &mut SheetOf<&str>, analysis: &Analysis) {
    let of = |name: &str| analysis.overall_of(name);
    let is_baseline = |name: &str| name == analysis.baseline && of(name).is_some();
    let cases = analysis.overall.iter().map(|one| one.cases).max();
    let cases = count(cases.unwrap_or_default(), "case");
    let title = format!("time / {}\n{cases} [95 %]", analysis.baseline);
    table.add(title, |name| match is_baseline(name) {
        true => Some("1 (baseline)".to_owned()),
        false => of(name).map(in_two_digits),
    });
    if analysis.held.is_empty() {
        table.add("memory\n/ its", |name| match is_baseline(name) {
            true => Cell::from("1"),
            false => of(name)
                .and_then(|one| Some(Value::Short(one.memory?.ratio)))
                .map(Cell::from)
                .into(),
        });
    } else {
        let held = |name| analysis.held_by(name);
        table.add("peak\n/live", |name| Some(Value::Short(held(name)?.peak?)));
        table.add("pool", |name| Some(Value::Short(held(name)?.worst()?)));
    }
}

/// A ratio in two decimals, with its interval: `0.36 [0.34, 0.37]`.
fn in_two_digits(one: &Overall) -> String {
    let interval = one.interval.map(short_bounds).unwrap_or_default();
    units::short(one.ratio) + &enclosed(" ", &interval, "")
}

/// The heading of each case: as many words of the workload's name as distinguish it from the others, one word per line, and the threads.
pub fn headings(cases: &[&Table]) -> Vec<String> {
    let of_words = |words: usize| -> Vec<String> {
        let heading = |case: &&Table| {
            let name = case.workload.trim_start_matches("trace:");
            let cut = |word: &str| word.chars().take(MOST_LETTERS).collect::<String>();
            let mut lines: Vec<String> = name.split('-').take(words).map(cut).collect();
            let mark = if case.oversubscribed { "!" } else { "" };
            lines.push(format!("{} thr{mark}", case.threads));
            lines.join("\n")
        };
        cases.iter().map(heading).collect()
    };
    let is_clear = |titles: &Vec<String>| distinct(titles).len() == titles.len();
    const MOST_WORDS: usize = 5;
    let mut tried = (1..MOST_WORDS).map(of_words);
    tried.find(is_clear).unwrap_or_else(|| of_words(MOST_WORDS))
}

/// The cell of an allocator in a case: a metric over the baseline's.
pub fn cell(case: &Table, name: &str, by: &str) -> Cell {
    let without = |shown: &str, mark, words: String| Cell {
        mark,
        words,
        ..shown.into()
    };
    let Some(row) = case.row(name) else {
        return without("-", Mark::Gap, "not measured".into());
    };
    match (&row.failed, row.ratio(by)) {
        (Some(failed), _) if failed.first.is_absent() => without("-", Mark::Gap, failed.summary()),
        (Some(failed), _) => without(FAILED, Mark::Failed, failed.summary()),
        (None, Some(_)) if row.role == Role::Baseline => {
            without("1", Mark::Baseline, "baseline".into())
        }
        (None, Some(ratio)) => of_ratio(row, ratio, by),
        (None, None) if row.has_run() => without("-", Mark::Gap, "nothing to compare".into()),
        (None, None) => without("-", Mark::Gap, "missing".into()),
    }
}

fn of_ratio(row: &TableRow, ratio: Ratio, by: &str) -> Cell {
    let verdict = row.verdict(by);
    let (mark, sign) = match verdict {
        Some(Verdict::AaCopyDiffers) => (Mark::Withheld, "?"),
        Some(Verdict::Same) => (Mark::Same, ""),
        Some(Verdict::Faster | Verdict::Slower | Verdict::Small) => (way(ratio.ratio), ""),
        Some(Verdict::TooFew { .. }) => (Mark::Unclear, "…"),
        // A row that is not judged still has an interval.
        None if ratio.side().is_some() => (way(ratio.ratio), ""),
        // A ratio whose interval excludes 1 without a clear verdict is shown without a colour: among so many cells, chance alone leads to
        // some.
        Some(_) if ratio.side().is_some() => (Mark::Unclear, ""),
        Some(Verdict::Unclear { .. }) | None => (Mark::Unclear, "~"),
    };
    let word = row
        .cell(by)
        .map(|cell| Cell::verdict(verdict, cell.metric, Some(ratio)));
    let word = word.map(|word| word.to_string()).unwrap_or_default();
    let words = format!("{} {word}", units::interval(&ratio));
    Cell {
        sign,
        mark,
        heat: heat(mark, ratio.ratio),
        words: words.trim_end().to_owned(),
        ..Value::Short(ratio.ratio).into()
    }
}

/// The strength of a ratio's colour.
pub fn heat(mark: Mark, ratio: f64) -> u32 {
    let share = (ratio.ln().abs() / STRONGEST.ln()).min(1.0);
    match mark {
        Mark::Faster | Mark::Slower => (share * 100.0) as u32,
        _ => 0,
    }
}

pub fn way(ratio: f64) -> Mark {
    match ratio < 1.0 {
        true => Mark::Faster,
        false => Mark::Slower,
    }
}

fn measured(analysis: &Analysis) -> impl Iterator<Item = &TableRow> {
    let rows = analysis.rows();
    rows.filter(|row| row.role == Role::Candidate && row.has_run())
}

/// The meaning of each mark that occurs in the matrix.
pub fn marks(analysis: &Analysis) -> impl Iterator<Item = String> {
    let cells = analysis.cases.iter().flat_map(|case| {
        let names = measured(analysis).map(|row| &row.allocator);
        names.map(|name| cell(case, name, WALL.key).sign)
    });
    let there: Vec<&str> = cells.collect();
    let base = &analysis.baseline;
    let all = [
        ("~", format!("~ not told apart from {base}")),
        ("…", "… too few blocks yet to tell".to_owned()),
        ("?", format!("? no further apart than {base} and its copy")),
    ];
    all.into_iter()
        .filter(move |(sign, _)| there.contains(sign))
        .map(|(_, words)| words)
}

/// The meaning of all marks that occur, as one text.
fn legend(analysis: &Analysis) -> String {
    let mut words = vec!["Below 1 is faster".to_owned()];
    words.extend(marks(analysis));
    if analysis.cases.iter().any(|case| case.oversubscribed) {
        words.push("! more threads than CPUs".into());
    }
    join(words, "; ") + "."
}
