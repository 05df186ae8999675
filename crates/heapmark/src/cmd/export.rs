//! `heapmark export`: a stored run in other formats.

use super::output::{Destination, Output};
use super::{Exit, say, say_damage, usage};
use crate::report::{Format, export, write_raw};
use crate::store::{self, Purpose, Record, Run};
use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::io::IsTerminal;
use std::slice;

/// Write a stored run as CSV, JSON, Markdown, Parquet or another tool's file
#[derive(clap::Args)]
pub struct ExportArgs {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// csv: one line per metric of each row, of every kind of run; csv-samples: one per measured
    /// iteration; csv-rows: one per row of timed runs; csv-latency: one per timed function of a
    /// row; json: everything; md: the tables; parquet: as csv-samples, with types. For
    /// other tools: bmf (Bencher), gha-smaller and gha-bigger (github-action-benchmark),
    /// google-benchmark, hyperfine
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(names()).try_map(|name| format(&name)))]
    to: Format,
    #[command(flatten)]
    destination: Destination,
}

/// Values that `--to` accepts. Parquet is accepted even if it is not built in: the error then
/// explains it.
fn names() -> Vec<&'static str> {
    let missing = (!cfg!(feature = "parquet")).then_some(PARQUET);
    Format::all().map(Format::name).chain(missing).collect()
}

const PARQUET: &str = "parquet";

fn format(name: &str) -> Result<Format, String> {
    let mut all = Format::all();
    all.find(|format| format.name() == name).ok_or_else(|| {
        format!("this heapmark was built without {name}; csv-samples has the same columns (from the sources: --features heapmark/{name})")
    })
}

/// Runs the command.
pub fn run(args: ExportArgs) -> Result<Exit> {
    let to = args.to;
    let name = args.to.name();
    let destination = args.destination;
    let to_stdout = destination.output.as_os_str() == "-";
    if to_stdout && to.is_binary() && std::io::stdout().is_terminal() {
        refuse!("{name} is nothing for a terminal: name a file with -o");
    }
    let dir = store::find(&args.run).map_err(usage)?;
    let output = destination.made_of_runs(slice::from_ref(&dir))?;
    let run = store::read_for_tables(&dir, |_| true)?;
    say_damage(&dir, &run);
    if to.is_raw() {
        let has_lines =
            |record: &Record| record.purpose == Purpose::Sample || !record.outcome.is_ok();
        if to != Format::Json && !run.records.iter().any(has_lines) {
            refuse!(
                "this run has timed no whole process, so there is nothing for {name}: json has all that is there"
            );
        }
        write(&output, to, &run)?;
        return Ok(Exit::Done);
    }
    let exported = export(to, &run.head, &run.records).map_err(usage)?;
    exported.note.iter().for_each(say);
    output.put(exported.bytes)?;
    Ok(Exit::Done)
}

/// Writes a run in a raw format; it must have been read with all its figures.
pub(super) fn write(output: &Output, to: Format, run: &Run) -> Result<()> {
    let head = &run.head;
    let records = &run.records;
    output
        .write(|out| write_raw(to, head, records, run.lines.records(), out))
        .map(drop)
}
