//! `heapmark noise`: compares an allocator with its own copy on this machine for some minutes, and reports what other methods of comparison
//! would have concluded from the same processes.

use super::run::comparison::target;
use super::run::resolve::named;
use super::run::{self, controls};
use super::{Exit, catalog, print, usage};
use crate::analyse::noise::{Habit, Level, Noise, PLANTED, Way, noise};
use crate::build;
use crate::catalog::{joined, time};
use crate::execute::Subject;
use crate::observe::machine;
use crate::plan::{AskedTurns, Plan, cases};
use crate::report::units;
use anyhow::{Result, bail};
use clap::ValueEnum;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Compare an allocator with its own copy, one after the other and in turns: how often this machine shows a difference that
/// does not exist, and how often it hides one that does
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

/// Runs `heapmark noise`.
pub fn run(args: NoiseArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let words = std::slice::from_ref(&args.allocator);
    let chosen = named(words, &[], None, catalog)?;
    let [(allocator, _)] = &chosen[..] else {
        let names = joined(chosen.iter().map(|(one, _)| &one.name), " and ");
        refuse!(
            "--allocator {}: means {names}: name one of them",
            args.allocator
        );
    };
    let allocator = allocator.clone();
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
    let alone = cases(&[workload], "quick", &[threads], cpus, &[]).map_err(usage)?;
    let plan = Plan {
        seed: args.seed,
        blocks: args.blocks.unwrap_or(ENDLESS),
        budget_s: args.blocks.is_none().then_some(args.minutes.as_secs_f64()),
        baseline: name.clone(),
        target_ms: args.target_ms,
        cases: alone.clone(),
        allocators: vec![name.clone()],
        aa_copy: Some(copy_name.clone()),
        ..Plan::default()
    };
    let mut plan = plan.in_turns(&AskedTurns::default());
    // Both ways of measuring repeat the same work by turns; a habit needs only the processes that run alone.
    plan.cases
        .retain(|case| case.turns.is_some() && args.habit.is_none());
    for case in &mut plan.cases {
        case.workload += "-in-turns";
    }
    plan.cases.splice(0..0, alone);
    let name_of_case = plan.cases[0].label();
    let (stored, whole) = run::nested("noise", plan, vec![original, copy], args.output)?;
    let noises = noise(&stored.records, &name, &copy_name);
    let name = format!("{name} on {name_of_case}");
    print(told(&name, &noises, args.habit))?;
    Ok(match whole {
        true if !run::all_ok(&stored) => Exit::NotAllOk,
        true => Exit::Failed.when(noises.is_empty()),
        false => Exit::Interrupted,
    })
}

fn told(name: &str, noises: &[Noise], only: Option<Habit>) -> String {
    let mut text = format!("\n{name} against its own copy:\n\n");
    let head = format!("finds a true {:.0} %", PLANTED * 100.0);
    let columns = ["comparisons", "false alarms", &head, "95 % half-width"];
    let [comparisons, alarms, finds, width] = columns;
    let _ = writeln!(
        text,
        "  {:<62}  {comparisons}  {alarms}  {finds}  {width}",
        ""
    );
    let mut row = |what: String, level: &Level| {
        let [alarms, finds] = [level.false_alarms, level.finds_planted].map(units::percent);
        let width = level.half_width.map_or("-".into(), units::percent);
        let _ = writeln!(
            text,
            "  {what:<62}  {:>11}  {alarms:>12}  {finds:>17}  {width:>15}",
            level.comparisons
        );
    };
    for noise in noises {
        for (habit, level) in &noise.habits {
            if only.is_none_or(|only| only == *habit) {
                let value = habit.to_possible_value();
                let about = value.as_ref().and_then(|habit| habit.get_help());
                row(about.map(ToString::to_string).unwrap_or_default(), level);
            }
        }
    }
    for noise in noises.iter().filter(|_| only.is_none()) {
        let (unit, way) = match noise.way {
            Way::WallTime => ("blocks", "one after the other, wall time"),
            Way::CpuTime => ("blocks", "one after the other, CPU time"),
            Way::Turns => ("duets", "in turns on one CPU, CPU time"),
        };
        for (blocks, level) in &noise.levels {
            row(format!("{blocks} {unit}: {way}"), level);
        }
    }
    for noise in noises.iter().filter(|_| only.is_none()) {
        let unit = match noise.way {
            Way::WallTime => "blocks by wall time",
            Way::CpuTime => "blocks by CPU time",
            Way::Turns => "duets",
        };
        let _ = match noise.blocks_for_one_percent {
            Some(blocks) => writeln!(text, "For a half-width of 1 %: about {blocks} {unit}."),
            None => writeln!(text, "A half-width of 1 % is out of reach of {unit} here."),
        };
    }
    if noises.is_empty() {
        text += "  too few blocks for anything: give more --minutes\n";
    }
    text.push_str(
        "\nA comparison is a stretch of neighbouring processes; stretches overlap. The habits run all of one library first, then \
         all of the other. heapmark accepts 5 % false alarms.\n",
    );
    text
}
