//! `heapmark noise`: compares an allocator with its own copy on this machine for some minutes, and
//! tells what other ways to compare would have made of the same processes.

use super::run::comparison::target;
use super::run::{self, controls};
use super::{Exit, print, usage};
use crate::analyse::noise::{Habit, Noise, noise};
use crate::build;
use crate::catalog::{Catalog, time};
use crate::execute::Subject;
use crate::observe::machine;
use crate::plan::{Plan, cases};
use crate::report::units;
use anyhow::{Result, bail};
use clap::ValueEnum;
use std::fmt::Write;
use std::iter::zip;
use std::path::PathBuf;
use std::time::Duration;

/// Compare an allocator with its own copy: how often this machine shows a difference that does not
/// exist
#[derive(clap::Args)]
pub struct NoiseArgs {
    /// How long to measure: 5min, 90s; a bare number: minutes
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = minutes)]
    minutes: Duration,
    /// Allocator
    #[arg(short, long, value_name = "A", default_value = "glibc")]
    allocator: String,
    /// Workload
    #[arg(short, long, value_name = "NAME", default_value = "same-thread-reuse")]
    workload: String,
    /// Threads of the workload [default: 1]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Number of blocks, however long they take (instead of --minutes)
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = clap::value_parser!(u32).range(6..=10_000))]
    blocks: Option<u32>,
    /// How long one process should measure: 1s; a bare number: milliseconds
    #[arg(long, value_name = "TIME", default_value = "150ms", value_parser = target)]
    target_ms: u32,
    /// Only what this habit would have reported: all runs of one library, then all of the other
    #[arg(long = "as", value_name = "HABIT")]
    habit: Option<Habit>,
    /// Run directory to create [default: heapmark-results/DATE-N]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

fn minutes(text: &str) -> Result<Duration, String> {
    time::between(
        text,
        ("minutes", 60.0),
        Duration::from_secs(1),
        Duration::from_secs(36_000),
    )
}

/// More blocks than any time limit allows.
const ENDLESS: u32 = 10_000;

/// Runs the command.
pub fn run(args: NoiseArgs) -> Result<Exit> {
    let catalog = Catalog::load()?;
    let allocator = catalog.allocator(&args.allocator).map_err(usage)?.clone();
    let workloads = catalog.workloads(&args.workload).map_err(usage)?;
    let &[workload] = &workloads[..] else {
        refuse!(
            "--workload {}: {} workloads have such a name: give one",
            args.workload,
            workloads.len()
        );
    };
    if let Some(threads) = &workload.threads
        && args.threads.is_some()
    {
        refuse!(
            "--threads: {} has as many threads as its parameters say: {threads}",
            workload.name
        );
    }
    let library = match build::state(&allocator, &catalog.allocators) {
        build::State::Ready(library) => library,
        build::State::NotBuilt { line } | build::State::Absent { line, .. } => {
            bail!("{} is not ready: {line}", args.allocator)
        }
        build::State::Unsupported { why } | build::State::Refused { why } => {
            bail!("{}: {why}", args.allocator)
        }
    };
    let original = Subject::new(allocator, library);
    let copy = controls::copy_of(&original)?;
    let name = original.allocator.name.clone();
    let copy_name = copy.allocator.name.clone();
    let threads = args.threads.unwrap_or(1);
    let cpus = machine::usable_cpus();
    let plan = Plan {
        seed: args.seed,
        blocks: args.blocks.unwrap_or(ENDLESS),
        budget_s: args.blocks.is_none().then_some(args.minutes.as_secs_f64()),
        baseline: name.clone(),
        target_ms: args.target_ms,
        cases: cases(&[workload], "quick", &[threads], cpus, &[]).map_err(usage)?,
        allocators: vec![name.clone()],
        aa_copy: Some(copy_name.clone()),
        ..Plan::default()
    };
    let (stored, whole) = run::nested("noise", plan, vec![original, copy], args.output)?;
    let noises = noise(&stored.records, &name, &copy_name);
    let name = format!("{name} on {}", stored.head.plan.cases[0].label());
    print(told(&name, noises, args.habit))?;
    Ok(Exit::Interrupted.when(!whole))
}

fn told(name: &str, noises: [Option<Noise>; 2], only: Option<Habit>) -> String {
    let mut text = format!("\n{name} against its own copy:\n");
    for (clock, noise) in zip(["wall time", "CPU time"], noises) {
        let Some(noise) = noise else {
            let _ = writeln!(text, "\n{clock}: too few blocks for anything.");
            continue;
        };
        let _ = writeln!(text, "\n{clock}, {} blocks", noise.pairs);
        if only.is_none() {
            tell_levels(&mut text, &noise);
        }
        tell_habits(&mut text, &noise, only);
    }
    text.push_str(
        "\nA comparison is a stretch of neighbouring processes; stretches overlap. heapmark accepts 5 % false alarms.\n",
    );
    text
}

fn tell_levels(text: &mut String, noise: &Noise) {
    text.push_str("  blocks  comparisons  false alarms  95 % half-width\n");
    for level in &noise.levels {
        let _ = writeln!(
            text,
            "  {:>6}  {:>11}  {:>12}  {:>15}",
            level.blocks,
            level.comparisons,
            units::percent(level.false_alarms),
            units::percent(level.half_width)
        );
    }
    let _ = match noise.blocks_for_one_percent {
        Some(blocks) => writeln!(text, "  For a half-width of 1 %: about {blocks} blocks."),
        None => writeln!(text, "  A half-width of 1 % is out of reach here."),
    };
}

fn tell_habits(text: &mut String, noise: &Noise, only: Option<Habit>) {
    text.push_str(
        "  all runs of one library, then all of the other    comparisons  false alarms\n",
    );
    for level in &noise.habits {
        if only.is_some_and(|only| only != level.habit) {
            continue;
        }
        let habit = level.habit.to_possible_value();
        let about = habit.as_ref().and_then(|habit| habit.get_help());
        let _ = writeln!(
            text,
            "  {:<48}  {:>11}  {:>12}",
            about.map(ToString::to_string).unwrap_or_default(),
            level.comparisons,
            level.false_alarms.map_or("-".into(), units::percent)
        );
    }
}
