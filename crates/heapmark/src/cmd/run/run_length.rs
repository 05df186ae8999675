//! How long a run lasts: from flags and suite to numbers of blocks, precision, budget.

use super::RunFlags;
use super::comparison::Comparison;
use crate::catalog::Suite;
use crate::plan::Mode;
use heapmark_stats::{ALPHA, ALPHA_UNTIL_PRECISE, blocks_needed};

/// How many blocks a run makes.
pub(in crate::cmd) struct Extent {
    pub blocks: u32,
    pub most_blocks: Option<u32>,
    pub precision: Option<f64>,
    pub budget_s: Option<f64>,
}

impl Extent {
    /// Flags override the suite; with neither, as many blocks as a verdict over this many
    /// comparisons needs.
    pub fn of_run(args: &RunFlags, suite: &Suite, comparisons: usize) -> Extent {
        let mode = args.instead.mode();
        let flags = &args.comparison;
        let asked =
            flags.precision.is_some() || flags.max_blocks.is_some() || flags.budget.is_some();
        let exactly = flags
            .blocks
            .or(mode.blocks())
            .or(suite.blocks.filter(|_| !asked));
        match exactly {
            Some(blocks) => Extent::exactly(blocks),
            None if matches!(mode, Mode::Latency { .. }) || !(asked || suite.adaptive) => {
                Extent::exactly(blocks_needed(comparisons, ALPHA))
            }
            None => Extent::until_precise(flags, suite.budget_minutes, comparisons),
        }
    }

    /// Exactly this many.
    pub fn exactly(blocks: u32) -> Extent {
        Extent {
            blocks,
            most_blocks: None,
            precision: None,
            budget_s: None,
        }
    }

    /// Until the precision is reached, but at least as many as a verdict needs.
    pub fn until_precise(
        flags: &Comparison,
        budget_minutes: Option<f64>,
        comparisons: usize,
    ) -> Extent {
        const MOST: u32 = 40;
        const PRECISION: f64 = 0.01;
        let needed = blocks_needed(comparisons, ALPHA_UNTIL_PRECISE);
        let most = flags.max_blocks.unwrap_or(MOST.max(needed));
        Extent {
            blocks: needed.min(most),
            most_blocks: Some(most),
            precision: flags.precision.or(Some(PRECISION)),
            budget_s: flags
                .budget
                .map(|budget| budget.as_secs_f64())
                .or(budget_minutes.map(|min| min * 60.0)),
        }
    }
}
