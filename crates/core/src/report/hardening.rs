//! What hardening costs, as a table.

use super::document::Sheet;
use super::sheet::SheetOf;
use super::text::{count, enclosed};
use super::units::{self, bounds};
use crate::analyse::{Analysis, HardeningCost};
use crate::metric::Unit;

/// What the share of detected misuses is, and what it is not.
pub const MEANING: &str = "Detected: the share of processes in which a misuse of heapmark check was stopped or trapped at once, or \
     by the first call after it; mean over the misuses that were tried equally often on all of these allocators, naive and \
     informed. Facts about small programs, and no score: a mistake that one of them does not notice may do no harm under another \
     one, and a caught one says little about a clever attacker.";

/// The table of costs; `None` unless the run has at least two allocators whose hardening was checked.
pub fn sheet(analysis: &Analysis) -> Option<Sheet> {
    let costs = analysis.hardening_costs();
    let misuses = costs.first()?.misuses;
    let base = &analysis.baseline;
    let heading = format!("What hardening costs, {}", count(misuses, "misuse"));
    let mut table = SheetOf::new(heading, &costs);
    table.add("allocator", |one| one.allocator);
    table.add("detected", |one| (one.detected, Unit::Share));
    table.add(format!("time / {base} [95 %]"), time);
    table.add(format!("memory / {base}"), |one| {
        Some((one.memory?, Unit::Times))
    });
    table.sheet.remark([MEANING.to_owned()]);
    Some(table.sheet)
}

/// The time over the baseline's, with its interval: `0.704 [0.690, 0.719]`.
pub fn time(one: &HardeningCost) -> String {
    let interval = one.interval.map(bounds).unwrap_or_default();
    format!("{}{}", units::ratio(one.time), enclosed(" ", &interval, ""))
}

/// The memory over the baseline's: `1.12x`.
pub fn memory(one: &HardeningCost) -> String {
    one.memory.map_or("-".into(), units::times)
}
