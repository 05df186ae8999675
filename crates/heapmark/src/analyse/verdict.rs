//! The verdict on each row: faster, slower, same, small, unclear. All rows of a run are one family,
//! so that a run of many rows is wrong no more often than a run of one.

use super::group::Group;
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
    ShadowDiffers,
    /// The harness takes more than half of the fastest allocator's time: the order may be the
    /// harness's.
    FloorHides,
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
            Verdict::ShadowDiffers => "withheld: A/A",
            Verdict::FloorHides => "withheld: floor",
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
                blocks_more: match judgement.blocks_more {
                    Some(BlocksMore::About(blocks)) => Some(blocks),
                    Some(BlocksMore::TooMany) | None => None,
                },
            },
        }
    }
}

/// The verdicts of one table, row by row; `None` for rows that are not judged, or have no values to
/// judge by.
pub(super) struct Verdicts {
    /// By wall time.
    pub wall: Vec<Option<Verdict>>,
    /// By CPU time.
    pub cpu: Vec<Option<Verdict>>,
    /// By growth of the resident set: `Faster` is less, `Slower` is more.
    pub memory: Vec<Option<Verdict>>,
    /// The A/A copy over the baseline; `None` if there is none.
    pub aa_copy: Option<Shift>,
    /// Whether the A/A copy came out different.
    pub aa_copy_differs: bool,
    /// Whether the harness takes more than half of the fastest allocator's time.
    pub floor_hides: bool,
}

impl Verdicts {
    /// The verdict that withholds all claims about time, if there is one.
    pub fn withheld(&self) -> Option<Verdict> {
        if self.aa_copy_differs {
            Some(Verdict::ShadowDiffers)
        } else {
            self.floor_hides.then_some(Verdict::FloorHides)
        }
    }
}

/// A table before its rows are written: its groups, and their roles.
pub(super) struct JudgedTable<'a, 'g> {
    pub groups: &'a [Group<'g>],
    pub roles: Vec<Role>,
    /// Whether its times are the recorded ones: then they are not judged.
    pub paced: bool,
}

impl<'g> JudgedTable<'_, 'g> {
    pub fn baseline(&self) -> Option<&Group<'g>> {
        self.of(Role::Baseline).next()
    }

    pub fn of(&self, role: Role) -> impl Iterator<Item = &Group<'g>> {
        self.groups
            .iter()
            .zip(&self.roles)
            .filter(move |(_, own)| **own == role)
            .map(|(group, _)| group)
    }

    /// The rows that a verdict may cover.
    fn allocators(&self) -> impl Iterator<Item = &Group<'g>> {
        self.of(Role::Baseline).chain(self.of(Role::Candidate))
    }

    pub fn logs(&self, group: &Group, value: fn(&Process) -> Option<f64>) -> Vec<f64> {
        self.baseline()
            .map(|baseline| group.log_ratios(baseline, value).into_values().collect())
            .unwrap_or_default()
    }

    /// Whether the harness takes more than half of the fastest allocator's time.
    pub fn floor_hides(&self) -> bool {
        let least = |groups: &mut dyn Iterator<Item = &Group<'g>>| {
            groups
                .filter_map(Group::median_ns_per_op)
                .min_by(f64::total_cmp)
        };
        let (floor, fastest) = (
            least(&mut self.of(Role::Floor)),
            least(&mut self.allocators()),
        );
        !self.paced
            && floor
                .zip(fastest)
                .is_some_and(|(floor, fastest)| floor > fastest / 2.0)
    }
}

/// Judges all tables of a run together, each p compared with `alpha`.
pub(super) fn verdicts(tables: &[JudgedTable], alpha: f64) -> Vec<Verdicts> {
    let wall = |process: &Process| Some(process.ns_per_op);
    let cpu = |process: &Process| process.cpu_ns_per_op;
    let family = |role, value: fn(&Process) -> Option<f64>| family(tables, role, value, alpha);
    let aa_copies = family(Role::AaCopy, wall);
    let mut all: Vec<Verdicts> = tables
        .iter()
        .zip(&aa_copies)
        .map(|(table, aa_copy)| {
            let copy = table.of(Role::AaCopy).next();
            Verdicts {
                wall: vec![None; table.groups.len()],
                cpu: vec![None; table.groups.len()],
                memory: vec![None; table.groups.len()],
                aa_copy: copy
                    .filter(|_| !table.paced)
                    .and_then(|copy| shift(&table.logs(copy, wall))),
                aa_copy_differs: !table.paced
                    && aa_copy.iter().flatten().any(|call| {
                        matches!(call, Verdict::Faster | Verdict::Slower | Verdict::Small)
                    }),
                floor_hides: table.floor_hides(),
            }
        })
        .collect();
    // Programs are a family of their own: they rank among themselves, not among allocators.
    for role in [Role::Candidate, Role::Program] {
        let (wall, cpu) = (family(role, wall), family(role, cpu));
        let memory = family(role, |process| process.grown_bytes);
        for ((((calls, table), wall), cpu), memory) in
            all.iter_mut().zip(tables).zip(wall).zip(cpu).zip(memory)
        {
            let withheld = calls.withheld();
            let timed = |calls: Vec<Option<Verdict>>| {
                if table.paced {
                    vec![None; calls.len()]
                } else {
                    calls
                }
            };
            // Neither a busy machine nor the harness's time changes how much memory a process
            // takes.
            let measures = [
                (&mut calls.wall, timed(wall), withheld),
                (&mut calls.cpu, timed(cpu), withheld),
                (&mut calls.memory, memory, None),
            ];
            for (own, new, withheld) in measures {
                for (own, new) in own.iter_mut().zip(new).filter(|(_, new)| new.is_some()) {
                    *own = withheld.or(new);
                }
            }
        }
    }
    all
}

/// The verdicts of all rows of a role, table by table.
fn family(
    tables: &[JudgedTable],
    role: Role,
    value: fn(&Process) -> Option<f64>,
    alpha: f64,
) -> Vec<Vec<Option<Verdict>>> {
    let members = || {
        tables.iter().flat_map(|table| {
            let own = table.groups.iter().zip(&table.roles);
            own.filter(move |(_, own)| **own == role)
                .map(move |(group, _)| table.logs(group, value))
        })
    };
    let logs: Vec<Vec<f64>> = members().collect();
    let mut judged =
        judge_family(&logs, blocks_needed(logs.len(), alpha) as usize, alpha).into_iter();
    let mut call = |own: &Role| {
        (*own == role)
            .then(|| judged.next().flatten().as_ref().map(Verdict::of))
            .flatten()
    };
    tables
        .iter()
        .map(|table| table.roles.iter().map(&mut call).collect())
        .collect()
}
