//! The first screen of a run of several cases: its answer, one matrix of allocators against workloads, and what
//! to do next. The full tables are in `run`.

use super::conclusion::{self, kernel_of};
use super::document::{Block, Cell, Mark, Note, Sheet, Value};
use super::legend::failed_checks_in_brief;
use super::machine::{machine_line, machine_name};
use super::run::{answer, failures};
use super::sheet::SheetOf;
use super::text::{count, list};
use super::{factor, operations, units};
use crate::analyse::{
    Analysis, MemoryShape, Overall, Ratio, Role, Table, TableRow, Verdict, distinct,
};
use crate::metric::WALL;
use crate::store::RunFile;
use std::path::Path;

/// Lines in which a heading may be broken; longer ones are cut.
const MOST_HEADING_LINES: usize = 5;
/// A word of a heading that is longer is broken.
const MOST_WORD: usize = 7;
/// The ratio, up or down, of the strongest colour.
const STRONGEST: f64 = 8.0;

/// The matrix of a run, its sentences and what to do next; `None` if it has no two cases that could
/// be put side by side: then its tables are short enough. `place` is the run's directory.
pub fn matrix(run: &RunFile, analysis: &Analysis, place: &Path) -> Option<Vec<Block>> {
    let sheet = table(analysis)?;
    let mut remarks = legend(analysis);
    remarks.extend(cautions(analysis));
    remarks.extend(analysis.cases.iter().filter_map(factor::line));
    remarks.extend(aa_copy(analysis));
    remarks.extend(trust(analysis));
    let mut sentences = conclusion::conclusion(analysis);
    if analysis.held.is_empty() {
        sentences += &conclusion::smallest(analysis);
    }
    let next = [
        "Next: heapmark try -- COMMAND tells the same of your own program.".to_owned(),
        format!("All numbers: heapmark show {}", place.display()),
    ];
    Some(vec![
        Block::Text(Note::marked(head(run, analysis), Mark::Strong)),
        answer(&sentences, analysis),
        Block::Sheet(sheet),
        Block::notes(remarks),
        failures(analysis),
        Block::notes(next),
    ])
}

/// How far to trust an answer, and what it is not about.
pub fn trust(analysis: &Analysis) -> Vec<String> {
    let mut lines = failed_checks_in_brief(analysis);
    lines.extend(conclusion::interference(analysis));
    lines.extend(machine_line(analysis));
    lines.extend(conclusion::unplanned(analysis));
    lines.extend(absent(analysis));
    lines
}

/// The table of [`matrix`] of a run that goes on: so far `done` blocks, of as many as `of` says. It
/// has no sentence that answers, since verdicts are made for the end of a run.
pub fn provisional(analysis: &Analysis, done: u32, of: &str) -> Option<Block> {
    let heading = format!("Provisional, after {done} of {of} blocks; the answer follows:");
    let table = table(analysis)?;
    Some(Block::Sheet(Sheet { heading, ..table }))
}

fn table(analysis: &Analysis) -> Option<Sheet> {
    let fits = analysis.overall.len() > 1
        && analysis.later_rounds.is_none()
        && analysis.cases.iter().all(Table::times_operations)
        && !operations::any_judged_figure(analysis);
    if !fits {
        return None;
    }
    let names = names(analysis, &analysis.cases);
    let mut table = SheetOf::new("", &names);
    table.add("", |name| *name);
    over_all(&mut table, analysis);
    for case in &analysis.cases {
        table.add(heading(case), |name| cell(case, name, WALL.key));
    }
    table.sheet.is_matrix = true;
    Some(table.sheet)
}

/// Rows of the matrix: the fastest over all cases first, then those that are not in all of them.
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

/// `heapmark 0.1.0, suite quick, 10 blocks on AMD EPYC (2 CPUs), Linux 6.1`.
pub fn head(run: &RunFile, analysis: &Analysis) -> String {
    format!(
        "heapmark {}, suite {}, {} on {}",
        run.heapmark,
        run.suite,
        count(analysis.planned_blocks, "block"),
        machine_name(&run.machine)
    )
}

/// What all cases come to, in time and in memory.
fn over_all(table: &mut SheetOf<&str>, analysis: &Analysis) {
    let of = |name: &str| analysis.overall.iter().find(|one| one.allocator == name);
    let over_baseline = |name: &str, ratio: Option<f64>, cell: fn(f64) -> Value| {
        if name == analysis.baseline && of(name).is_some() {
            Cell::from("1")
        } else {
            ratio.map(|ratio| Cell::from(cell(ratio))).into()
        }
    };
    let cases = analysis.overall.iter().map(|one| one.cases).max();
    let cases = count(cases.unwrap_or_default(), "case").replace(' ', "\n");
    table.add(format!("all\n{cases}"), |name| {
        over_baseline(name, of(name).map(|one| one.ratio), Value::Ratio)
    });
    table.add("next\nrun", |name| {
        let one = of(name)?;
        Some(half_width(one, one.run_to_run?))
    });
    if analysis.held.is_empty() {
        table.add("mem", |name| {
            let memory = of(name).and_then(|one| one.memory);
            over_baseline(name, memory.map(|memory| memory.ratio), Value::Short)
        });
    } else {
        let held = |name| analysis.held_by(name);
        table.add("peak\n/live", |name| Some(Value::Short(held(name)?.peak?)));
        table.add("pool", |name| Some(Value::Short(held(name)?.worst()?)));
    }
}

/// How far an interval reaches from the ratio.
fn half_width(one: &Overall, (low, high): (f64, f64)) -> String {
    let half = (high / one.ratio - 1.0).max(1.0 - low / one.ratio);
    format!("±{:.0}%", (100.0 * half).ceil())
}

/// The words of the workload's name in lines, and its threads.
fn heading(case: &Table) -> String {
    let name = case.workload.trim_start_matches("trace:");
    let mut lines = Vec::new();
    for word in name.split('-') {
        let letters: Vec<char> = word.chars().collect();
        if letters.len() <= MOST_WORD {
            lines.push(word.to_owned());
            continue;
        }
        let mut pieces: Vec<String> = letters
            .chunks(MOST_WORD - 1)
            .map(|piece| piece.iter().collect())
            .collect();
        let last = pieces.len() - 1;
        pieces[..last].iter_mut().for_each(|piece| piece.push('-'));
        lines.extend(pieces);
    }
    lines.truncate(MOST_HEADING_LINES);
    let mark = if case.oversubscribed { "!" } else { "" };
    lines.push(format!("{} thr{mark}", case.threads));
    lines.join("\n")
}

/// An allocator in a case, by a metric over the baseline's.
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
        (Some(failed), _) => without("fail", Mark::Failed, failed.summary()),
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
    let differs = ratio
        .interval
        .is_some_and(|(low, high)| low > 1.0 || high < 1.0);
    let (mark, sign) = match verdict {
        Some(Verdict::AaCopyDiffers) => (Mark::Withheld, "?"),
        Some(Verdict::Same) => (Mark::Same, ""),
        Some(Verdict::Faster | Verdict::Slower | Verdict::Small) => (way(ratio.ratio), ""),
        // A row that is not judged has its interval.
        None if differs => (way(ratio.ratio), ""),
        Some(Verdict::TooFew { .. }) => (Mark::Unclear, "…"),
        Some(Verdict::Unclear { .. }) | None => (Mark::Unclear, "~"),
    };
    let word = match (verdict, row.cell(by)) {
        (Some(verdict), Some(cell)) => verdict.word_of(cell.metric),
        _ => "",
    };
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

/// The meaning of the marks that are there.
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
        (
            "?",
            format!("? a copy of {base} differs from it there, so nothing is claimed"),
        ),
    ];
    all.into_iter()
        .filter(move |(sign, _)| there.contains(sign))
        .map(|(_, words)| words)
}

/// The meaning of the columns that are there.
fn legend(analysis: &Analysis) -> Vec<String> {
    let base = &analysis.baseline;
    let mut cells = format!("Time over {base}'s, below 1 is faster");
    marks(analysis).for_each(|words| cells += &format!("; {words}"));
    let mut all =
        "all: their geometric mean; next run: how far that of this machine may be from it"
            .to_owned();
    if analysis.held.is_empty() {
        all += &format!("; mem: memory over {base}'s");
    }
    let mut lines = vec![format!("{cells}. {all}.")];
    lines.extend(analysis.held.first().map(|held| {
        format!(
            "peak/live: highest resident heap over most live bytes, mean of {}; pool: the worse of \
             {} and {}, over what can be live.",
            count(held.replays, "replay"),
            kernel_of(MemoryShape::Pool),
            kernel_of(MemoryShape::FanIn)
        )
    }));
    if analysis.cases.iter().any(|case| case.oversubscribed) {
        lines.push("!: more threads than CPUs; the scheduler is measured too.".into());
    }
    lines
}

/// What cases must not be read without, each text once.
fn cautions(analysis: &Analysis) -> Vec<String> {
    let texts = analysis
        .cases
        .iter()
        .filter_map(|case| case.caution.as_ref());
    distinct(texts)
        .into_iter()
        .map(|text| {
            let cases = analysis
                .cases
                .iter()
                .filter(|case| case.caution.as_ref() == Some(text));
            let names = distinct(cases.map(|case| case.workload.trim_start_matches("trace:")));
            format!("{}: {text}", list(names))
        })
        .collect()
}

/// Allocators that this machine cannot run, each reason once.
fn absent(analysis: &Analysis) -> Vec<String> {
    let reasons = analysis.rows().filter_map(|row| {
        let absent = row.failed.as_ref().filter(|it| it.first.is_absent())?;
        Some(format!("{}: {}", row.allocator, absent.summary()))
    });
    distinct(reasons)
}

/// What the run calls a difference between equals.
fn aa_copy(analysis: &Analysis) -> Option<String> {
    let (least, most) = analysis.copies()?;
    let base = &analysis.baseline;
    Some(format!(
        "A/A: a copy of {base} takes {least:.3} to {most:.3} of {base}'s time in these cases."
    ))
}
