//! The verdict on each row: faster, slower, same, small, unclear. All rows of a run are one family,
//! so that a run of many rows is wrong no more often than a run of one.

use super::group::{CaseGroups, Group};
use super::ratio::Ratio;
use super::role::Role;
use crate::execute::user_command::VALUE_COST;
use crate::metric::{self, Metric, Process, Unit, Value};
use heapmark_stats::{BlocksMore, Finding, Judgement, judge_family};
use serde::Serialize;
use std::collections::BTreeMap;

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
    /// Too few blocks for any verdict in a run of this many rows, whatever they show.
    TooFew {
        /// About how many more blocks would decide; `None` if that is more than is reasonable.
        blocks_more: Option<u32>,
    },
    /// Neither a difference nor equality is certain.
    Unclear {
        /// About how many more blocks would decide; `None` if that is more than is reasonable.
        blocks_more: Option<u32>,
    },
    /// The A/A copy differed from the baseline, and this row does not certainly differ by more: that may be the
    /// machine's doing.
    AaCopyDiffers,
}

impl Verdict {
    /// Returns the word that tables print for the verdict.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Small => "small",
            Verdict::TooFew { .. } => "too few blocks",
            Verdict::Unclear { .. } => "unclear",
            Verdict::AaCopyDiffers => "withheld: A/A",
        }
    }

    /// The word for tables, if the verdict is about this metric: only times are fast or slow.
    pub fn word_of(self, metric: &Metric) -> &'static str {
        match self {
            Verdict::Faster if metric.key == VALUE_COST => "better",
            Verdict::Slower if metric.key == VALUE_COST => "worse",
            Verdict::Faster if metric.unit != Unit::Ns => "less",
            Verdict::Slower if metric.unit != Unit::Ns => "more",
            _ => self.word(),
        }
    }

    /// The verdict that follows from a judgement.
    pub fn of(judgement: &Judgement) -> Verdict {
        match judgement.finding {
            Finding::Lower => Verdict::Faster,
            Finding::Higher => Verdict::Slower,
            Finding::Same => Verdict::Same,
            Finding::Small => Verdict::Small,
            Finding::TooFew => Verdict::TooFew {
                blocks_more: blocks_more(judgement),
            },
            Finding::Unclear => Verdict::Unclear {
                blocks_more: blocks_more(judgement),
            },
        }
    }

    /// The verdict that follows from a judgement where equals came out this far apart, as a log ratio.
    pub fn beside_equals(judgement: &Judgement, apart: f64) -> Verdict {
        Verdict::of(judgement).where_equals_are(apart, &Ratio::of_shift(judgement.shift))
    }

    /// The verdict on a ratio where equals came out this far apart, as a log ratio (0 if they did not): only a difference
    /// that is certainly larger stands.
    pub fn where_equals_are(self, apart: f64, ratio: &Ratio) -> Verdict {
        match self {
            _ if apart == 0.0 => self,
            Verdict::Faster | Verdict::Slower if ratio.is_beyond(apart) => self,
            _ => Verdict::AaCopyDiffers,
        }
    }
}

/// Returns about how many more blocks would decide; `None` if that is more than is reasonable, or
/// if none are needed.
pub(super) fn blocks_more(judgement: &Judgement) -> Option<u32> {
    match judgement.blocks_more? {
        BlocksMore::About(blocks) => Some(blocks),
        BlocksMore::TooMany => None,
    }
}

/// The verdicts on a row by the keys of metrics, where `Faster` is less and `Slower` is more; none
/// if the row is not judged, or has no values to judge by.
pub(super) type RowVerdicts = BTreeMap<&'static str, Verdict>;

/// The time per operation, by which rows are ranked.
pub(super) const TIME: fn(&Process) -> Option<f64> = |process| Some(process.ns_per_op());

/// The verdicts of one table.
pub struct Verdicts {
    /// The verdicts on each row.
    pub rows: Vec<RowVerdicts>,
    /// The A/A copy over the baseline; `None` if there is none.
    pub aa_copy: Option<Ratio>,
    /// Whether the A/A copy came out different.
    pub aa_copy_differs: bool,
}

impl Verdicts {
    /// How far apart equals came out by this metric in these groups, as a log ratio: as far as an A/A copy that differs
    /// may be from the baseline, by the time that ranks or by this metric; 0 if it does not differ. A busy machine does
    /// not change how much memory a process takes.
    pub fn equals_apart(&self, table: &CaseGroups, by: &Metric) -> f64 {
        let is_of_speed = by.unit == Unit::Ns || by.key == VALUE_COST;
        if !self.aa_copy_differs || !is_of_speed {
            return 0.0;
        }
        let copy = table.of(Role::AaCopy).next();
        let by_metric = copy.and_then(|copy| match by.of {
            Value::Process(value) => Ratio::from_logs(&table.logs_by(copy, by, value)),
            _ => None,
        });
        let ratios = [self.aa_copy, by_metric].into_iter().flatten();
        ratios.map(|ratio| ratio.farthest()).fold(0.0, f64::max)
    }
}

/// Judges all tables of a run together, each p compared with `alpha`.
pub fn verdicts(tables: &[CaseGroups], alpha: f64) -> Vec<Verdicts> {
    let mut all = Vec::new();
    for table in tables {
        let copy = table.of(Role::AaCopy).next().filter(|_| !table.is_paced());
        all.push(Verdicts {
            rows: vec![RowVerdicts::new(); table.groups.len()],
            aa_copy: copy.and_then(|copy| {
                Ratio::from_logs(&table.logs(copy, |process| table.ranked_by(process)))
            }),
            aa_copy_differs: false,
        });
    }
    let copies = family(
        tables,
        Role::AaCopy,
        |table, row| table.logs(row, |process| table.ranked_by(process)),
        alpha,
    );
    for (table, _, copy) in copies {
        all[table].aa_copy_differs |= copy.finding.is_difference() && !tables[table].is_paced();
    }
    // Programs are a family of their own: they rank among themselves, not among allocators.
    for role in [Role::Candidate, Role::Program] {
        for metric in metric::judged() {
            let Value::Process(value) = metric.of else {
                continue;
            };
            let logs = |table: &CaseGroups, row: &Group| table.logs_by(row, metric, value);
            for (table, row, judgement) in family(tables, role, logs, alpha) {
                if metric.unit == Unit::Ns && tables[table].is_paced() {
                    continue;
                }
                let calls = &mut all[table];
                let apart = calls.equals_apart(&tables[table], metric);
                let call = Verdict::beside_equals(&judgement, apart);
                calls.rows[row].insert(metric.key, call);
            }
        }
    }
    all
}

/// Returns the judgements by one kind of log ratios on all rows of a role, with the indices of table and row.
fn family(
    tables: &[CaseGroups],
    role: Role,
    logs: impl Fn(&CaseGroups, &Group) -> Vec<f64>,
    alpha: f64,
) -> Vec<(usize, usize, Judgement)> {
    let mut places = Vec::new();
    let mut all = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        for (row, group) in table.groups.iter().enumerate() {
            if group.role == role {
                places.push((place, row));
                all.push(logs(table, group));
            }
        }
    }
    let judged = judge_family(&all, alpha);
    places
        .into_iter()
        .zip(judged)
        .filter_map(|((table, row), judgement)| Some((table, row, judgement?)))
        .collect()
}
