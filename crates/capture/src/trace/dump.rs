//! `heapmark trace dump`: one line per event.

use super::{Exit, in_file, open};
use crate::report::Dump;
use anyhow::Result;
use heapmark_core::cmd::output::{AnswerFormat, Output};
use heapmark_core::cmd::usage;
use std::io::Write;
use std::path::PathBuf;

/// Print every event as a line
#[derive(clap::Args)]
pub struct DumpArgs {
    /// Trace
    trace: PathBuf,
    /// What to print; of json a line per event
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// Only these events, as A..B: from A up to but not including B; either may be left out
    #[arg(long, value_name = "RANGE")]
    events: Option<String>,
}

/// Runs the command.
pub fn run(args: DumpArgs) -> Result<Exit> {
    let range = super::cut::range(args.events.as_deref().unwrap_or("..")).map_err(usage)?;
    let (reader, _long) = open("dump", &args.trace, true)?;
    let mut dump = Dump::default();
    let dumped = Output::stdout().write(|out| {
        for (number, next) in (0..range.end).zip(reader) {
            let line = match next {
                Ok((thread, event)) if args.format == AnswerFormat::Json => {
                    dump.json(thread, &event)
                }
                Ok((thread, event)) => dump.line(thread, &event),
                // The events before the fault are printed before the fault is reported.
                Err(fault) => return Ok(Err(fault)),
            };
            if number >= range.start {
                out.write_all(line.as_bytes())?;
            }
        }
        Ok(Ok(Exit::Done))
    })?;
    in_file(dumped.unwrap_or(Ok(Exit::Done)), &args.trace)
}
