//! What a run prints first: where it was measured, its answer, and one table. All of its tables are in `run`.

use super::document::{Block, Mark, Note, Notes};
use super::machine::machine_name;
use super::matrix::matrix;
use super::real_programs::programs;
use super::run::{self, failures};
use super::text::{count, join, list};
use super::units::percent;
use super::{conclusion, memory_answer, timed, user_command};
use crate::analyse::{Analysis, Conclusion, distinct};
use crate::store::RunFile;

/// The first screen of a run of any kind.
pub fn first_screen(run: &RunFile, analysis: &Analysis) -> Vec<Block> {
    let tables = matrix(analysis)
        .or_else(|| memory_answer::matrix(analysis))
        .map(|sheet| vec![Block::Sheet(sheet)])
        .or_else(|| programs(analysis))
        .or_else(|| tried(analysis))
        .unwrap_or_else(|| all(analysis));
    let mut blocks = vec![answer(run, analysis)];
    blocks.extend(tables);
    blocks.push(failures(analysis));
    blocks
}

/// What was measured where, and the sentences that answer.
fn answer(run: &RunFile, analysis: &Analysis) -> Block {
    let mark = match analysis.conclusion {
        Conclusion::Fastest(_) => Mark::Strong,
        _ => Mark::Doubt,
    };
    let head = format!(
        "heapmark {}, {}, {} on {}",
        run.heapmark,
        match user_command::of(analysis) {
            Some(_) => "try".to_owned(),
            None => format!("suite {}", run.suite),
        },
        count(analysis.planned_blocks, "block"),
        machine_name(&run.machine)
    );
    Block::Notes(Notes {
        heading: Note::marked(head, Mark::None),
        lines: vec![Note::marked(conclusion::conclusion(analysis), mark)],
    })
}

/// The table of a user's command.
fn tried(analysis: &Analysis) -> Option<Vec<Block>> {
    let (case, _) = user_command::of(analysis)?;
    let mut sheet = timed::in_brief(case, analysis);
    sheet.remark(doubts(analysis));
    Some(vec![Block::Sheet(sheet)])
}

/// The tables of all cases: there are few.
fn all(analysis: &Analysis) -> Vec<Block> {
    let sheets = run::sheets(analysis).into_iter().map(Block::Sheet);
    sheets.chain([Block::notes(doubts(analysis))]).collect()
}

/// How far to trust the numbers, in a line, if anything is known of that.
pub fn doubts(analysis: &Analysis) -> Option<String> {
    let base = &analysis.baseline;
    // Below the table of a single case stands the same with its interval.
    let copies = analysis.copies().filter(|_| analysis.cases.len() > 1);
    let copies =
        copies.map(|(least, most)| format!("a copy of {base} took {least:.2} to {most:.2}"));
    let reaches = analysis.overall.iter().filter_map(|one| {
        let (low, high) = one.run_to_run?;
        Some((high / one.ratio - 1.0).max(1.0 - low / one.ratio))
    });
    let farthest = reaches.max_by(f64::total_cmp);
    let again = farthest.map(|far| format!("another run may differ by {}", percent(far)));
    let seen = &analysis.interference;
    let disturbed = (seen.disturbed > 0).then(|| {
        let parts = count(seen.parts, "part");
        format!(
            "{} of {parts} disturbed by {}",
            seen.disturbed,
            list(seen.causes.keys())
        )
    });
    let warnings = analysis.machine_warnings.as_ref();
    let warnings = warnings.filter(|names| !names.is_empty());
    let machine = warnings.map(|names| format!("doctor warns: {}", join(names, ", ")));
    let checked = analysis.checked.iter();
    let failing = list(
        checked
            .filter(|(_, it)| !it.findings.is_empty())
            .map(|(name, _)| name),
    );
    let failing = (!failing.is_empty()).then(|| format!("checks that failed: {failing}"));
    let told = [copies, again, disturbed, machine, failing];
    let rule = analysis.huge_pages.remark().map(str::to_owned);
    let rest = [conclusion::unplanned(analysis), rule];
    let rest = rest.into_iter().flatten().chain(absent(analysis));
    let told: Vec<String> = told.into_iter().flatten().chain(rest).collect();
    (!told.is_empty()).then(|| format!("Trust: {}.", join(told, "; ").trim_end_matches('.')))
}

/// Allocators that this machine cannot run, each reason once.
fn absent(analysis: &Analysis) -> Vec<String> {
    let reasons = analysis.rows().filter_map(|row| {
        let absent = row.failed.as_ref().filter(|it| it.first.is_absent())?;
        Some(format!("{}: {}", row.allocator, absent.summary()))
    });
    distinct(reasons)
}
