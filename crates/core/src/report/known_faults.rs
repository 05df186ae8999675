//! Known faults of an allocator: the checks that it does not pass.

use super::text::{count, enclosed, list, short};
use crate::store::{CheckVerdict, KnownFault, Standing};

/// What entitles a program to rely on the behaviour that a check tests, in words.
pub fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Std => "ISO C or POSIX",
        Standing::Gnu => "programs for Linux rely on it",
        Standing::Robust => "quality",
        Standing::Observe => "left open",
    }
}

/// The most checks that a sentence about an allocator names.
const MOST_NAMED: usize = 2;

/// What readers of an allocator's numbers must know from earlier checks that the allocator did not pass, the worst first: `x fails 3
/// checks: free-errno (free of 1 bytes set errno to 22), fork-signal (hang) and 1 more; heapmark check -a x (2026-01-01).`
pub fn failed(allocator: &str, findings: &[KnownFault]) -> Option<String> {
    let newest = findings.iter().map(|finding| finding.at.as_str()).max()?;
    let named = findings.iter().take(MOST_NAMED).map(|finding| {
        let found = match finding.verdict {
            CheckVerdict::Fail => short(&finding.found),
            other => other.to_string(),
        };
        format!("{}{}", finding.check, enclosed(" (", &found, ")"))
    });
    let more = findings.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    Some(format!(
        "{allocator} {}: {}; heapmark check -a {allocator} ({}).",
        fails(findings),
        list(named.chain(more)),
        day(newest)
    ))
}

/// How many checks an allocator fails: `fails 3 checks`.
pub fn fails(findings: &[KnownFault]) -> String {
    format!("fails {}", count(findings.len(), "check"))
}

/// The date of a time stamp.
pub fn day(moment: &str) -> &str {
    moment.split('T').next().unwrap_or_default()
}
