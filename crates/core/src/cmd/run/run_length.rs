//! How long a run lasts: turns flags and suite into numbers of blocks, a precision and a budget.

use super::RunFlags;
use super::comparison::Comparison;
use crate::catalog::Suite;
use crate::plan::{Mode, Plan};
use heapmark_stats::{ALPHA, LEAST_BLOCKS, blocks_for_ranks};

/// Plans the length of a run. Flags override the suite; with neither, there are as many blocks as ranks need to decide this many
/// comparisons.
pub fn of_run(args: &RunFlags, mode: Mode, suite: &Suite, comparisons: usize) -> Plan {
    let flags = &args.comparison;
    let asked = flags.precision.is_some() || flags.max_blocks.is_some() || flags.budget.is_some();
    let spec = mode.spec();
    let exact = flags.blocks.or(spec.blocks);
    match exact.or(suite.blocks.filter(|_| !asked)) {
        Some(blocks) => within_budget(flags, blocks),
        None if !spec.plain || !(asked || suite.adaptive) => {
            exactly(blocks_for_ranks(comparisons, ALPHA))
        }
        None => Plan {
            budget_of_suite: flags.budget.is_none() && suite.budget_minutes.is_some(),
            ..until_precise(flags, suite.budget_minutes)
        },
    }
}

/// A plan that gives an answer within minutes, unless the flags say otherwise.
pub fn of_try(flags: &Comparison, mode: Mode) -> Plan {
    const MINUTES: f64 = 3.0;
    let asked = flags.precision.is_some() || flags.max_blocks.is_some();
    match flags.blocks.or(mode.spec().blocks) {
        Some(blocks) => within_budget(flags, blocks),
        None => until_precise(flags, (!asked).then_some(MINUTES)),
    }
}

/// A plan of this many blocks, in which no block begins after the budget, if there is one.
fn within_budget(flags: &Comparison, blocks: u32) -> Plan {
    Plan {
        budget_s: flags.budget.map(|budget| budget.as_secs_f64()),
        ..exactly(blocks)
    }
}

/// A plan of exactly this many blocks.
fn exactly(blocks: u32) -> Plan {
    Plan {
        blocks,
        ..Plan::default()
    }
}

/// A plan that lasts until the precision is reached, but has at least as many blocks as a verdict
/// needs.
fn until_precise(flags: &Comparison, budget_minutes: Option<f64>) -> Plan {
    const MOST: u32 = 40;
    const PRECISION: f64 = 0.01;
    const FAR_PRECISION: f64 = 0.025;
    let most = flags.max_blocks.unwrap_or(MOST);
    let budget_s = flags.budget.map(|budget| budget.as_secs_f64());
    Plan {
        most_blocks: Some(most),
        precision: flags.precision.or(Some(PRECISION)),
        far_precision: flags.precision.is_none().then_some(FAR_PRECISION),
        budget_s: budget_s.or(budget_minutes.map(|min| min * 60.0)),
        ..exactly(LEAST_BLOCKS.min(most))
    }
}
