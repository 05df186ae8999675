//! `heapmark trace finish`: turns captures into traces.

use super::{Exit, in_file};
use anyhow::{Error, Result};
use heapmark_core::cmd::long::Long;
use heapmark_core::cmd::output::{Force, Output};
use heapmark_core::cmd::print;
use heapmark_core::file::length;
use heapmark_core::report::units;
use heapmark_trace::ended;
use heapmark_trace::finish::{Finished, Unfinished, finish_all};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Make traces of captures: one order of events over all threads, and no addresses
#[derive(clap::Args)]
pub struct FinishArgs {
    /// Captures of `heapmark record --raw`; for a forked process, the parent's capture is looked up
    /// beside it
    #[arg(required = true, value_name = "CAPTURE")]
    captures: Vec<PathBuf>,
    /// Trace; `-` is stdout [default: beside the capture, with the suffix .trace]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// Leave out the words of the command line: they may hold secrets
    #[arg(long)]
    without_argv: bool,
}

/// Runs the command.
pub fn run(args: FinishArgs) -> Result<Exit> {
    if args.output.is_some() && args.captures.len() > 1 {
        refuse!("`-o` names one trace: give one capture, or leave it out");
    }
    // All outputs are checked first, so that one that cannot be written is found before any trace
    // is made.
    let output = |capture: &PathBuf| {
        let path = args
            .output
            .clone()
            .unwrap_or_else(|| capture.with_extension("trace"));
        Output::new(&path, args.force, [capture]).map(|output| (capture.clone(), output))
    };
    let mut outputs: HashMap<PathBuf, Output> =
        args.captures.iter().map(output).collect::<Result<_>>()?;
    let mut finished = HashMap::new();
    let long = finishing("trace finish", &args.captures);
    let mut each =
        |capture: Unfinished| into_file(capture, args.without_argv, &mut outputs, &mut finished);
    finish_all(&args.captures, long.done(), &mut each);
    drop(long);
    let mut end = Exit::Done;
    let mut failed = None;
    // Results are printed in the order of the arguments, even if one capture is of another one's parent.
    for capture in &args.captures {
        let (output, finished) = match finished.remove(capture) {
            Some(Ok(Some(ended))) => ended,
            Some(Err(error)) => {
                say_earlier(failed.replace(error));
                continue;
            }
            // The capture was named twice, or was not read to its end.
            None | Some(Ok(None)) => continue,
        };
        tell(capture, &finished);
        if !output.is_stdout() {
            print(format!(
                "{}: {}\n",
                output.path().display(),
                summary(&finished)
            ))?;
        }
        if !finished.damage.is_empty() {
            end = Exit::Damaged;
        }
    }
    failed.map_or(Ok(end), Err)
}

/// Progress of finishing captures: it takes time in proportion to their size.
pub fn finishing(what: &str, captures: &[PathBuf]) -> Long {
    let bytes = captures.iter().map(length).sum();
    let what = match captures {
        [only] => format!("{what} {}", only.display()),
        _ => format!("{what}, {} captures", captures.len()),
    };
    Long::new(what, bytes)
}

/// If several captures failed, the last fault is the command's result; the earlier ones are printed
/// before.
pub fn say_earlier(fault: Option<Error>) {
    fault.iter().for_each(|fault| say!("{fault:#}"));
}

/// The destination and content of each trace; `None` if its capture was not read to its end.
type FinishedCaptures = HashMap<PathBuf, Result<Option<(Output, Finished)>>>;

/// Makes the traces of a capture and of its children.
fn into_file(
    mut capture: Unfinished,
    without_argv: bool,
    outputs: &mut HashMap<PathBuf, Output>,
    ended: &mut FinishedCaptures,
) {
    let path = capture.path().to_path_buf();
    let Some(output) = outputs.remove(&path) else {
        return;
    };
    capture.without_argv = without_argv;
    let written = output.write(|to| {
        let finished = capture.finish(to, &mut |child| {
            into_file(child, without_argv, outputs, ended)
        });
        in_file(finished, &path)
    });
    ended.insert(path, written.map(|finished| Some((output, finished?))));
}

/// Prints how many objects were inherited, why the recording ended early, and warnings.
fn tell(capture: &Path, finished: &Finished) {
    let inherited = (finished.inherited > 0).then(|| {
        format!(
            "{} objects come from the parent process; the trace begins with them",
            finished.inherited
        )
    });
    for line in inherited
        .into_iter()
        .chain(ended(&finished.head))
        .chain(warnings(finished))
    {
        say!("{}: {line}", capture.display());
    }
}

/// The line about a trace: `18390000 events, 9195000 allocations, threads: 1; 1.55 B per event, 0.02 in the file`.
fn summary(finished: &Finished) -> String {
    let totals = &finished.totals;
    let each = |bytes: u64| units::digits(bytes as f64 / totals.events.max(1) as f64);
    format!(
        "{} events, {} allocations, threads: {}; {} B per event, {} in the file",
        totals.events,
        totals.allocations,
        totals.threads,
        each(totals.raw_bytes),
        each(totals.file_bytes)
    )
}

/// Warnings about what is damaged or missing, one line each.
pub fn warnings(finished: &Finished) -> Vec<String> {
    let mut lines: Vec<String> = finished
        .damage
        .iter()
        .map(|damage| format!("damaged: {damage}"))
        .collect();
    let mended = &finished.mended;
    let inner = finished.head.number("end.inner-calls").unwrap_or(0);
    let counts = [
        (finished.lost, "events are lost"),
        (
            mended.unknown,
            "objects ended that had begun before the recording, or unseen by it; they are left out",
        ),
        (
            mended.unseen,
            "objects ended unseen (something frees past the recorder: RTLD_DEEPBIND?); they end where their address is used again",
        ),
        (
            finished.unknown_uses,
            "calls were about objects from before the recording; they are left out",
        ),
        (
            if inner > finished.own_events() {
                inner
            } else {
                0
            },
            "calls were made within calls of the allocator, more than are on record: by itself, or by handlers of signals",
        ),
        (
            mended.repairs(),
            "events stood in an order that cannot have been, and were put right",
        ),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    lines.extend(counts.map(|(count, words)| format!("{count} {words}")));
    if finished.is_doubtful() {
        lines.push(format!(
            "WARNING: that is one in {}: the order of this trace is not to be trusted; record again, best on one CPU (taskset -c 0)",
            units::digits(finished.totals.events as f64 / finished.doubts() as f64)
        ));
    }
    lines
}
