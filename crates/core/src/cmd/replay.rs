//! `heapmark replay`: short for `heapmark run -w trace:FILE`.

use super::Exit;
use super::run::{self, choices};
use crate::plan::Override;
use anyhow::Result;
use clap::builder::PossibleValuesParser;

/// Replay recorded programs under every allocator
#[derive(clap::Args)]
pub struct ReplayArgs {
    /// Traces made by `heapmark record` or `heapmark trace`
    #[arg(required_unless_present = "resume", value_name = "TRACE")]
    traces: Vec<String>,
    /// speed: threads wait only for what they need; memory: one at a time in recorded order, for
    /// --retained; paced: at the recorded times [default: speed, or memory with --retained]
    #[arg(long, value_parser = PossibleValuesParser::new(choices("mode")), help_heading = "How it is played")]
    mode: Option<String>,
    /// How much of each block to write to [default: recorded]
    #[arg(long, value_name = "HOW", value_parser = PossibleValuesParser::new(choices("touch")), help_heading = "How it is played")]
    touch: Option<String>,
    /// After each call, read so many of the blocks that are live, one after the other, so that where the
    /// allocator put them counts, too; for programs of one thread [default: 0]
    #[arg(long, value_name = "N", help_heading = "How it is played")]
    reads: Option<u64>,
    /// How many events a thread may be ahead of another in recorded order [default: 1000000]
    #[arg(long, value_name = "N", help_heading = "How it is played")]
    skew: Option<u64>,
    /// With --mode paced: play this many times faster than recorded [default: 1]
    #[arg(long, value_name = "N", help_heading = "How it is played")]
    pace: Option<f64>,
    /// Show how little memory a packing of the trace's blocks takes if all lifetimes are known, beside
    /// what is live and what each allocator holds; with --retained or --mode memory
    #[arg(long, help_heading = "How it is played")]
    packing: bool,
    #[command(flatten)]
    run: run::RunFlags,
}

/// Runs `heapmark replay`.
pub fn run(args: ReplayArgs) -> Result<Exit> {
    let mode = args.mode.as_deref();
    let mut run = args.run;
    if args.pace.is_some() && mode != Some("paced") {
        refuse!("--pace: only --mode paced plays recorded times");
    }
    if run.instead.retained && mode == Some("speed") {
        refuse!("--mode speed: --retained plays in recorded order: leave one of them out");
    }
    if mode == Some("memory") && (run.instead.limit.is_some() || run.comparison.budget.is_some()) {
        refuse!("--mode memory: it measures memory alone: leave out --limit and --budget");
    }
    run.instead.retained |= mode == Some("memory");
    if args.packing && !(run.instead.retained && mode.is_none_or(|mode| mode == "memory")) {
        refuse!(
            "--packing: only a replay in recorded order can be compared with it: add --retained, or --mode memory"
        );
    }
    let values = [
        ("mode", args.mode),
        ("touch", args.touch),
        ("reads", args.reads.map(|reads| reads.to_string())),
        ("skew", args.skew.map(|skew| skew.to_string())),
        ("pace", args.pace.map(|pace| pace.to_string())),
        ("packing", args.packing.then(|| "yes".into())),
    ];
    let set = values.into_iter().filter_map(|(parameter, value)| {
        Some(Override {
            workload: "trace:*".into(),
            parameter: parameter.into(),
            value: value?,
        })
    });
    // These come before the values of `--set`, which may be for one trace only.
    run.set.splice(0..0, set);
    let traces = args.traces.iter();
    run::run(run::RunArgs {
        suite: "quick".into(),
        workloads: traces.map(|trace| format!("trace:{trace}")).collect(),
        threads: Vec::new(),
        preset: None,
        args: run,
    })
}
