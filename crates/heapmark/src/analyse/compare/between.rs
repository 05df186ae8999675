//! Compares two runs: the same rows, but no shared blocks.

use super::counterpart::{counterpart, differences, library};
use super::{Compared, Comparison, FIXED_TIME, NO_EARLIER, NO_NUMBERS, PACED, Side};
use crate::analyse::group::{CaseGroups, Group};
use crate::analyse::ratio::Ratio;
use crate::analyse::role::Role;
use crate::analyse::verdict::verdicts;
use crate::analyse::{counting, grid};
use crate::metric::{Metric, Process, Value};
use crate::store::RunFile;
use heapmark_stats::{Tested, unpaired};

/// The value of a process that is compared.
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
        for group in table
            .groups
            .iter()
            .filter(|group| !Role::of(group.allocator, "").is_companion())
        {
            let name = group.allocator.name.as_str();
            let found = match &earlier {
                _ if case.is_paced() => Err(PACED),
                _ if table.is_paced() => Err(FIXED_TIME),
                Err(why) => Err(why.as_str()),
                Ok((earlier, before)) => {
                    tested(group, [earlier, table], anchor, value, threshold.ln_1p())
                        .map(|tests| (tests, before.withheld(by)))
                }
            };
            let row = found.map(|((time, beside), withheld_before)| {
                // The anchor is not judged: it shows how far the runs themselves differ.
                tests.push(Some(beside.unwrap_or(time)).filter(|_| anchor != Some(name)));
                Compared {
                    beside_anchor: beside.map(|beside| Ratio::of_shift(beside.shift)),
                    // Another load in one run is no change of an allocator, whatever the anchor did.
                    verdict: calls.withheld(by).or(withheld_before),
                    ..Compared::new(case, name, Ratio::of_shift(time.shift))
                }
            });
            comparison.add(case, name, row);
        }
    }
    // If one of the runs stopped as soon as it was precise enough, its alpha counts.
    let alpha = old.head.plan.alpha().min(new.head.plan.alpha());
    comparison.judge(&tests, threshold, alpha);
    comparison
}

/// The test of a row as measured, and with the anchor's value in each run as the unit, unless it is
/// the anchor.
fn tested(
    group: &Group,
    [old, new]: [&CaseGroups; 2],
    anchor: Option<&str>,
    value: ProcessValue,
    threshold: f64,
) -> Result<(Tested, Option<Tested>), &'static str> {
    let name = group.allocator.name.as_str();
    let earlier = old.named(name).ok_or(NO_EARLIER)?;
    let time = unpaired(&logs(group, value), &logs(earlier, value), threshold).ok_or(NO_NUMBERS)?;
    let anchor = anchor.filter(|anchor| *anchor != name);
    let beside = |group: &Group, of: &CaseGroups| -> Option<Vec<f64>> {
        let ratios = group.log_ratios(of.named(anchor?)?, value);
        Some(ratios.into_values().collect())
    };
    let beside = beside(group, new)
        .zip(beside(earlier, old))
        .and_then(|(new, old)| unpaired(&new, &old, threshold));
    Ok((time, beside))
}

fn logs(group: &Group, value: ProcessValue) -> Vec<f64> {
    group.values(|_, process| value(process).map(f64::ln))
}

/// The baseline of both runs, if it is the same library in both. The C library has no file here, so
/// its version is compared instead.
fn anchor<'a>(old: &RunFile, new: &'a RunFile) -> Option<&'a str> {
    let name = new.plan.baseline.as_str();
    let library_in = |run: &RunFile| {
        let info = run.allocators.iter().find(|info| info.name == name)?;
        Some(library(info))
    };
    let is_same = old.plan.baseline == name && library_in(old)? == library_in(new)?;
    is_same.then_some(name)
}
