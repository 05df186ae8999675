//! The differences between two results of `heapmark check`.

use crate::file::{CheckFile, CheckResult, CheckedAllocator, MisuseCell};
use heapmark_core::store::CheckVerdict;
use heapmark_stats::wilson;
use std::collections::BTreeSet;

/// A change less likely than this is not due to chance.
const UNLIKELY: f64 = 0.05;
/// With fewer processes, a cell of hardening does not show its worst impact.
const FEW: u32 = 4;

/// Something that ended differently in a newer result: a check, or a cell of a wrong program.
pub struct Changed<'a, T> {
    /// The allocator's name in the newer result.
    pub allocator: &'a str,
    /// The check's name.
    pub check: &'a str,
    /// The old result.
    pub old: &'a T,
    /// The new result.
    pub new: &'a T,
}

/// What two results have in common, how that differs, and what was not compared.
#[derive(Default)]
pub struct Changes<'a> {
    /// The checks that ended differently, unless chance explains it.
    pub checks: Vec<Changed<'a, CheckResult>>,
    /// The cells of hardening that ended differently or have another impact.
    pub cells: Vec<Changed<'a, MisuseCell>>,
    /// How many allocators both results have.
    pub allocators: usize,
    /// The checks that both results have of some allocator.
    pub compared: BTreeSet<&'a str>,
    /// What only the older result has, and what only the newer one has.
    pub alone: [Alone<'a>; 2],
}

/// What only one of two results has.
#[derive(Default)]
pub struct Alone<'a> {
    /// Whether the result was stopped before its end.
    pub unfinished: bool,
    /// The allocators that the other result lacks.
    pub allocators: Vec<&'a str>,
    /// The checks that the other result lacks of an allocator that both have.
    pub checks: BTreeSet<&'a str>,
}

/// Pairs the allocators that both results have; if each result has only one, pairs these two,
/// whatever their names.
fn pairs<'a>(
    old: &'a CheckFile,
    new: &'a CheckFile,
) -> impl Iterator<Item = (&'a CheckedAllocator, &'a CheckedAllocator)> {
    let is_only = old.allocators.len() == 1 && new.allocators.len() == 1;
    new.allocators.iter().filter_map(move |new| {
        let is_it = |old: &&CheckedAllocator| is_only || old.info.name == new.info.name;
        Some((old.allocators.iter().find(is_it)?, new))
    })
}

/// The names of an allocator's checks.
fn names(one: &CheckedAllocator) -> BTreeSet<&str> {
    let judged = one.results.iter().map(|result| result.check.as_str());
    let wrong = one.hardening.iter().map(|result| result.check.as_str());
    judged.chain(wrong).collect()
}

/// Compares two results.
pub fn changes<'a>(old: &'a CheckFile, new: &'a CheckFile) -> Changes<'a> {
    let mut changes = Changes::default();
    let all = |file: &'a CheckFile| -> Vec<&'a str> {
        let allocators = file.allocators.iter();
        allocators.map(|one| one.info.name.as_str()).collect()
    };
    for (alone, file) in changes.alone.iter_mut().zip([old, new]) {
        alone.unfinished = file.unfinished;
        alone.allocators = all(file);
    }
    for (old, new) in pairs(old, new) {
        let (before, after) = (names(old), names(new));
        changes.allocators += 1;
        changes.compared.extend(before.intersection(&after));
        let [of_old, of_new] = &mut changes.alone;
        of_old.checks.extend(before.difference(&after));
        of_new.checks.extend(after.difference(&before));
        of_old.allocators.retain(|name| *name != old.info.name);
        of_new.allocators.retain(|name| *name != new.info.name);
        let Changes { checks, cells, .. } = &mut changes;
        let allocator = new.info.name.as_str();
        for new in &new.results {
            let before = old
                .results
                .iter()
                .find(|earlier| earlier.check == new.check);
            checks.extend(before.filter(|old| differs(old, new)).map(|old| Changed {
                allocator,
                check: &new.check,
                old,
                new,
            }));
        }
        for result in &new.hardening {
            let check = &result.check;
            let before = old.hardening.iter().find(|earlier| earlier.check == *check);
            for old in before.iter().flat_map(|earlier| &earlier.cells) {
                let is_it = |new: &&MisuseCell| {
                    (new.size_bytes, new.form) == (old.size_bytes, old.form)
                        && (new.outcome, new.impact) != (old.outcome, old.impact)
                };
                cells.extend(result.cells.iter().find(is_it).map(|new| Changed {
                    allocator,
                    check,
                    old,
                    new,
                }));
            }
        }
    }
    changes
}

/// Whether a check ended differently, and the better of both results would probably have shown the
/// worse verdict, if nothing had changed.
fn differs(old: &CheckResult, new: &CheckResult) -> bool {
    let (better, worse) = match old.verdict < new.verdict {
        true => (old, new),
        false => (new, old),
    };
    let (worst, of) = worse.times;
    let times = match better.verdict {
        CheckVerdict::Pass => worse.failed.max(worst),
        _ => worst,
    };
    let share = f64::from(times) / f64::from(of.max(1));
    let missed = (1.0 - share).powf(better.times.1.into());
    old.verdict != new.verdict && missed < UNLIKELY
}

impl Changed<'_, MisuseCell> {
    /// Whether chance may have made the difference.
    pub fn by_chance(&self) -> bool {
        let (old, new) = (self.old, self.new);
        match old.outcome == new.outcome {
            true => old.answers().min(new.answers()) < FEW,
            // No number of processes would decide it: one of both shows nothing about the allocator.
            false if !old.outcome.is_answer() || !new.outcome.is_answer() => false,
            false => may_be_chance(old, new),
        }
    }
}

/// Whether chance alone may explain the difference: the intervals of the old outcome's share, in
/// the old and in the new cell, overlap. With two processes each, they always do.
fn may_be_chance(old: &MisuseCell, new: &MisuseCell) -> bool {
    let share = |cell: &MisuseCell| {
        let times = cell.tally.get(&old.outcome).copied().unwrap_or(0);
        wilson(times, cell.answers()).unwrap_or((0.0, 1.0))
    };
    let ((_, high), (low, _)) = (share(new), share(old));
    low <= high
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell(tally: &[(&str, u32)]) -> MisuseCell {
        let tally: std::collections::BTreeMap<_, _> = tally.iter().copied().collect();
        let (outcome, _) = tally.iter().max_by_key(|(_, times)| **times).unwrap();
        serde_json::from_value(json!({
            "size_bytes": 24, "form": "naive", "outcome": outcome, "tally": tally, "impact": "none",
            "notes": [], "reasons": [], "again": "",
        }))
        .unwrap()
    }

    #[test]
    fn two_processes_are_chance_and_four_a_change() {
        for (old, new, is_chance) in [
            (
                &[("crashed", 1), ("stopped", 1)][..],
                &[("stopped", 2)][..],
                true,
            ),
            (&[("stopped", 2)], &[("crashed", 2)], true),
            (&[("stopped", 4)], &[("crashed", 4)], false),
            (&[("stopped", 4)], &[("crashed", 3), ("stopped", 1)], true),
            (
                &[("stopped", 20)],
                &[("stopped", 1), ("absorbed", 19)],
                false,
            ),
            // Processes that show nothing are not counted.
            (
                &[("stopped", 4), ("error", 3)],
                &[("crashed", 4), ("unsupported", 3)],
                false,
            ),
            (&[("stopped", 2)], &[("error", 2)], false),
            (&[("unsupported", 2)], &[("absorbed", 2)], false),
            // The twin failed.
            (&[("stopped", 2)], &[("error", 0)], false),
        ] {
            let change = Changed {
                allocator: "",
                check: "",
                old: &cell(old),
                new: &cell(new),
            };
            assert_eq!(change.by_chance(), is_chance, "{old:?} {new:?}");
        }
    }

    #[test]
    fn what_fails_each_time_differs_from_a_pass_and_what_fails_sometimes_may_not() {
        let result = |verdict: &str, times: (u32, u32), failed: u32| -> CheckResult {
            serde_json::from_value(json!({
                "check": "", "group": "", "standing": "std", "verdict": verdict, "times": times,
                "failed": failed, "reasons": [], "again": "",
            }))
            .unwrap()
        };
        let pass = |of| result("pass", (of, of), 0);
        for (old, new, expected) in [
            (pass(1), result("fail", (4, 4), 4), true),
            (pass(1), result("hang", (1, 4), 1), false),
            (pass(1), result("crash", (1, 4), 4), true),
            (pass(8), result("hang", (4, 8), 4), true),
            (result("fail", (4, 4), 4), result("crash", (1, 4), 4), false),
            (result("fail", (4, 4), 4), result("crash", (4, 4), 4), true),
            (pass(1), pass(1), false),
            // A result of an earlier version, for which one process was enough.
            (pass(1), result("fail", (1, 1), 0), true),
        ] {
            assert_eq!(differs(&old, &new), expected, "{old:?} {new:?}");
            assert_eq!(differs(&new, &old), expected, "{new:?} {old:?}");
        }
    }
}
