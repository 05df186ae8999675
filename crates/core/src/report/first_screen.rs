//! What a run prints first: where it was measured, its answer, and one table. The module `run` makes all tables of a run.

use super::document::{Block, Mark, Note, Notes, Sheet};
use super::doubts::doubts;
use super::machine::machine_name;
use super::matrix::matrix;
use super::real_programs::programs;
use super::run::{self, failures};
use super::text::count;
use super::{drained, memory_answer, timed, user_command};
use crate::analyse::Analysis;
use crate::store::RunFile;

/// The first screen of a run of any kind.
pub fn first_screen(run: &RunFile, analysis: &Analysis) -> Vec<Block> {
    let tables = matrix(analysis)
        .or_else(|| memory_answer::matrix(analysis))
        .map(|sheet| vec![Block::Sheet(sheet)])
        .or_else(|| programs(analysis))
        .or_else(|| tried(analysis))
        .unwrap_or_else(|| all(analysis));
    let mut blocks = vec![headed_answer(run, analysis)];
    blocks.extend(tables);
    blocks.push(failures(analysis));
    blocks
}

/// What was measured and where, and the run's answer.
fn headed_answer(run: &RunFile, analysis: &Analysis) -> Block {
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
        lines: vec![run::answer(analysis)],
    })
}

/// The tables of a user's command, which may have an aged heap, too.
fn tried(analysis: &Analysis) -> Option<Vec<Block>> {
    user_command::of(analysis)?;
    let cases = analysis.cases.iter();
    let both = |case| {
        let table = timed::in_brief(case, analysis);
        [table].into_iter().chain(user_command::crossed(case))
    };
    let mut sheets: Vec<Sheet> = cases.flat_map(both).collect();
    sheets.extend(drained::sheets(analysis));
    sheets.last_mut()?.remark(doubts(analysis));
    Some(sheets.into_iter().map(Block::Sheet).collect())
}

/// The tables of all cases, for runs with only a few.
fn all(analysis: &Analysis) -> Vec<Block> {
    let sheets = run::sheets(analysis).into_iter().map(Block::Sheet);
    sheets.chain([Block::notes(doubts(analysis))]).collect()
}
