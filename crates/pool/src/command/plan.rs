//! `heapmark campaign plan`.

use crate::campaign::{Campaign, CampaignPlan, MOST_JOBS, MOST_MACHINES};
use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};
use heapmark_core::cmd::run::RunArgs;
use heapmark_core::cmd::{Exit, catalog, usage};
use std::path::PathBuf;

/// Write a campaign: a number of runs of one command line, each on a machine
#[derive(clap::Args)]
pub struct PlanArgs {
    /// Directory to create; all machines must see it
    #[arg(short, long, value_name = "DIR", required = true)]
    output: PathBuf,
    /// Machines
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_MACHINES.into()))]
    machines: u32,
    /// Runs of each machine, at different times: no single run shows what a start of a machine does
    /// to a ratio
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=MOST_JOBS.into()))]
    jobs: u32,
    /// Seed of the first run; each has its own
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// What follows `heapmark run`: a suite, workloads, allocators, blocks
    #[arg(last = true, value_name = "RUN FLAGS")]
    run: Vec<String>,
}

/// Flags that each shard gets from its campaign, or that make no run.
const TAKEN: [&str; 6] = ["output", "seed", "resume", "dry_run", "cells", "cell"];

/// Flags that measure something in place of time.
const IN_PLACE_OF_TIME: [&str; 4] = ["latency", "counter", "retained", "limit"];

/// Why runs of such flags, suites and workloads make no campaign.
const NOT_POOLED: &str =
    "a campaign pools what timed processes have: wall time, CPU time and memory";

/// Runs the command.
pub fn run(args: PlanArgs) -> Result<Exit> {
    refuse_memory(&parsed(&args.run).map_err(usage)?)?;
    let plan = CampaignPlan::new(args.run, args.machines, args.jobs, args.seed);
    let campaign = Campaign::create(&args.output, plan).map_err(usage)?;
    let (dir, plan) = (campaign.dir().display(), &campaign.plan);
    say!(
        "{} runs. On a machine: heapmark campaign run {dir} --shard K, K from 0 to {}; all of them: heapmark campaign submit {dir}",
        plan.shards().len(),
        plan.shards().end - 1
    );
    Ok(Exit::Done)
}

/// Refuses suites and workloads that measure memory alone.
fn refuse_memory(line: &RunArgs) -> Result<()> {
    let catalog = catalog()?;
    let suite = catalog.suite(&line.suite).map_err(usage)?;
    // Traces and programs are no workloads of the catalogue, and are timed.
    let is_for_memory = |word: &&String| {
        let found = catalog.workloads(word).unwrap_or_default();
        found.iter().any(|workload| workload.is_for_memory())
    };
    let what = match &line.workloads[..] {
        [] => suite.memory.then(|| format!("suite {}", suite.name)),
        words => words
            .iter()
            .find(is_for_memory)
            .map(|word| format!("-w {word}")),
    };
    match what {
        Some(what) => {
            refuse!("{what} measures memory alone, and {NOT_POOLED}: choose what is timed")
        }
        None => Ok(()),
    }
}

/// The flags of `heapmark run`, as that command would read them.
pub fn parsed(flags: &[String]) -> Result<RunArgs> {
    let line = RunArgs::augment_args(Command::new("heapmark run").no_binary_name(true));
    let matches = line.try_get_matches_from(flags)?;
    let is_given = |flag: &str| matches.value_source(flag) == Some(ValueSource::CommandLine);
    if let Some(flag) = TAKEN.into_iter().find(|flag| is_given(flag)) {
        let flag = flag.replace('_', "-");
        bail!(
            "--{flag} does not belong into a campaign: each of its runs gets a place and a seed of its own"
        );
    }
    if let Some(flag) = IN_PLACE_OF_TIME.into_iter().find(|flag| is_given(flag)) {
        bail!("--{flag} measures something in place of time, and {NOT_POOLED}: leave it out");
    }
    Ok(RunArgs::from_arg_matches(&matches)?)
}
