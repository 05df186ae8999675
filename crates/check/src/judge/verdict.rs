//! How a check that passes or fails ended.

use crate::definition::Check;
use crate::file::CheckResult;
use crate::processes::{ProcessEnd, Trial};
use heapmark_core::store::{CheckVerdict, Standing};

/// The most reasons that are kept: a check of thousands of blocks may find each of them wrong.
const MOST_REASONS: usize = 5;

/// Whether a process shows that the allocator does not do what the check demands.
pub fn has_failed(trial: &Trial) -> bool {
    verdict(trial).is_finding()
}

/// Returns the worst verdict of a check's processes, and how many processes had it. An error shows
/// nothing about the allocator, and so does not hide what other processes found.
pub fn result(check: &Check, standing: Standing, trials: Vec<&Trial>, again: &str) -> CheckResult {
    let verdicts = || trials.iter().map(|trial| verdict(trial));
    let found = verdicts().filter(|verdict| verdict.is_finding()).max();
    let worst = found.or(verdicts().max()).unwrap_or(CheckVerdict::Error);
    let errors = verdicts().filter(|one| *one == CheckVerdict::Error).count();
    let worse = trials.iter().filter(|trial| verdict(trial) == worst);
    let example = worse.clone().next();
    let mut reasons = example.map_or(Vec::new(), |trial| trial.said("reason"));
    reasons.truncate(MOST_REASONS);
    reasons.extend(example.and_then(|trial| trial.ended.words()));
    let mut notes = example.map_or(Vec::new(), |trial| trial.said("note"));
    if found.is_some() && errors > 0 {
        notes.push(format!("{errors} more ended without saying anything of it"));
    }
    CheckResult {
        check: check.name.clone(),
        group: check.group.clone(),
        standing,
        verdict: worst,
        times: (worse.count() as u32, trials.len() as u32),
        failed: trials.iter().filter(|trial| has_failed(trial)).count() as u32,
        reasons,
        notes,
        again: again.into(),
    }
}

fn verdict(trial: &Trial) -> CheckVerdict {
    let holds = trial.said("reason").is_empty();
    match &trial.ended {
        ProcessEnd::Done if holds => CheckVerdict::Pass,
        ProcessEnd::Unsupported(_) if holds => CheckVerdict::Unsupported,
        ProcessEnd::Done | ProcessEnd::TooLarge | ProcessEnd::Unsupported(_) => CheckVerdict::Fail,
        ProcessEnd::Broken(_) => CheckVerdict::Crash,
        ProcessEnd::Hung(_) => CheckVerdict::Hang,
        ProcessEnd::NotLoaded(_) => CheckVerdict::Error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_says_nothing_does_not_hide_what_others_found() {
        let of = |ended| Trial {
            ended,
            ..Trial::default()
        };
        let lost = || ProcessEnd::NotLoaded("another library served".into());
        let trials = [
            of(ProcessEnd::Broken("SIGSEGV".into())),
            of(lost()),
            of(ProcessEnd::Done),
        ];
        let check = crate::definition::all().unwrap().remove(0);
        let verdict_of = |trials: &[Trial]| {
            let all = trials.iter().collect();
            let result = result(&check, Standing::Std, all, "");
            (result.verdict, result.times, result.reasons, result.notes)
        };
        let (verdict, times, reasons, notes) = verdict_of(&trials);
        assert_eq!((verdict, times), (CheckVerdict::Crash, (1, 3)));
        // Later runs say how it crashed: the last reason.
        assert_eq!(reasons, ["SIGSEGV"]);
        assert!(notes[0].starts_with("1 more ended"));
        assert_eq!(verdict_of(&trials[1..]).0, CheckVerdict::Error);
    }

    #[test]
    fn what_failed_before_a_check_found_that_it_cannot_apply_is_a_failure() {
        let unsupported = || ProcessEnd::Unsupported("no process".into());
        for (ended, text, expected) in [
            (ProcessEnd::Done, "", CheckVerdict::Pass),
            (
                ProcessEnd::Done,
                "reason=a block moved\n",
                CheckVerdict::Fail,
            ),
            (unsupported(), "", CheckVerdict::Unsupported),
            (unsupported(), "reason=a block moved\n", CheckVerdict::Fail),
        ] {
            let trial = Trial {
                ended,
                text: text.into(),
                ..Trial::default()
            };
            assert_eq!(verdict(&trial), expected, "{text}");
        }
    }
}
