//! `heapmark run --cell`: one process of a plan by itself.

use super::progress::Progress;
use super::select::Selection;
use super::session::{Interrupted, Session};
use crate::cmd::{Exit, print, usage};
use crate::execute::Guest;
use crate::report::plain;
use crate::store::Record;
use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs one cell, prints the output of the guest, stores nothing.
pub(super) fn run(
    guest: Guest,
    selection: Selection,
    known: Vec<Record>,
    id: &str,
    stop: Arc<AtomicBool>,
) -> Result<Exit> {
    let checks = selection.plan.checks();
    let check = checks.iter().any(|cell| *cell.id == *id);
    let blocks = (0..selection.plan.most_blocks()).flat_map(|block| selection.plan.block(block)).flatten();
    let Some(cell) = &checks.iter().cloned().chain(blocks).find(|cell| *cell.id == *id) else {
        let cells = selection.plan.cells();
        let example = cells.first().map_or("", |cell| &cell.id);
        return Err(usage(anyhow!(
            "the plan has no cell `{id}`: --dry-run --cells prints them, the first is {example}"
        )));
    };
    let mut session = Session::new(guest, selection, None, known, stop);
    let pace = match session.pace(cell.case, &Progress::new(0)) {
        Err(error) if error.is::<Interrupted>() => return Ok(Exit::Interrupted),
        pace => pace?,
    };
    let (job, timeout) = if check {
        (session.checked(cell, pace.checked)?, session.check_timeout(cell, &pace))
    } else {
        (session.measured(cell, pace.iterations)?.1, pace.timeout)
    };
    let Some(attempt) = session.start(cell, &job, timeout, None)? else { return Ok(Exit::Interrupted) };
    let stderr = if attempt.stderr.is_empty() { String::new() } else { format!("stderr: {}\n", attempt.stderr) };
    let said = format!("{}{stderr}outcome: {}\n", attempt.report, attempt.outcome);
    print(&said.lines().map(|line| plain(line) + "\n").collect::<String>())?;
    Ok(if attempt.outcome.is_ok() { Exit::Done } else { Exit::NotAllOk })
}
