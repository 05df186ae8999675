//! The smallest limit on memory under which each row still ends `ok`: found by bisection, then timed
//! near it. What happens next depends only on what is stored, so a run can be resumed anywhere.

use super::calibrate::Pace;
use super::runner::Due;
use super::{Progress, Session};
use crate::plan::{Cell, Limit};
use crate::store::Purpose;
use anyhow::Result;
use heapmark_wire::limit_search::{LEAST_BYTES, LimitSearch, STEP};

/// The first limits are between the most live bytes and this many times as much. If live bytes are not known, a part of
/// what an unlimited process takes stands in for them.
const MOST: f64 = 8.0;
/// The process without a limit took at most this many times as much memory as the samples show.
const UNSEEN: f64 = 1.1;
/// If the largest of the limits is too small, it is raised at most this many times; more often if
/// the process without a limit ended before its memory was sampled.
const MOST_FURTHER: u32 = 8;
const MOST_FURTHER_UNSEEN: u32 = 24;

impl Session {
    /// Finds the smallest limit of each row, then times all rows near their smallest limits.
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
            let is_of_cell = |(case, row, _): &&(usize, &str, Limit)| {
                (*case, *row) == (cell.case, cell.allocator.as_str())
            };
            found.find(is_of_cell).map(|(.., limit)| *limit)
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

    /// The smallest limit of a row; `None` if the row failed without a limit, or no limit is enough.
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
        let Some((limits, harness_bytes)) = self.limits_around(&free) else {
            return Ok(None);
        };
        let limit = |bytes| Limit {
            bytes: Some(bytes),
            harness_bytes,
            percent: None,
        };
        let found = limits.smallest(|bytes, number| {
            let cell = self.selection.plan.search(case, row, limit(bytes), number);
            progress.begin(&cell.id);
            self.searched(&cell, pace, progress)?;
            let record = self.known.get(&cell.id);
            Ok::<_, anyhow::Error>(record.is_some_and(|record| record.outcome.is_ok()))
        })?;
        Ok(found.map(limit))
    }

    /// Returns the limits to try, and the additional bytes that each limit must have room for,
    /// given the process without a limit; `None` if that process did not end `ok`.
    fn limits_around(&self, free: &Cell) -> Option<(LimitSearch, u64)> {
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
        // Reserved memory may be far more than live memory.
        let most_bytes = taken_bytes.max(anchor_bytes as f64 * MOST);
        let limits = LimitSearch {
            anchor_bytes,
            first: step_of(most_bytes).ceil() as i32,
            most_further: match demand.most_bytes {
                0 => MOST_FURTHER_UNSEEN,
                _ => MOST_FURTHER,
            },
        };
        Some((limits, harness_bytes))
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
