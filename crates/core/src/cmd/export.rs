//! `heapmark export`: a stored run in other formats.

use super::output::{Destination, Output};
use super::{Exit, say, say_damage, usage};
use crate::report::{Format, export, perfetto, write_raw};
use crate::store::{self, Paths, Purpose, Record, Run};
use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::slice;

/// Write a stored run as CSV, JSON, Markdown or another tool's file
#[derive(clap::Args)]
pub struct ExportArgs {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// csv: one line per metric of each row, of every kind of run; csv-samples: one per measured
    /// iteration; csv-rows: one per row of timed runs; csv-latency: one per timed function of a
    /// row; json: everything; md: the tables; pr: at most 12 lines for a pull request, with the command to
    /// repeat it. For other tools: bmf (Bencher), gha-smaller and gha-bigger (github-action-benchmark),
    /// google-benchmark, hyperfine, perfetto (memory over time)
    #[arg(long, visible_alias = "format", value_name = "FORMAT", value_parser = PossibleValuesParser::new(Format::all().map(Format::name)).map(|name| format(&name)))]
    to: Format,
    #[command(flatten)]
    destination: Destination,
}

fn format(name: &str) -> Format {
    let named = Format::all().find(|format| format.name() == name);
    named.expect("clap accepts only the names of formats")
}

/// Runs `heapmark export`.
pub fn run(args: ExportArgs) -> Result<Exit> {
    let to = args.to;
    let name = args.to.name();
    let destination = args.destination;
    let dir = store::find(&args.run).map_err(usage)?;
    let output = destination.made_of(slice::from_ref(&dir), &[])?;
    let run = store::read_for_tables(&dir, Paths::Published, |_| true)?;
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
    if to == Format::Perfetto {
        let series = store::series(&dir, &run.records);
        if series.is_empty() {
            refuse!(
                "this run has no memory over time, so there is nothing for {name}: heapmark run --series 1ms"
            );
        }
        output.put(perfetto(&series))?;
        return Ok(Exit::Done);
    }
    let exported = export(to, &run.head, &run.records).map_err(usage)?;
    exported.note.iter().for_each(say);
    output.put(exported.bytes)?;
    Ok(Exit::Done)
}

/// Writes a run in a raw format; the run must have been read with all figures.
pub fn write(output: &Output, to: Format, run: &Run) -> Result<()> {
    let head = &run.head;
    let records = &run.records;
    output
        .write(|out| write_raw(to, head, records, run.lines.records(), out))
        .map(drop)
}
