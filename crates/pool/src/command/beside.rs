//! The page that pools several runs, beside a page of the same runs.

use crate::judge::Pooling;
use crate::report::page;
use anyhow::Result;
use heapmark_core::analyse::compare::{Side, refusal};
use heapmark_core::cmd::output::{Force, Output};
use heapmark_core::metric::WALL;
use heapmark_core::report::Section;
use heapmark_core::store::{self, Run, published};
use heapmark_stats::LEAST_MACHINES;
use std::iter::zip;
use std::path::PathBuf;

/// Writes the page that pools runs beside the one that shows them side by side, if they are of enough machines to say anything
/// about the next one; returns a section that links to it.
pub fn page_beside(
    output: &Output,
    dirs: &[PathBuf],
    runs: &[Run],
    force: Force,
) -> Result<Option<Section>> {
    let Some(mut pooling) = Pooling::new(WALL) else {
        return Ok(None);
    };
    for (dir, run) in zip(dirs, runs) {
        let side = Side {
            head: &run.head,
            records: &run.records,
        };
        let name = published(&dir.display().to_string()).into_owned();
        match refusal(&side, WALL) {
            Some(why) => pooling.refuse(&name, side.head, why),
            None => pooling.add(&name, None, &side),
        }
    }
    let (pool, first) = pooling.end();
    let is_enough = pool.machines.len() >= LEAST_MACHINES && !pool.rows.is_empty();
    let Some(first) = first.filter(|_| is_enough && !output.is_stdout()) else {
        return Ok(None);
    };
    let stem = output.path().file_stem().unwrap_or_default();
    let name = format!("{}-pooled.html", stem.display());
    let sources = dirs.iter().map(|dir| store::head_of(dir));
    let beside = Output::new(&output.path().with_file_name(&name), force, sources)?;
    beside.put(page::pooled(&pool, WALL, &first))?;
    let pooled = runs.len() - pool.refused.len();
    Ok(Some(page::link(&name, pooled, runs.len())))
}
