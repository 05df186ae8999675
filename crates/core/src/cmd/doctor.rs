//! `heapmark doctor`: what makes measurements on this machine vary, how to change it, and what the kernel costs here. The command changes
//! nothing itself.

use super::output::AnswerFormat;
use super::{Exit, print, print_json, screen, usage};
use crate::build::CompiledTraceShelf;
use crate::observe::Prices;
use crate::observe::machine::prices::Price;
use crate::observe::preflight::{Preflight, When};
use crate::observe::root::Root;
use crate::report::{self, plain, render, units};
use anyhow::Result;
use serde::Serialize;

/// Inspect the machine: what disturbs measurements, how it affects results, how to change it
#[derive(clap::Args)]
#[command(
    after_help = "Changes nothing. HEAPMARK_MACHINE_ROOT names a folder with copies of /proc and /sys to look at instead."
)]
pub struct DoctorArgs {
    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// Exit with code 5 if there is a warning
    #[arg(long)]
    strict: bool,
}

/// The JSON output: the preflight as a run stores it, and the prices.
#[derive(Serialize)]
struct MachineReport<'a> {
    #[serde(flatten)]
    look: &'a Preflight,
    /// Null if another machine's files were read.
    prices: Option<&'a [Price]>,
}

/// Runs `heapmark doctor`.
pub fn run(args: DoctorArgs) -> Result<Exit> {
    let root = Root::find().map_err(usage)?;
    // The preflight comes before the prices: measuring prices puts load on the machine.
    let look = Preflight::look(&root, When::Before);
    let prices = Prices::measure(&root);
    if args.format == AnswerFormat::Json {
        print_json(&MachineReport {
            look: &look,
            prices: prices.as_ref().map(|all| all.prices.as_slice()),
        })?;
    } else {
        let mut blocks = report::doctor(&look);
        blocks.extend(prices.iter().flat_map(report::prices));
        print(render::terminal(&blocks, screen()) + "\n")?;
        // Without a cache there are no compiled traces.
        if let Ok(compiled_traces) = CompiledTraceShelf::find() {
            print(format!(
                "compiled traces: {} in {}, {} at most\n",
                units::bytes(compiled_traces.bytes() as f64),
                plain(&compiled_traces.folder().to_string_lossy()),
                units::bytes(compiled_traces.most_bytes() as f64)
            ))?;
        }
    }
    Ok(Exit::Warned.when(args.strict && !look.warnings().is_empty()))
}
