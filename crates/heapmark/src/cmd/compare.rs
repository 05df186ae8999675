//! `heapmark compare`: each row against the baseline of its run, or against the same row of an
//! earlier run.

use super::output::{Force, Output};
use super::run::comparison::percent;
use super::{Exit, say, say_damage, usage, wants_colour, width};
use crate::analyse::Verdict;
use crate::analyse::compare::{Comparison, Side, between, refusal, within};
use crate::build::hash_of_file;
use crate::metric::{self, Metric};
use crate::report::{self, Screen};
use crate::store;
use anyhow::{Result, anyhow, bail};
use std::path::{Path, PathBuf};

/// Compare rows within a run, or two runs, and fail if one got slower
#[derive(clap::Args)]
pub struct CompareArgs {
    /// One run: its allocators against its baseline. Two runs, the older first: each row against
    /// the same row of the older run
    #[arg(value_name = "RUN", default_value = "latest", num_args = 1..=2)]
    runs: Vec<String>,
    /// Exit with code 3 if a row has one of these verdicts; `withheld` counts as `unclear`
    #[arg(long, value_name = "WORD,...", value_enum, value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// Differences up to this are too small to matter
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    threshold: f64,
    /// What decides: wall, cpu (steadier on a busy machine), memory, or, of a run that counted or
    /// sampled memory, what it measured: instructions, mean_overhead, ...
    #[arg(long, value_name = "METRIC", default_value = "wall", value_parser = judged)]
    by: &'static Metric,
    /// Write this format instead of a table for the terminal
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<ComparisonFormat>,
    /// File to write; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// A metric that rows are judged by.
fn judged(name: &str) -> Result<&'static Metric, String> {
    let word = |metric: &Metric| metric.alias.unwrap_or(metric.key);
    let found = metric::judged().find(|metric| metric.is_named(name));
    found.ok_or_else(|| {
        format!(
            "expected one of {}",
            metric::judged().map(word).collect::<Vec<_>>().join(", ")
        )
    })
}

/// A verdict that fails a job.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Slower by more than the threshold; of what is no time: more of it
    Slower,
    /// The data cannot tell
    Unclear,
}

/// Formats of the table.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ComparisonFormat {
    /// Markdown
    Md,
    /// Everything, with all numbers
    Json,
}

/// Runs the command.
pub fn run(args: CompareArgs) -> Result<Exit> {
    let dirs: Vec<PathBuf> = args
        .runs
        .iter()
        .map(|run| store::find(run))
        .collect::<Result<_>>()
        .map_err(usage)?;
    let output = Output::new(
        &args.output,
        args.force,
        dirs.iter().map(|dir| store::head_of(dir)),
    )?;
    if let [old, new] = &dirs[..]
        && is_same(&store::samples_of(old), &store::samples_of(new))
    {
        let (old, new) = (old.display(), new.display());
        return Err(usage(anyhow!(
            "{old} and {new} hold the same samples: a run says nothing beside itself"
        )));
    }
    let runs: Vec<store::Run> = dirs.iter().map(|dir| read(dir)).collect::<Result<_>>()?;
    let sides: Vec<Side> = runs
        .iter()
        .map(|run| Side {
            head: &run.head,
            records: &run.records,
        })
        .collect();
    if let Some(why) = sides.iter().find_map(|side| refusal(side, args.by)) {
        return Err(usage(anyhow!("--by: {why}")));
    }
    let (old, comparison) = match &sides[..] {
        [old, new] => (Some(old.head), between(old, new, args.by, args.threshold)),
        [only, ..] => (None, within(only, args.by, args.threshold)),
        [] => bail!("no run to compare"),
    };
    let new = sides[sides.len() - 1].head;
    if comparison.rows.is_empty() {
        let why = comparison
            .left_out
            .first()
            .map_or("the run has only the baseline", |left| left.why.as_str());
        bail!("nothing can be compared: {why}");
    }
    let subject = report::ComparisonSubject {
        new,
        old,
        by: args.by,
        threshold: args.threshold,
    };
    let text = match args.to {
        Some(ComparisonFormat::Md) => report::comparison_markdown(subject, &comparison),
        Some(ComparisonFormat::Json) => report::comparison_json(subject, &comparison),
        None => report::comparison(
            subject,
            &comparison,
            Screen {
                width: width(),
                colour: wants_colour(&std::io::stdout()),
            },
        ),
    };
    output.put(&text)?;
    let failing = failing(&comparison, &args.fail_on, args.by);
    failing.iter().for_each(|line| say(line));
    Ok(if failing.is_empty() {
        Exit::Done
    } else {
        Exit::Condition
    })
}

/// Whether two files have the same content and are not empty.
fn is_same(one: &Path, other: &Path) -> bool {
    let length = |file: &Path| std::fs::metadata(file).map_or(0, |known| known.len());
    let hash = |file: &Path| hash_of_file(file).ok();
    length(one) > 0 && length(one) == length(other) && hash(one) == hash(other)
}

fn read(dir: &Path) -> Result<store::Run> {
    let run = store::read_for_tables(dir, |_| false)?;
    say_damage(dir, &run);
    Ok(run)
}

/// A line for each row that fails the job.
fn failing(comparison: &Comparison, on: &[FailOn], by: &Metric) -> Vec<String> {
    let fails = |verdict: Verdict| match verdict {
        Verdict::Slower => on.contains(&FailOn::Slower),
        Verdict::Unclear { .. } | Verdict::ShadowDiffers | Verdict::FloorHides => {
            on.contains(&FailOn::Unclear)
        }
        Verdict::Faster | Verdict::Same | Verdict::Small => false,
    };
    let mut lines = Vec::new();
    for row in &comparison.rows {
        let Some(verdict) = row.verdict.filter(|verdict| fails(*verdict)) else {
            continue;
        };
        let what = match verdict.word_of(by) {
            "more" => format!("takes more {}", by.noun),
            word => format!("is {word}"),
        };
        lines.push(format!(
            "--fail-on: {}@{}/{} {what}",
            row.workload, row.threads, row.allocator
        ));
    }
    lines
}
