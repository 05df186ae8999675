//! Where comparisons stand while a run goes on.

use super::factor;
use super::grid::{counting, grid};
use super::group::Group;
use super::role::Role;
use crate::store::{Record, RunFile};
use heapmark_stats::{Shift, shift};

/// Where one comparison of times stands while the run goes on.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The label of the allocator's case.
    pub case: String,
    /// The allocator's name.
    pub allocator: String,
    /// Whether the allocator is the baseline's own copy, which shows noise.
    pub is_copy: bool,
    /// The allocator's log ratio to the baseline, or to itself without a factor; `None` if there is none yet.
    pub shift: Option<Shift>,
}

/// Where each comparison stands. A failed row will never have a ratio and is left out. Cheap enough to call after every
/// block.
pub fn standings(run: &RunFile, records: &[Record]) -> Vec<Standing> {
    let mut standings = Vec::new();
    let tables = grid(run, &counting(records));
    let mut add = |case: String, group: &Group, logs: &[f64], is_copy| {
        standings.push(Standing {
            case,
            allocator: group.allocator.name.clone(),
            is_copy,
            shift: shift(logs),
        });
    };
    for (place, _, under, plain) in factor::pairs(&tables) {
        if under.failed.is_none() && plain.failed.is_none() {
            let [case, before] = [place, place - 1].map(|place| tables[place].case.label());
            let case = format!("{case} over {before}");
            add(case, under, &factor::logs(under, plain), false);
        }
    }
    for table in &tables {
        let has_no_ratios = |baseline: &Group| baseline.failed.is_some();
        if table.baseline().is_none_or(has_no_ratios) || table.is_paced() {
            continue;
        }
        for role in [Role::Candidate, Role::AaCopy] {
            for group in table.of(role).filter(|group| group.failed.is_none()) {
                let logs = table.logs(group, |process| table.ranked_by(process));
                add(table.case.label(), group, &logs, role == Role::AaCopy);
            }
        }
    }
    standings
}
