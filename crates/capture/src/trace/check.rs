//! `heapmark trace check`: finds everything that is wrong with a trace.

use super::{Exit, open};
use anyhow::Result;
use heapmark_core::cmd::print;
use heapmark_trace::{FaultKind, check, ended};
use std::path::PathBuf;

/// Read whole traces and report what is wrong, by chunk and event
#[derive(clap::Args)]
pub struct CheckArgs {
    /// Traces
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(args: CheckArgs) -> Result<Exit> {
    let mut end = Exit::Done;
    for file in &args.traces {
        let name = file.display();
        let (reader, long) = open("check", file, false)?;
        if let Some(words) = ended(reader.head()) {
            print(format!("{name}: note: {words}\n"))?;
        }
        let checked = check(reader);
        drop(long);
        let mut untold = checked.impossible;
        for fault in &checked.faults {
            say!("{name}: {fault}");
            untold = untold.saturating_sub((fault.kind() == FaultKind::Impossible).into());
        }
        if untold > 0 {
            say!("{name}: and {untold} more that cannot have happened");
        }
        for (what, (count, first)) in &checked.notes {
            print(format!(
                "{name}: note: {what}: {count}, the first is event {first}\n"
            ))?;
        }
        match checked.worst() {
            None => print(format!(
                "{name}: ok, {} events, alive at the end: {}\n",
                checked.events, checked.alive
            ))?,
            Some(kind) => {
                say!("{name}: {} events could be read", checked.events);
                end = kind.into();
            }
        }
    }
    Ok(end)
}
