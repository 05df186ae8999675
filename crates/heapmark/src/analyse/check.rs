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

/// The checks that ended otherwise.
pub fn changes<'a>(old: &'a CheckFile, new: &'a CheckFile) -> Vec<Changed<'a>> {
    let mut all = Vec::new();
    for (old, new) in pairs(old, new) {
        for result in &new.results {
            let before = old.results.iter().find(|it| it.check == result.check);
            if let Some(before) = before.filter(|it| it.verdict != result.verdict) {
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

/// The cells of hardening that ended otherwise, or with another impact. If chance decides, they
/// have to differ in more than it explains.
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
                let differs = |it: &&MisuseCell| match it.outcome == cell.outcome {
                    true => it.impact != cell.impact,
                    false => !(by_chance(it, cell) || by_chance(cell, it)),
                };
                if let Some(before) = before.cells.iter().find(is_same).filter(differs) {
                    all.push(ChangedCell {
                        allocator: &new.info.name,
                        check: &result.check,
                        old: before,
                        new: cell,
                    });
                }
            }
        }
    }
    all
}

/// Whether the most frequent outcome of one result may be as frequent in the other, where that has
/// several.
fn by_chance(one: &MisuseCell, other: &MisuseCell) -> bool {
    let of = |cell: &MisuseCell| {
        let times = cell.tally.get(&one.outcome).copied().unwrap_or(0);
        (times, cell.tally.values().sum::<u32>())
    };
    let ((times, trials), (others, of_others)) = (of(one), of(other));
    let has_several = one.tally.len() > 1 || other.tally.len() > 1;
    has_several
        && wilson(times, trials).is_some_and(|(low, high)| {
            let share = f64::from(others) / f64::from(of_others.max(1));
            (low..=high).contains(&share)
        })
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
    fn one_of_two_processes_is_chance_and_one_of_twenty_is_a_change() {
        for (old, new, is_chance) in [
            (
                &[("crashed", 1), ("stopped", 1)][..],
                &[("stopped", 2)][..],
                true,
            ),
            (&[("stopped", 2)], &[("stopped", 1), ("hang", 1)], true),
            (&[("stopped", 2)], &[("crashed", 2)], false),
            (
                &[("stopped", 20)],
                &[("stopped", 1), ("absorbed", 19)],
                false,
            ),
        ] {
            let (old, new) = (cell(old), cell(new));
            let found = by_chance(&old, &new) || by_chance(&new, &old);
            assert_eq!(found, is_chance, "{:?} {:?}", old.tally, new.tally);
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
