//! The caveats below a table.

use super::sheet::interval;
use super::{units, user_command};
use crate::analyse::Case;

/// The A/A copy of the baseline, the ceiling, the floor.
pub(super) fn lines(case: &Case) -> Vec<String> {
    let (name, mut lines) = (&case.baseline, Vec::new());
    if let Some(aa_copy) = &case.aa_copy {
        let verdict = if case.aa_copy_differs {
            ": different, so nothing is claimed here"
        } else {
            ""
        };
        lines.push(format!(
            "A/A: a copy of {name} takes {} of its time{verdict}",
            interval(aa_copy)
        ));
    }
    if let Some(share) = case.won_at_most {
        lines.push(format!(
            "ceiling: the fastest allocator here saves {} of the CPU time with {name}; no allocator can save what is not spent \
             on allocating",
            units::percent(share)
        ));
    }
    lines.extend(case.command.iter().flat_map(user_command::lines));
    if case.floor_hides {
        lines.push(
            "the harness takes more than half of the fastest time: nothing is claimed here"
                .to_owned(),
        );
    }
    lines
}
