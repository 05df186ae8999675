//! The verdict on each row: faster, slower, same, small, unclear. All rows of a run are one family,
//! so that a run of many rows is wrong no more often than a run of one.

use super::group::CaseGroups;
use super::role::Role;
use crate::metric::{Metric, Process, Unit};
use heapmark_stats::blocks_needed;
use heapmark_stats::{BlocksMore, Finding, Judgement, Shift, judge_family, shift};
use serde::Serialize;

/// The verdict on a row relative to the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "word", rename_all = "kebab-case")]
pub enum Verdict {
    /// Less time, by more than 1 %.
    Faster,
    /// More time, by more than 1 %.
    Slower,
    /// No more than 1 % apart: the whole 95 % interval lies within 1 %, and would do so in a run of
    /// this many rows.
    Same,
    /// A real difference, perhaps not more than 1 %.
    Small,
    /// Anything else.
    Unclear {
        /// About how many more blocks would decide; `None`: more than is reasonable.
        blocks_more: Option<u32>,
    },
    /// The A/A copy differed from the baseline: differences here may be the machine's doing.
    AaCopyDiffers,
}

impl Verdict {
    /// The word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Small => "small",
            Verdict::Unclear { .. } => "unclear",
            Verdict::AaCopyDiffers => "withheld: A/A",
        }
    }

    /// The word for tables, if it is about this metric: only times are fast or slow.
    pub fn word_of(self, metric: &Metric) -> &'static str {
        match self {
            Verdict::Faster if metric.unit != Unit::Ns => "less",
            Verdict::Slower if metric.unit != Unit::Ns => "more",
            _ => self.word(),
        }
    }

    pub(super) fn of(judgement: &Judgement) -> Verdict {
        match judgement.finding {
            Finding::Lower => Verdict::Faster,
            Finding::Higher => Verdict::Slower,
            Finding::Same => Verdict::Same,
            Finding::Small => Verdict::Small,
            Finding::Unclear => Verdict::Unclear {
                blocks_more: blocks_more(judgement),
            },
        }
    }
}

/// About how many more blocks would decide; `None`: more than is reasonable, or none.
pub(super) fn blocks_more(judgement: &Judgement) -> Option<u32> {
    match judgement.blocks_more? {
        BlocksMore::About(blocks) => Some(blocks),
        BlocksMore::TooMany => None,
    }
}

/// What rows are judged by, with the place of its verdict: wall time, CPU time, growth of the
/// resident set, and user time.
const MEASURES: [fn(&Process) -> Option<f64>; 4] = [
    |process| Some(process.ns_per_op),
    |process| process.cpu_ns_per_op,
    |process| process.grown_bytes,
    |process| process.user_ns_per_op,
];
const WALL: usize = 0;
const MEMORY: usize = 2;

/// The verdicts of one table.
pub(super) struct Verdicts {
    /// Of each row by each measure, where `Faster` is less and `Slower` is more; `None` for rows
    /// that are not judged, or have no values to judge by.
    pub rows: Vec<[Option<Verdict>; MEASURES.len()]>,
    /// The A/A copy over the baseline; `None` if there is none.
    pub aa_copy: Option<Shift>,
    /// Whether the A/A copy came out different.
    pub aa_copy_differs: bool,
}

impl Verdicts {
    /// The verdict that withholds all claims about time, if there is one.
    pub fn withheld(&self) -> Option<Verdict> {
        self.aa_copy_differs.then_some(Verdict::AaCopyDiffers)
    }
}

/// Judges all tables of a run together, each p compared with `alpha`.
pub(super) fn verdicts(tables: &[CaseGroups], alpha: f64) -> Vec<Verdicts> {
    let mut all = Vec::new();
    for table in tables {
        let copy = table
            .of(Role::AaCopy)
            .next()
            .filter(|_| !table.case.is_paced());
        all.push(Verdicts {
            rows: vec![[None; MEASURES.len()]; table.groups.len()],
            aa_copy: copy.and_then(|copy| shift(&table.logs(copy, MEASURES[WALL]))),
            aa_copy_differs: false,
        });
    }
    for (table, _, call) in family(tables, Role::AaCopy, WALL, alpha) {
        let differs = matches!(call, Verdict::Faster | Verdict::Slower | Verdict::Small);
        all[table].aa_copy_differs |= differs && !tables[table].case.is_paced();
    }
    // Programs are a family of their own: they rank among themselves, not among allocators.
    for role in [Role::Candidate, Role::Program] {
        for measure in 0..MEASURES.len() {
            for (table, row, call) in family(tables, role, measure, alpha) {
                let calls = &mut all[table];
                calls.rows[row][measure] = match measure {
                    // A busy machine does not change how much memory a process takes.
                    MEMORY => Some(call),
                    _ if tables[table].case.is_paced() => None,
                    _ => calls.withheld().or(Some(call)),
                };
            }
        }
    }
    all
}

/// The verdicts by one measure on all rows of a role, with the places of table and row.
fn family(
    tables: &[CaseGroups],
    role: Role,
    measure: usize,
    alpha: f64,
) -> Vec<(usize, usize, Verdict)> {
    let (mut places, mut logs) = (Vec::new(), Vec::new());
    for (place, table) in tables.iter().enumerate() {
        for (row, group) in table.groups.iter().enumerate() {
            if group.role == role {
                places.push((place, row));
                logs.push(table.logs(group, MEASURES[measure]));
            }
        }
    }
    let judged = judge_family(&logs, blocks_needed(logs.len(), alpha) as usize, alpha);
    let calls = places.into_iter().zip(judged);
    calls
        .filter_map(|((table, row), judgement)| Some((table, row, Verdict::of(&judgement?))))
        .collect()
}
