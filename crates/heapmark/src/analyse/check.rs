//! From the processes of a check to its result, and to what later runs need of it.

use super::misuse::detected;
use crate::catalog::check::{Check, Standing};
use crate::execute::check::{Ended, Trial};
use crate::store::check::{CheckFile, CheckResult, CheckVerdict, CheckedAllocator};
use crate::store::misuse::MisuseCell;
use crate::store::{Checked, Detection, Finding};
use heapmark_stats::wilson;

/// Reasons that are kept: a check of thousands of blocks may find each of them wrong.
const MOST_REASONS: usize = 5;

/// What is no chance.
const UNLIKELY: f64 = 0.05;
/// Fewer processes of a cell of hardening do not show its worst impact.
const FEW: u32 = 4;

/// Whether a process shows that the allocator does not do what is asked.
pub fn has_failed(trial: &Trial) -> bool {
    use CheckVerdict::{Crash, Fail, Hang};
    matches!(verdict(trial), Fail | Crash | Hang)
}

/// The result of a check: the worst of its processes, and how many ended so.
pub fn of_trials(check: &Check, allocator: &str, trials: &[Trial]) -> CheckResult {
    let verdicts = trials.iter().map(verdict);
    let worst = verdicts.clone().max().unwrap_or(CheckVerdict::Error);
    let times = verdicts.filter(|it| *it == worst).count();
    let example = trials.iter().find(|trial| verdict(trial) == worst);
    let mut reasons = example.map(|it| it.reasons.clone()).unwrap_or_default();
    reasons.truncate(MOST_REASONS);
    reasons.extend(example.and_then(why));
    CheckResult {
        check: check.name.clone(),
        group: check.group.clone(),
        standing: check.standing,
        verdict: worst,
        times: (times as u32, trials.len() as u32),
        failed: trials.iter().filter(|trial| has_failed(trial)).count() as u32,
        reasons,
        notes: example.map(|it| it.notes.clone()).unwrap_or_default(),
        again: format!("heapmark check -a {allocator} --only {}", check.name),
    }
}

fn verdict(trial: &Trial) -> CheckVerdict {
    match &trial.ended {
        Ended::Done if trial.reasons.is_empty() => CheckVerdict::Pass,
        Ended::Unsupported(_) if trial.reasons.is_empty() => CheckVerdict::Unsupported,
        Ended::Done | Ended::TooLarge | Ended::Unsupported(_) => CheckVerdict::Fail,
        Ended::Broken(_) => CheckVerdict::Crash,
        Ended::Hung(_) => CheckVerdict::Hang,
        Ended::NotLoaded(_) => CheckVerdict::Error,
    }
}

fn why(trial: &Trial) -> Option<String> {
    match &trial.ended {
        Ended::Done => None,
        Ended::TooLarge => Some("ended by heapmark: it took more than 2 GiB".into()),
        Ended::Unsupported(why) | Ended::Broken(why) | Ended::NotLoaded(why) => Some(why.clone()),
        Ended::Hung(limit) => Some(format!("not ended after {} s", limit.as_secs_f64())),
    }
}

/// What runs of this allocator need of its results, which `file` is to hold: neither what standards
/// leave open, nor errors, which must not take the place of what is known.
pub fn kept(one: &CheckedAllocator, file: &CheckFile) -> Checked {
    let is_kept =
        |it: &&CheckResult| it.standing != Standing::Observe && it.verdict != CheckVerdict::Error;
    let finding = |result: &CheckResult| {
        let reasons = &result.reasons;
        let found = match result.verdict {
            CheckVerdict::Crash | CheckVerdict::Hang => reasons.last(),
            _ => reasons.first(),
        };
        Finding {
            check: result.check.clone(),
            standing: result.standing,
            verdict: result.verdict,
            found: found.cloned().unwrap_or_default(),
            processes: result.times.1,
            heapmark: file.heapmark.clone(),
            at: file.started.clone(),
        }
    };
    let hardening = one.hardening.iter().filter_map(|result| {
        let (detected, of) = detected(result)?;
        Some(Detection {
            check: result.check.clone(),
            detected,
            of,
            heapmark: file.heapmark.clone(),
            at: file.started.clone(),
        })
    });
    Checked {
        findings: one.results.iter().filter(is_kept).map(finding).collect(),
        hardening: hardening.collect(),
    }
}

/// A check that ended otherwise in a newer result.
pub struct Changed<'a> {
    /// In the newer result.
    pub allocator: &'a str,
    /// How it ended.
    pub old: &'a CheckResult,
    /// How it ends now.
    pub new: &'a CheckResult,
}

/// A cell of hardening that ended otherwise in a newer result.
pub struct ChangedCell<'a> {
    /// In the newer result.
    pub allocator: &'a str,
    /// Its name.
    pub check: &'a str,
    /// How it ended.
    pub old: &'a MisuseCell,
    /// How it ends now.
    pub new: &'a MisuseCell,
    /// Whether chance may have made the difference.
    pub by_chance: bool,
}

/// Allocators that both results have; the only one of each, if they have different names.
fn pairs<'a>(
    old: &'a CheckFile,
    new: &'a CheckFile,
) -> Vec<(&'a CheckedAllocator, &'a CheckedAllocator)> {
    match (old.allocators.as_slice(), new.allocators.as_slice()) {
        ([old], [new]) => vec![(old, new)],
        (olds, news) => {
            let same =
                |new: &CheckedAllocator| olds.iter().find(|old| old.info.name == new.info.name);
            news.iter()
                .filter_map(|new| Some((same(new)?, new)))
                .collect()
        }
    }
}

/// The checks that ended otherwise, unless chance explains it.
pub fn changes<'a>(old: &'a CheckFile, new: &'a CheckFile) -> Vec<Changed<'a>> {
    let mut all = Vec::new();
    for (old, new) in pairs(old, new) {
        for result in &new.results {
            let before = old.results.iter().find(|it| it.check == result.check);
            if let Some(before) = before.filter(|it| differs(it, result)) {
                all.push(Changed {
                    allocator: &new.info.name,
                    old: before,
                    new: result,
                });
            }
        }
    }
    all
}

/// Whether a check ended otherwise, and the better of both would probably have shown what the worse
/// one did, if it were the same.
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

/// The cells of hardening that ended otherwise, or with another impact.
pub fn changed_cells<'a>(old: &'a CheckFile, new: &'a CheckFile) -> Vec<ChangedCell<'a>> {
    let mut all = Vec::new();
    for (old, new) in pairs(old, new) {
        for result in &new.hardening {
            let Some(before) = old.hardening.iter().find(|it| it.check == result.check) else {
                continue;
            };
            for cell in &result.cells {
                let is_same =
                    |it: &&MisuseCell| it.size_bytes == cell.size_bytes && it.form == cell.form;
                let differs =
                    |it: &&MisuseCell| it.outcome != cell.outcome || it.impact != cell.impact;
                if let Some(before) = before.cells.iter().find(is_same).filter(differs) {
                    let trials = |cell: &MisuseCell| cell.tally.values().sum::<u32>();
                    all.push(ChangedCell {
                        allocator: &new.info.name,
                        check: &result.check,
                        old: before,
                        new: cell,
                        by_chance: match before.outcome == cell.outcome {
                            true => trials(before).min(trials(cell)) < FEW,
                            false => by_chance(before, cell),
                        },
                    });
                }
            }
        }
    }
    all
}

/// Whether chance may have made all the difference: the intervals of how often either ends as the
/// old one mostly did overlap. Two processes of each never tell.
fn by_chance(old: &MisuseCell, new: &MisuseCell) -> bool {
    let share = |cell: &MisuseCell| {
        let times = cell.tally.get(&old.outcome).copied().unwrap_or(0);
        wilson(times, cell.tally.values().sum()).unwrap_or((0.0, 1.0))
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
            (&[("stopped", 4)], &[("crashed", 2), ("stopped", 2)], true),
            (
                &[("stopped", 20)],
                &[("stopped", 1), ("absorbed", 19)],
                false,
            ),
        ] {
            let (old, new) = (cell(old), cell(new));
            let found = by_chance(&old, &new);
            assert_eq!(found, is_chance, "{:?} {:?}", old.tally, new.tally);
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
            // Of before, when one process was enough.
            (pass(1), result("fail", (1, 1), 0), true),
        ] {
            assert_eq!(differs(&old, &new), expected, "{old:?} {new:?}");
            assert_eq!(differs(&new, &old), expected, "{new:?} {old:?}");
        }
    }

    #[test]
    fn what_failed_before_a_check_found_that_it_cannot_apply_is_a_failure() {
        let unsupported = || Ended::Unsupported("no process".into());
        for (ended, reasons, expected) in [
            (Ended::Done, vec![], CheckVerdict::Pass),
            (Ended::Done, vec!["a block moved"], CheckVerdict::Fail),
            (unsupported(), vec![], CheckVerdict::Unsupported),
            (unsupported(), vec!["a block moved"], CheckVerdict::Fail),
        ] {
            let trial = Trial {
                ended,
                reasons: reasons.into_iter().map(String::from).collect(),
                notes: Vec::new(),
            };
            assert_eq!(verdict(&trial), expected, "{:?}", trial.reasons);
        }
    }
}
