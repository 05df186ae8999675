//! The export formats of a run. Each format has its own file; this one lists them.

use super::other_tools::Foreign;
use super::text::count;
use super::{csv, json, other_tools, pr, run as tables_of};
use crate::analyse::{analyse, tables};
use crate::store::{Record, RunFile};
use anyhow::{Result, bail};
use std::io::Write;

/// The export formats of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Derived: one line per metric of each row, of every kind of run.
    Csv,
    /// Raw: one line per iteration of each sample.
    Samples,
    /// Derived: one line per row of the tables.
    Rows,
    /// Derived: one line per function of each row of a run that timed single calls.
    Latency,
    /// Everything, in one document.
    Json,
    /// The tables as on the terminal.
    Markdown,
    /// At most 12 lines for a pull request.
    Pr,
    /// Bencher Metric Format.
    Bmf,
    /// github-action-benchmark: times and memory.
    GithubActionSmaller,
    /// github-action-benchmark: rates.
    GithubActionBigger,
    /// The JSON of Google Benchmark.
    GoogleBenchmark,
    /// The JSON of hyperfine.
    Hyperfine,
    /// Memory over time, as counter tracks of Perfetto; made of the files in `series/`.
    Perfetto,
}

/// A run in a format for files.
pub struct Exported {
    /// The content of the file, which is text.
    pub bytes: Vec<u8>,
    /// Which rows the format leaves out, in a line.
    pub note: Option<String>,
}

/// The formats and their names on the command line, in the order in which messages list them.
const NAMES: &[(Format, &str)] = &[
    (Format::Csv, "csv"),
    (Format::Samples, "csv-samples"),
    (Format::Rows, "csv-rows"),
    (Format::Latency, "csv-latency"),
    (Format::Json, "json"),
    (Format::Markdown, "md"),
    (Format::Pr, "pr"),
    (Format::Bmf, "bmf"),
    (Format::GithubActionSmaller, "gha-smaller"),
    (Format::GithubActionBigger, "gha-bigger"),
    (Format::GoogleBenchmark, "google-benchmark"),
    (Format::Hyperfine, "hyperfine"),
    (Format::Perfetto, "perfetto"),
];

impl Format {
    /// All formats, in the order in which messages list them.
    pub fn all() -> impl Iterator<Item = Format> {
        NAMES.iter().map(|(format, _)| *format)
    }

    /// The format's name on the command line.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(format, _)| *format == self)
            .expect("each format has a name")
            .1
    }

    /// Whether the format holds each record as it was measured: then [`write_raw`] needs only one record at a time.
    pub fn is_raw(self) -> bool {
        matches!(self, Format::Samples | Format::Json)
    }
}

/// Writes a run in a raw format. The tables need the records without their details, and all at
/// once.
pub fn write_raw(
    format: Format,
    run: &RunFile,
    records: &[Record],
    whole: impl Iterator<Item = Result<Record>>,
    out: impl Write + Send,
) -> Result<()> {
    let analysis = analyse(run, records);
    match format {
        Format::Samples => csv::samples(&analysis, whole, out),
        Format::Json => json::json(run, &analysis, whole, out),
        derived => bail!("{} is made of tables, not of records", derived.name()),
    }
}

/// A run in a format for files. Fails if the format can hold nothing of the run.
pub fn export(format: Format, run: &RunFile, records: &[Record]) -> Result<Exported> {
    let name = format.name();
    let mut note = None;
    if format.is_raw() {
        let mut bytes = Vec::new();
        let whole = records.iter().cloned().map(Ok);
        write_raw(format, run, records, whole, &mut bytes)?;
        return Ok(Exported { bytes, note });
    }
    // An empty file would pass for a run without regressions.
    let mut some = |foreign: Foreign| {
        if foreign.rows == 0 {
            bail!("no row of this run fits into {name}: json has all data of the run");
        }
        let left_out = foreign.left_out;
        let of = count(foreign.rows + left_out, "row");
        note = (left_out > 0).then(|| {
            format!(
                "{left_out} of {of} left out: {name} cannot represent them; csv-rows has the reasons"
            )
        });
        Ok(foreign.text)
    };
    let analysis = || analyse(run, records);
    let text = match format {
        Format::Csv => csv::tables(&tables(run, records)),
        Format::Rows => csv::rows(&analysis()),
        Format::Latency => csv::latency(&analysis()),
        Format::Markdown => tables_of::markdown(run, &analysis()),
        Format::Pr => pr::pr(run, &analysis()),
        Format::Bmf => some(other_tools::bmf(&analysis()))?,
        Format::GithubActionSmaller => some(other_tools::smaller_is_better(&analysis()))?,
        Format::GithubActionBigger => some(other_tools::bigger_is_better(&analysis()))?,
        Format::GoogleBenchmark => some(other_tools::google_benchmark(run, &analysis(), records))?,
        Format::Hyperfine => some(other_tools::hyperfine(run, &analysis(), records))?,
        _ => bail!("{name} is not made of tables"),
    };
    // An empty file would pass for a valid result.
    if text.is_empty() && format == Format::Latency {
        bail!(
            "this run has timed no single calls, so there is nothing for csv-latency: heapmark run --latency"
        );
    }
    if text.is_empty() {
        bail!(
            "this run has no table of times, so there is nothing for {name}: csv has what it has measured"
        );
    }
    let bytes = text.into();
    Ok(Exported { bytes, note })
}
