//! Compares two runs: the same rows, but no shared blocks.

use super::counterpart::{counterpart, differences, library};
use super::{
    Compared, Comparison, NO_ANCHOR, NO_EARLIER, NO_NUMBERS, RunTest, Side, Test, no_times,
};
use crate::analyse::group::{CaseGroups, Group, of_blocks};
use crate::analyse::ratio::Ratio;
use crate::analyse::role::Role;
use crate::analyse::verdict::verdicts;
use crate::analyse::{counting, grid};
use crate::metric::{Metric, Process, Value};
use crate::store::RunFile;
use heapmark_stats::{Shift, shift_between, unpaired};
use std::f64::consts::SQRT_2;

/// The function that returns the compared value of a process.
type ProcessValue = fn(&Process) -> Option<f64>;

/// Compares every row of the new run with the same row of the old one.
pub fn between(old: &Side, new: &Side, by: &Metric, threshold: f64) -> Comparison {
    let [old, new] = [old, new].map(|side| (side.part(by), side.records));
    let [old, new] = [&old, &new].map(|(head, records)| Side { head, records });
    let Value::Process(value) = by.of else {
        return super::ranges::between(&old, &new, by, threshold);
    };
    let [old_tables, new_tables] = [&old, &new].map(|side| {
        let tables = grid(side.head, &counting(side.records));
        let calls = verdicts(&tables, side.head.plan.alpha());
        Vec::from_iter(tables.into_iter().zip(calls))
    });
    let anchor = anchor(old.head, new.head);
    let mut comparison = Comparison {
        differences: differences(old.head, new.head),
        anchor: anchor.map(String::from),
        ..Comparison::default()
    };
    let mut tests = Vec::new();
    for (table, calls) in &new_tables {
        let case = table.case;
        let earlier = counterpart(case, &old.head.plan.cases).map(|place| &old_tables[place]);
        // A different load during one of the runs is not a change in an allocator, however the anchor behaved.
        let before = earlier
            .as_ref()
            .map_or(0.0, |(earlier, before)| before.equals_apart(earlier, by));
        let equals_apart = before + calls.equals_apart(table, by);
        for group in table
            .groups
            .iter()
            .filter(|group| !Role::of(group.allocator, "").is_companion())
        {
            let name = group.allocator.name.as_str();
            let found = match (no_times(table, by), &earlier) {
                (Some(why), _) => Err(why),
                (None, Err(why)) => Err(why.as_str()),
                (None, Ok((earlier, _))) => Moved::new(group, [earlier, table], anchor, by, value),
            };
            let row = found.map(|moved| {
                // The anchor is not judged: it shows how far the runs themselves differ.
                tests.push((anchor != Some(name)).then_some(Test {
                    run: moved.test,
                    equals_apart,
                }));
                Compared {
                    beside_anchor: moved.beside_anchor.map(Ratio::of_shift),
                    ..Compared::new(case, name, Ratio::of_shift(moved.as_measured))
                }
            });
            comparison.add(case, name, row);
        }
    }
    comparison.add_missing(old.head, new.head);
    // If one of the runs stopped as soon as it was precise enough, that run's alpha applies.
    let alpha = old.head.plan.alpha().min(new.head.plan.alpha());
    comparison.judge(&tests, threshold, alpha);
    comparison
}

/// How far a row's values have moved.
struct Moved {
    as_measured: Shift,
    /// The shift with the anchor's value in each run as the unit; `None` for the anchor itself.
    beside_anchor: Option<Shift>,
    /// The test of `beside_anchor`, or of `as_measured` if there is no anchor.
    test: RunTest,
}

impl Moved {
    fn new(
        group: &Group,
        [old, new]: [&CaseGroups; 2],
        anchor: Option<&str>,
        by: &Metric,
        value: ProcessValue,
    ) -> Result<Moved, &'static str> {
        let name = group.allocator.name.as_str();
        let earlier = old.named(name).ok_or(NO_EARLIER)?;
        let values = [group, earlier].map(|group| logs(group, value));
        let of_runs = SQRT_2 * by.between_runs();
        let shift_between =
            |new: &[f64], old: &[f64]| Some(shift_between(new, old)?.with_scatter(of_runs));
        let as_measured = shift_between(&values[0], &values[1]).ok_or(NO_NUMBERS)?;
        let anchor = anchor.filter(|anchor| *anchor != name);
        let beside = |group: &Group, of: &CaseGroups| -> Option<Vec<f64>> {
            // Ratios as measured: if each run alone decided whether its ratios depend on turns,
            // equals would differ.
            let ratios = group.measured_ratios(of.named(anchor?)?, value);
            Some(ratios.into_values().collect())
        };
        let beside = beside(group, new).zip(beside(earlier, old));
        let beside_anchor = beside
            .as_ref()
            .and_then(|(new, old)| shift_between(new, old));
        let [now, before] = match (anchor, beside) {
            (None, _) => values,
            (Some(_), Some((new, old))) if beside_anchor.is_some() => [new, old],
            // What it moved by itself may be the machine's doing.
            _ => return Err(NO_ANCHOR),
        };
        Ok(Moved {
            as_measured,
            beside_anchor,
            test: Box::new(move |rule| {
                Some(unpaired(&now, &before, rule)?.with_scatter(of_runs, rule))
            }),
        })
    }
}

/// ln of a row's values, one for each block.
fn logs(group: &Group, value: ProcessValue) -> Vec<f64> {
    let processes = group.processes.iter();
    of_blocks(processes.filter_map(|(slot, process)| Some((*slot, value(process)?.ln()))))
}

/// The baseline of both runs, if it is the same library in both. No file is recorded for the C
/// library, so its version is compared instead.
fn anchor<'a>(old: &RunFile, new: &'a RunFile) -> Option<&'a str> {
    let name = new.plan.baseline.as_str();
    let library_in = |run: &RunFile| {
        let info = run.allocators.iter().find(|info| info.name == name)?;
        Some(library(info))
    };
    let is_same = old.plan.baseline == name && library_in(old)? == library_in(new)?;
    is_same.then_some(name)
}
