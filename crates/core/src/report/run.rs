//! All tables of a run of any kind as a document, for a terminal and as Markdown.

use super::document::{Block, Mark, Note, Sheet};
use super::machine::{lines_of_prices, machine_line};
use super::render;
use super::screen::Screen;
use super::text::enclosed;
use super::{
    best_and_worst, conclusion, count, doubts, drained, footprint, hardening, latency, legend,
    limit, sheet, timed,
};
use crate::analyse::{Analysis, Conclusion, Failure};
use crate::execute::last_useful_line;
use crate::store::RunFile;

/// The verdict, all tables, the processes that did not end `ok`, and the legend.
pub fn terminal(analysis: &Analysis, screen: Screen) -> String {
    let mut blocks = vec![Block::Text(answer(analysis))];
    blocks.extend(body(analysis));
    render::terminal(&blocks, screen)
}

/// The verdict, what was run and when, everything that the terminal shows below the verdict, and the machine.
pub fn markdown(run: &RunFile, analysis: &Analysis) -> String {
    let verdict = Note::marked(conclusion::conclusion(analysis), Mark::Strong);
    let mut blocks = vec![
        Block::Text(verdict),
        Block::text(conclusion::head(run, analysis)),
    ];
    blocks.extend(body(analysis));
    let machine = run.machine.iter();
    let facts = machine.map(|(key, value)| format!("{key}: {value}"));
    blocks.push(Block::lines("Machine", Mark::None, facts));
    render::markdown(&blocks)
}

/// The tables, in their order.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    timed::sheets(analysis)
        .into_iter()
        .chain(drained::sheets(analysis))
        .chain(latency::sheets(analysis))
        .chain(count::sheets(analysis))
        .chain(footprint::sheets(analysis))
        .chain(limit::sheets(analysis))
        .collect()
}

fn body(analysis: &Analysis) -> Vec<Block> {
    let mut sheets = sheets(analysis);
    sheets.extend(hardening::sheet(analysis));
    sheets.push(sheet::overall(analysis));
    sheets.push(best_and_worst::sheet(analysis));
    let mut blocks: Vec<Block> = sheets.into_iter().map(Block::Sheet).collect();
    blocks.extend(conclusion::interference(analysis).map(Block::text));
    blocks.push(failures(analysis));
    let lines = legend::legend(analysis)
        .into_iter()
        .chain(doubts::unplanned(analysis))
        .chain(machine_line(analysis))
        .chain(lines_of_prices(analysis));
    blocks.push(Block::lines("Legend", Mark::None, lines));
    blocks
}

/// The sentences that answer what the run asked.
pub fn answer(analysis: &Analysis) -> Note {
    let mark = match analysis.conclusion {
        Conclusion::Fastest(_) => Mark::Strong,
        _ => Mark::Doubt,
    };
    Note::marked(conclusion::conclusion(analysis), mark)
}

/// The processes that did not end `ok`, if there are any.
pub fn failures(analysis: &Analysis) -> Block {
    let mut alike: Vec<Vec<&Failure>> = Vec::new();
    for failure in &analysis.failures {
        let is_like =
            |of: &Failure| of.allocator == failure.allocator && of.outcome == failure.outcome;
        match alike.iter_mut().find(|group| is_like(group[0])) {
            Some(group) => group.push(failure),
            None => alike.push(vec![failure]),
        }
    }
    let lines = alike.iter().map(|group| line(group));
    Block::lines("Not ok", Mark::Failed, lines)
}

/// An allocator's processes that ended alike, in one case or in several.
fn line(failures: &[&Failure]) -> String {
    let first = failures[0];
    let more = match failures.iter().map(|failure| failure.cells.len()).sum() {
        0 | 1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let cell = first.cells.first().map_or("", |cell| cell);
    let stderr = last_useful_line(&first.stderr).unwrap_or_default();
    let stderr = enclosed(" (stderr: ", stderr, ")");
    format!("{cell}{more}: {}{stderr}", first.outcome)
}
