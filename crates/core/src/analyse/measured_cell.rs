//! The metrics of a row with the values behind them, and their ratios to the baseline's: values of
//! one slot are paired.

use super::group::{CaseGroups, Group, PairKey};
use super::ratio::Ratio;
use super::role::Role;
use super::slices::{Duet, Length, is_of_time, of_endless_turns};
use super::table_cell::{THRESHOLD, TableCell, by_range};
use crate::execute::Measurement;
use crate::metric::{self, Judged, Metric, Sample, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A metric of a row that is not yet compared, and its values in the order of their slots: a table
/// of a million samples has millions of values, too many for maps.
pub struct MeasuredCell {
    cell: TableCell,
    by_slot: Vec<(PairKey, f64)>,
    /// The turns behind each value in `by_slot`; empty unless processes took turns and the metric depends on them.
    turns: Vec<Option<Length>>,
}

impl MeasuredCell {
    /// The cell of a metric, from some processes in the order of their slots or from the check of
    /// their row; `None` without a value.
    pub fn new(
        metric: &'static Metric,
        samples: &[(PairKey, Sample)],
        check: Option<&Measurement>,
    ) -> Option<MeasuredCell> {
        let of_check = |of: fn(&BTreeMap<String, f64>) -> Option<f64>| {
            Some((PairKey::default(), of(&check?.figures)?))
        };
        let by_slot: Vec<(PairKey, f64)> = match metric.of {
            Value::Check(of) => of_check(of).into_iter().collect(),
            _ => samples
                .iter()
                .filter_map(|(slot, sample)| Some((*slot, metric.value(sample)?)))
                .collect(),
        };
        let values: Vec<f64> = by_slot.iter().map(|(_, value)| *value).collect();
        let cell = TableCell::new(metric, &values)?;
        let depends = matches!(metric.of, Value::Process(_)) && is_of_time(metric);
        let took_turns = |(_, sample): &(_, Sample)| sample.measurement.turns.is_some();
        let turns = match depends && samples.iter().any(took_turns) {
            true => samples
                .iter()
                .filter(|(_, sample)| metric.value(sample).is_some())
                .map(|(_, sample)| sample.measurement.turns.as_ref().map(Length::of))
                .collect(),
            false => Vec::new(),
        };
        Some(MeasuredCell {
            cell,
            by_slot,
            turns,
        })
    }

    /// All cells of a row of timed processes.
    fn of_group(group: &Group) -> Vec<MeasuredCell> {
        let samples = group.samples();
        metric::of_case(group.case)
            .into_iter()
            .filter_map(|metric| MeasuredCell::new(metric, &samples, group.check))
            .collect()
    }

    /// The cell with its ratio to the baseline's, and with the verdict on that ratio if ranges decide.
    pub fn beside(&self, role: Role, base: &[MeasuredCell], exact: bool) -> TableCell {
        let mut cell = self.cell.clone();
        let other = base
            .iter()
            .find(|other| other.cell.metric.key == cell.metric.key);
        let Some(other) = other.filter(|_| role != Role::Floor) else {
            return cell;
        };
        if role == Role::Baseline {
            let blocks: BTreeSet<u32> = self.by_slot.iter().map(|((block, _), _)| *block).collect();
            cell.ratio = Some(Ratio::baseline(blocks.len()));
            return cell;
        }
        let duet = |(place, (slot, ours)): (usize, &(PairKey, f64))| {
            let of_base = other.by_slot.binary_search_by_key(slot, |(slot, _)| *slot);
            let theirs = other.by_slot[of_base.ok()?].1;
            // Two zeros have no quotient, but are equal.
            let log = match *ours == theirs {
                true => 0.0,
                false => (ours / theirs).ln(),
            };
            let turn = self.turns.get(place).copied().flatten();
            Some(Duet { log, turn })
        };
        let duets: Vec<Duet> = self.by_slot.iter().enumerate().filter_map(duet).collect();
        // The ratio is computed from the same values as the verdict.
        let logs = of_endless_turns(&duets);
        // A pair with one zero has no ratio, and leaving it out would change the result.
        let is_finite = logs.iter().all(|log| log.is_finite());
        cell.ratio = Ratio::from_logs(&logs).filter(|_| is_finite);
        let judged = cell.metric.judged == Judged::ByRange;
        cell.verdict = judged.then(|| by_range(&cell, &other.cell, THRESHOLD, exact));
        cell
    }
}

/// What the rows of a case are compared with.
pub struct Beside<'a> {
    pub baseline: Option<&'a Group<'a>>,
    pub floor: Option<&'a Group<'a>>,
    base: Vec<MeasuredCell>,
    /// Whether metrics that are only described have ratios, too. The ratios of a million samples
    /// take seconds.
    all: bool,
}

impl<'a> Beside<'a> {
    pub fn new(table: &'a CaseGroups<'a>, all: bool) -> Beside<'a> {
        let baseline = table.baseline();
        Beside {
            baseline,
            floor: table.fastest(Role::Floor),
            base: baseline.map(MeasuredCell::of_group).unwrap_or_default(),
            all,
        }
    }

    /// The cells of a row.
    pub fn cells(&self, group: &Group) -> Vec<TableCell> {
        MeasuredCell::of_group(group)
            .iter()
            .map(|measured| {
                if self.all || measured.cell.metric.judged != Judged::No {
                    measured.beside(group.role, &self.base, false)
                } else {
                    measured.cell.clone()
                }
            })
            .collect()
    }
}
