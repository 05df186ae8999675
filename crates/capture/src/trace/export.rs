//! `heapmark trace export`: distributions for workloads and other programs.

use super::{Exit, write_counted, write_stats};
use crate::report::{histogram_csv, joint_csv};
use anyhow::Result;
use heapmark_core::cmd::output::Destination;
use std::path::PathBuf;

/// Write the sizes of objects, their lifetimes, or both together, as CSV
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct TraceExportArgs {
    /// Trace
    trace: PathBuf,
    /// Columns size,count: the input of the workloads' `distribution`
    #[arg(long, group = "which")]
    sizes: bool,
    /// Columns allocated_bytes,count: bytes allocated during the life of the objects
    #[arg(long, group = "which")]
    lifetimes: bool,
    /// Columns size,lifetime_bytes,weight,remote: the input of `steady.model`
    #[arg(long, group = "which")]
    joint: bool,
    #[command(flatten)]
    destination: Destination,
}

/// Runs the command.
pub fn run(args: TraceExportArgs) -> Result<Exit> {
    let (trace, destination) = (&args.trace, &args.destination);
    if args.joint {
        let count = heapmark_trace::joint;
        return write_counted("export", trace, destination, count, |rows| joint_csv(rows));
    }
    write_stats("export", trace, destination, |stats| {
        if args.sizes {
            histogram_csv(&stats.sizes, "size")
        } else {
            histogram_csv(&stats.lifetimes_bytes, "allocated_bytes")
        }
    })
}
