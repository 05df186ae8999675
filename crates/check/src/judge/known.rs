//! What runs of an allocator need of the results of its checks.

use super::detected;
use crate::file::{CheckFile, CheckResult, CheckedAllocator};
use heapmark_core::store::{CheckVerdict, Standing};
use heapmark_core::store::{Checked, Detection, KnownFault};

/// Of results that `file` is to hold: neither what standards leave open, nor errors, which must not
/// take the place of what is known, nor what a check that had less time than usual may have missed.
pub fn known(one: &CheckedAllocator, file: &CheckFile, is_hasty: impl Fn(&str) -> bool) -> Checked {
    let is_known = |it: &&CheckResult| match it.verdict {
        CheckVerdict::Error => false,
        // What hangs may only be slow.
        CheckVerdict::Hang if is_hasty(&it.check) => false,
        _ => it.standing != Standing::Observe,
    };
    let finding = |result: &CheckResult| {
        let reasons = &result.reasons;
        let found = match result.verdict {
            CheckVerdict::Crash | CheckVerdict::Hang => reasons.last(),
            _ => reasons.first(),
        };
        KnownFault {
            check: result.check.clone(),
            standing: result.standing,
            verdict: result.verdict,
            found: found.cloned().unwrap_or_default(),
            processes: result.times.1,
            heapmark: file.heapmark.clone(),
            at: file.started.clone(),
        }
    };
    let hardening = one.hardening.iter().filter(|it| !is_hasty(&it.check));
    let hardening = hardening.filter_map(|result| {
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
        findings: one.results.iter().filter(is_known).map(finding).collect(),
        hardening: hardening.collect(),
    }
}
