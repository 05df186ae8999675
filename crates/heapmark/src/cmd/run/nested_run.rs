//! A run that another command plans, stored in a run directory like any other.

use super::{Stored, begin, measure, stop_on_signals};
use crate::cmd::usage;
use crate::execute::Guest;
use crate::observe::preflight::{Preflight, When};
use crate::observe::root::Root;
use crate::session::Selection;
use crate::store::{self, Run};
use anyhow::Result;
use std::path::PathBuf;

/// Runs the selection in a new directory; returns what is stored, and whether the run was
/// completed.
pub fn run(selection: Selection, output: Option<PathBuf>) -> Result<(Run, bool)> {
    let (guest, root) = (Guest::find()?, Root::find().map_err(usage)?);
    let head = selection.head(&guest)?;
    let (dir, store) = begin(output.as_deref(), &head)?;
    store.keep_preflight(When::Before, Preflight::look(&root, When::Before))?;
    let stored = Stored {
        store,
        head: &head,
        known: Vec::new(),
    };
    let ended = measure(guest, selection, stored, stop_on_signals(), &root, false)?;
    Ok((store::read(&dir)?, ended.whole))
}
