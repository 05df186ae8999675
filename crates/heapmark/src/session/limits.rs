//! The smallest limit on memory under which each row still ends `ok`: found by bisection, then timed
//! near it. What happens next depends only on what is stored, so a run can be resumed anywhere.

use super::calibrate::Pace;
use super::runner::Due;
use super::{Progress, Session};
use crate::plan::limit::{STEP, does};
use crate::plan::{Cell, Limit};
use crate::store::Purpose;
use anyhow::Result;

const PAGE_BYTES: u64 = 4096;
/// The first limits are between the most live bytes and so many times as much. If live bytes are not
/// known, a part of what an unlimited process takes stands for them.
const MOST: f64 = 8.0;
/// The process without a limit took at most this many times what looks at it have seen.
const UNSEEN: f64 = 1.1;
/// If the largest of the limits is too small, or the smallest still does, further ones are tried at
/// this distance, and at most so many.
const FURTHER: i32 = 70;
const MOST_FURTHER: u32 = 8;
/// No process runs in less.
const LEAST_BYTES: u64 = 64 << 10;

/// The limits that can be tried: `anchor_bytes` times powers of [`STEP`], in whole pages.
#[derive(Clone, Copy)]
struct Grid {
    anchor_bytes: u64,
    harness_bytes: u64,
    /// The first limit that is tried.
    last: i32,
}

impl Grid {
    fn limit(&self, step: i32) -> Limit {
        let bytes = (self.anchor_bytes as f64 * STEP.powi(step)) as u64;
        Limit {
            bytes: Some(bytes.next_multiple_of(PAGE_BYTES)),
            harness_bytes: self.harness_bytes,
            percent: None,
        }
    }
}

/// The first step of a row of them that survives, if all after it do: between 0 and `last`, or
/// beyond if it must be. `None` if there is none. `has_more` says whether a lower step is a limit.
fn first_survivor(
    last: i32,
    has_more: impl Fn(i32) -> bool,
    mut survives: impl FnMut(i32) -> Result<bool>,
) -> Result<Option<i32>> {
    let mut dead = -1;
    let mut alive = last;
    let mut dead_is_known = false;
    let mut further = 0;
    while !survives(alive)? {
        if further == MOST_FURTHER {
            return Ok(None);
        }
        further += 1;
        (dead, dead_is_known) = (alive, true);
        alive += FURTHER;
    }
    loop {
        while alive - dead > 1 {
            let middle = dead.midpoint(alive);
            if survives(middle)? {
                alive = middle;
            } else {
                (dead, dead_is_known) = (middle, true);
            }
        }
        if dead_is_known || !has_more(dead) {
            return Ok(Some(alive));
        }
        dead -= FURTHER;
    }
}

impl Session {
    /// Finds the smallest limit of each row, then times all rows near theirs.
    pub(super) fn limits(&mut self, paces: &[Pace], progress: &mut dyn Progress) -> Result<()> {
        let plan = &self.selection.clone().plan;
        let mut found = Vec::new();
        for (case, planned) in plan.cases.iter().enumerate() {
            for row in plan.rows_of(planned) {
                let smallest = self.smallest(case, row, &paces[case], progress)?;
                found.extend(smallest.map(|limit| (case, row, limit)));
            }
        }
        let smallest = |cell: &Cell| {
            let mut found = found.iter();
            let own = |(case, row, _): &&(usize, &str, Limit)| {
                (*case, *row) == (cell.case, cell.allocator.as_str())
            };
            found.find(own).map(|(.., limit)| *limit)
        };
        for block in 0..plan.blocks {
            for part in plan.block(block) {
                let all = plan.under_limits(&part, smallest);
                progress.more(all.len() - part.len());
                self.part(&all, paces, progress)?;
            }
        }
        Ok(())
    }

    /// The smallest limit of a row; `None` if it has failed without one, or has none.
    fn smallest(
        &mut self,
        case: usize,
        row: &str,
        pace: &Pace,
        progress: &mut dyn Progress,
    ) -> Result<Option<Limit>> {
        let free = self.selection.plan.search(case, row, Limit::default(), 0);
        if self.failures.are_enough(self.case(&free), &free) {
            return Ok(None);
        }
        progress.begin(&free.id);
        self.searched(&free, pace, progress)?;
        let Some(grid) = self.grid(&free) else {
            return Ok(None);
        };
        let has_more = |step| {
            let bytes = |step| grid.limit(step).bytes;
            bytes(step) >= Some(LEAST_BYTES) && bytes(step) < bytes(step + 1)
        };
        let found = first_survivor(grid.last, has_more, |step| {
            self.survives(case, row, grid.limit(step), pace, progress)
        })?;
        Ok(found.map(|step| grid.limit(step)))
    }

    /// Where to look, given the process without a limit; `None` if it did not end `ok`, or ended
    /// before it was seen.
    fn grid(&self, free: &Cell) -> Option<Grid> {
        let record = self.known.get(&free.id)?;
        let demand = record.demand.as_ref()?;
        let live_bytes = record.measurement.as_ref()?.requested_peak_bytes;
        let harness_bytes = demand.harness_bytes;
        let taken_bytes = demand.most_bytes.saturating_sub(harness_bytes) as f64 * UNSEEN;
        let is_known = live_bytes >= LEAST_BYTES;
        let anchor_bytes = if is_known {
            live_bytes
        } else {
            ((taken_bytes / MOST) as u64).max(LEAST_BYTES)
        };
        let step_of = |bytes: f64| (bytes / anchor_bytes as f64).max(1.0).ln() / STEP.ln();
        // What lies reserved may be far more than what is live.
        let most_bytes = taken_bytes.max(anchor_bytes as f64 * MOST);
        Some(Grid {
            anchor_bytes,
            harness_bytes,
            last: step_of(most_bytes).ceil() as i32,
        })
    }

    /// Whether most processes of a row end `ok` under a limit.
    fn survives(
        &mut self,
        case: usize,
        row: &str,
        limit: Limit,
        pace: &Pace,
        progress: &mut dyn Progress,
    ) -> Result<bool> {
        let mut ok = 0;
        let mut failed = 0;
        loop {
            if let Some(does) = does(ok, failed) {
                return Ok(does);
            }
            let cell = self.selection.plan.search(case, row, limit, ok + failed);
            progress.begin(&cell.id);
            self.searched(&cell, pace, progress)?;
            match self.known.get(&cell.id) {
                Some(record) if record.outcome.is_ok() => ok += 1,
                _ => failed += 1,
            }
        }
    }

    /// Runs one process of a search, unless it is stored.
    fn searched(&mut self, cell: &Cell, pace: &Pace, progress: &dyn Progress) -> Result<()> {
        let due = Due {
            purpose: Purpose::Search,
            ..self.measured(cell, pace.iterations, pace.timeout)?
        };
        self.once(&due, progress)
    }
}
