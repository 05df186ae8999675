//! `heapmark trace dump`: one line per event.

use super::{Exit, in_file, open_to_stdout};
use crate::cmd::usage;
use crate::report::Dump;
use anyhow::{Context, Result};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::PathBuf;

/// Print every event as a line
#[derive(clap::Args)]
pub struct DumpArgs {
    /// Trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Print a line of JSON per event
    #[arg(long)]
    json: bool,
    /// Only these events, as A..B: from A up to but not including B; either may be left out
    #[arg(long, value_name = "RANGE")]
    events: Option<String>,
}

const CANNOT: &str = "cannot write to stdout";

/// Runs the command.
pub fn run(args: DumpArgs) -> Result<Exit> {
    let range = super::cut::range(args.events.as_deref().unwrap_or("..")).map_err(usage)?;
    let (reader, _long) = open_to_stdout("dump", &args.trace)?;
    let (mut dump, mut out) = (Dump::default(), BufWriter::new(std::io::stdout().lock()));
    let mut end = Ok(Exit::Done);
    for (number, next) in (0..range.end).zip(reader) {
        let line = match next {
            Ok((thread, event)) if args.json => dump.json(thread, &event),
            Ok((thread, event)) => dump.line(thread, &event),
            Err(fault) => {
                end = Err(fault);
                break;
            }
        };
        if number < range.start {
            continue;
        }
        match out.write_all(line.as_bytes()) {
            // The reader of stdout has stopped, which is not a failure.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Done),
            result => result.context(CANNOT)?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error) => Err(error).context(CANNOT),
        Ok(()) => in_file(end, &args.trace),
    }
}
