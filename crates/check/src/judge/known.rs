//! The results of an allocator's checks that later runs of it need.

use super::detected;
use crate::file::{CheckFile, CheckResult, CheckedAllocator};
use heapmark_core::store::{CheckVerdict, Standing};
use heapmark_core::store::{Checked, Detection, KnownFault};

/// Returns what later runs use from the results in `file`. Leaves out what standards leave open,
/// errors, which must not replace earlier findings, and what a check with less time than usual may
/// have missed.
pub fn known(one: &CheckedAllocator, file: &CheckFile, is_hasty: impl Fn(&str) -> bool) -> Checked {
    let is_known = |result: &&CheckResult| match result.verdict {
        CheckVerdict::Error => false,
        // A process that hangs may only be slow.
        CheckVerdict::Hang if is_hasty(&result.check) => false,
        _ => result.standing != Standing::Observe,
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
    let hardening = one
        .hardening
        .iter()
        .filter(|result| !is_hasty(&result.check));
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
