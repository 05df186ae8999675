//! `heapmark doctor`: what makes measurements on this machine vary, and how to change it. Changes
//! nothing itself.

use super::{Exit, print, usage, wants_colour, width};
use crate::build::CompiledTraceShelf;
use crate::observe::preflight::{Preflight, When};
use crate::observe::root::Root;
use crate::report::{self, Screen, plain, units};
use anyhow::{Context, Result};

/// Inspect the machine: what disturbs measurements, how it affects results, how to change it
#[derive(clap::Args)]
#[command(
    after_help = "Changes nothing. HEAPMARK_MACHINE_ROOT names a folder with copies of /proc and /sys to look at instead."
)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Exit with code 5 if there is a warning
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub fn run(args: DoctorArgs) -> Result<Exit> {
    let look = Preflight::look(&Root::find().map_err(usage)?, When::Before);
    if args.json {
        print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&look).context("cannot write JSON")?
        ))?;
    } else {
        let screen = Screen {
            width: width(),
            colour: wants_colour(&std::io::stdout()),
        };
        print(&report::doctor(&look, screen))?;
        // Without a cache there are no compiled traces.
        if let Ok(compiled_traces) = CompiledTraceShelf::find() {
            let (bytes, most) = (
                units::bytes(compiled_traces.bytes() as f64),
                units::bytes(compiled_traces.most_bytes() as f64),
            );
            let folder = plain(&compiled_traces.folder().to_string_lossy());
            print(&format!(
                "compiled traces: {bytes} in {folder}, {most} at most\n"
            ))?;
        }
    }
    Ok(if args.strict && !look.warnings().is_empty() {
        Exit::Warned
    } else {
        Exit::Done
    })
}
