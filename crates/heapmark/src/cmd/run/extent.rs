//! How long a run goes on: flags and suite -> numbers of blocks, precision, budget.

use super::Args;
use crate::catalog::Suite;
use crate::plan::Counter;

/// How many blocks a run makes.
pub(super) struct Extent {
    pub blocks: u32,
    pub most_blocks: Option<u32>,
    pub precision: Option<f64>,
    pub budget_s: Option<f64>,
}

impl Extent {
    /// Flags before the suite; with neither, as many blocks as a verdict needs.
    pub fn new(args: &Args, suite: &Suite, needed: u32) -> Extent {
        const MOST: u32 = 40;
        const MEMORY_BLOCKS: u32 = 3;
        const PRECISION: f64 = 0.01;
        let asked = args.precision.is_some() || args.max_blocks.is_some() || args.budget.is_some();
        let exactly = args
            .blocks
            .or(args.counter.map(Counter::blocks))
            .or(args.retained.then_some(MEMORY_BLOCKS))
            .or(suite.blocks.filter(|_| !asked));
        if exactly.is_some() || args.latency.is_some() || !(asked || suite.adaptive) {
            let blocks = exactly.unwrap_or(needed);
            return Extent { blocks, most_blocks: None, precision: None, budget_s: None };
        }
        let most = args.max_blocks.unwrap_or(MOST.max(needed));
        Extent {
            blocks: needed.min(most),
            most_blocks: Some(most),
            precision: args.precision.or(Some(PRECISION)),
            budget_s: args.budget.map(|budget| budget.as_secs_f64()).or(suite.budget_minutes.map(|min| min * 60.0)),
        }
    }
}
