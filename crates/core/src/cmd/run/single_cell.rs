//! `heapmark run --cell`: runs one process of a plan by itself.

use super::progress::TerminalProgress;
use crate::cmd::{Exit, print};
use crate::execute::Guest;
use crate::report::plain;
use crate::session::{Interrupted, Processes, Selection, Session};
use crate::store::Record;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs one cell and prints the output of the guest; stores nothing.
pub fn run(
    guest: Guest,
    selection: Selection,
    known: Vec<Record>,
    id: &str,
    stop: Arc<AtomicBool>,
) -> Result<Exit> {
    let plan = &selection.plan;
    let blocks = (0..plan.most_blocks())
        .flat_map(|block| plan.block(block))
        .flatten();
    let beside = plan.beside().into_iter();
    let checks = plan.checks().into_iter().chain(beside);
    let Some(cell) = checks.chain(blocks).find(|cell| *cell.id == *id) else {
        let cells = plan.cells();
        let example = cells.first().map_or("", |cell| &cell.id);
        refuse!(
            "the plan has no cell `{id}`: --dry-run --cells prints them, the first is {example}"
        );
    };
    let selection = Arc::new(selection);
    let processes = Processes::new(guest, selection.clone(), stop);
    let mut session = Session::new(selection, processes, None, known);
    let attempt = match session.single(&cell, &TerminalProgress::new(0)) {
        Err(error) if error.is::<Interrupted>() => return Ok(Exit::Interrupted),
        attempt => attempt?,
    };
    let mut text = attempt.report;
    if !attempt.stderr.is_empty() {
        text += &format!("stderr: {}\n", attempt.stderr);
    }
    text += &format!("outcome: {}\n", attempt.outcome);
    let lines = text.lines().map(|line| plain(line) + "\n");
    print(lines.collect::<String>())?;
    Ok(Exit::NotAllOk.when(!attempt.outcome.is_ok()))
}
