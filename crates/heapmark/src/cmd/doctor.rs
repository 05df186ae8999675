//! `heapmark doctor`: what of this machine makes numbers wander, and how to change it. Changes nothing itself.

use super::{Exit, print, usage, wants_colour, width};
use crate::build::CompiledTraceShelf;
use crate::observe::preflight::{Preflight, When};
use crate::observe::root::Root;
use crate::report::{self, Screen, plain, units};
use anyhow::{Context, Result};

/// Look at the machine: what disturbs measurements, what it does to results, how to change it
#[derive(clap::Args)]
#[command(
    after_help = "Changes nothing. HEAPMARK_MACHINE_ROOT names a folder with copies of /proc and /sys to look at instead."
)]
pub struct Args {
    /// As JSON
    #[arg(long)]
    json: bool,
    /// End with exit code 5 where there is a warning
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub fn run(args: Args) -> Result<Exit> {
    let look = Preflight::look(&Root::find().map_err(usage)?, When::Before);
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&look).context("cannot write JSON")?))?;
    } else {
        let screen = Screen { width: width(), colour: wants_colour(&std::io::stdout()) };
        print(&report::doctor(&look, screen))?;
        // No cache, no compiled traces.
        if let Ok(compiled_traces) = CompiledTraceShelf::find() {
            let (bytes, most) =
                (units::bytes(compiled_traces.bytes() as f64), units::bytes(compiled_traces.most_bytes() as f64));
            let folder = plain(&compiled_traces.folder().to_string_lossy());
            print(&format!("compiled traces: {bytes} in {folder}, {most} at most\n"))?;
        }
    }
    Ok(if args.strict && !look.warnings().is_empty() { Exit::Warned } else { Exit::Done })
}
