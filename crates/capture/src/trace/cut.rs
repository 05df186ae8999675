//! `heapmark trace cut`: a range of a trace.

use super::{Exit, exit_after, in_file, open, print_written};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_core::catalog::time::time;
use heapmark_core::cmd::output::{Force, Output};
use heapmark_core::cmd::usage;
use heapmark_core::report::units;
use heapmark_trace::{Stretch, cut};
use std::ops::Range;
use std::path::PathBuf;

/// Write a range of a trace as a new trace; objects that were alive before it are allocated first
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("stretch").required(true))]
pub struct CutArgs {
    /// Trace
    trace: PathBuf,
    /// Range of events, as A..B: from A up to but not including B, counted from 0; either may be
    /// left out
    #[arg(long, value_name = "RANGE", group = "stretch")]
    events: Option<String>,
    /// Range of time since the start, as A..B: 0.5s..2min; bare numbers: seconds
    #[arg(long, value_name = "RANGE", group = "stretch")]
    time: Option<String>,
    /// New trace; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// Runs the command.
pub fn run(args: CutArgs) -> Result<Exit> {
    let stretch = match (&args.events, &args.time) {
        (Some(text), _) => range(text).map(Stretch::Events),
        (None, text) => times(text.as_deref().unwrap_or("..")).map(Stretch::Time),
    };
    let stretch = stretch.map_err(usage)?;
    let output = Output::instead(&args.output, args.force, [&args.trace])?;
    let (reader, long) = open("cut", &args.trace, output.is_stdout())?;
    let head = stretch.noted(reader.head());
    let written = output.write(|to| in_file(cut(reader, to, &stretch, &head), &args.trace))?;
    drop(long);
    let Some(cut) = written else {
        return Ok(Exit::Done);
    };
    if cut.within == 0 {
        let (events, ns) = cut.before;
        say!(
            "{}: no event lies in that stretch: {events} events, {} by its clock, lie before it; all that was written is what is alive then",
            args.trace.display(),
            units::duration(ns as f64)
        );
    }
    print_written(&output, &cut.totals)?;
    let rest = "what stands before it was written";
    Ok(exit_after(cut.damage, &args.trace, rest))
}

/// Parses a range of events: `A..B`, `A..` or `..B`.
pub fn range(text: &str) -> Result<Range<u64>> {
    ends(text, |end| {
        end.parse()
            .map_err(|_| anyhow!("`{end}` in `{text}` is no number of an event"))
    })
}

fn times(text: &str) -> Result<Range<u64>> {
    ends(text, |end| {
        time(end, 1.0)
            .and_then(|time| u64::try_from(time.as_nanos()).ok())
            .with_context(|| format!("`{end}` in `{text}` is no time, as 0.5, 90s, 2min"))
    })
}

fn ends(text: &str, end: impl Fn(&str) -> Result<u64>) -> Result<Range<u64>> {
    let Some((from, to)) = text.split_once("..") else {
        bail!("`{text}` is no range: write A..B, A.. or ..B")
    };
    let or = |text: &str, other| match text {
        "" => Ok(other),
        text => end(text),
    };
    let range = or(from, 0)?..or(to, u64::MAX)?;
    if range.is_empty() {
        bail!("`{text}` is a range of nothing: its end must be above its beginning");
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_of_events_or_of_seconds() {
        assert_eq!(
            [
                range("3..5").unwrap(),
                range("..5").unwrap(),
                range("3..").unwrap()
            ],
            [3..5, 0..5, 3..u64::MAX]
        );
        assert_eq!(times("0.5..2s").unwrap(), 500_000_000..2_000_000_000);
        assert_eq!(times("..").unwrap(), 0..u64::MAX);
        assert_eq!(times("500ms..1min").unwrap(), 500_000_000..60_000_000_000);
        for wrong in ["5", "5..3", "4..4", "a..", "..-1", "..18446744073709551616"] {
            assert!(
                range(wrong).is_err() && times(wrong).is_err() || wrong.ends_with("616"),
                "{wrong}"
            );
        }
        assert!(times("..nan").is_err() && range("..18446744073709551616").is_err());
    }
}
