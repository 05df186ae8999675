//! The flags of every command that compares allocators.

use super::setting_row::SettingRow;
use crate::catalog::time::{SECONDS, between};
use crate::cmd::output::AnswerFormat;
use crate::plan::{AskedTurns, HugePages};
use clap::builder::RangedU64ValueParser;
use std::path::PathBuf;
use std::time::Duration;

/// What is compared, how long, and where it is stored.
#[derive(clap::Args)]
pub struct Comparison {
    /// Allocators: names, short names or patterns from `heapmark list allocators`, ./lib.so,
    /// NAME=/path/lib.so, or a commit, NAME=git:PATH@REF [default: the suite's, which are the main
    /// ones]
    #[arg(short, long, value_name = "A,...", value_delimiter = ',', value_parser = listed, help_heading = "Allocators")]
    pub allocators: Vec<String>,
    /// Allow a library of -a or --baseline to take a name of the catalogue, instead of heapmark's
    /// own allocator; `null` is never replaced
    #[arg(long, overrides_with = "replace", help_heading = "Allocators")]
    pub replace: bool,
    /// The allocator that the others are compared with [default: glibc]
    #[arg(long, value_name = "A", help_heading = "Allocators")]
    pub baseline: Option<String>,
    /// Number of blocks: each allocator runs each workload exactly this often, in fresh processes, unless --budget ends
    /// before
    #[arg(long, alias = "runs", value_name = "N", value_parser = blocks(), conflicts_with_all = ["precision", "max_blocks"], help_heading = "How long")]
    pub blocks: Option<u32>,
    /// Add blocks until half of each 95 % interval is at most this: 1%, 0.5%, ... [default: the
    /// suite's number of blocks; of try 1%, and up to 2.5% where a ratio is far from 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "How long")]
    pub precision: Option<f64>,
    /// Stop after N blocks [default: 40]
    #[arg(long, value_name = "N", value_parser = blocks(), help_heading = "How long")]
    pub max_blocks: Option<u32>,
    /// Start no block that would end after this time: 90s, 5min, 2h; a bare number: seconds [default of try: 3min, of
    /// suite quick 2.2min]
    #[arg(long, value_name = "TIME", value_parser = budget, help_heading = "How long")]
    pub budget: Option<Duration>,
    /// Leave out the A/A check (an identical copy of the baseline that shows this run's noise)
    #[arg(
        long,
        overrides_with = "no_aa_copy",
        help_heading = "Checks and controls"
    )]
    pub no_aa_copy: bool,
    /// Keep measurements that other programs disturbed, without repeating them
    #[arg(
        long,
        overrides_with = "no_repeat",
        help_heading = "Checks and controls"
    )]
    pub no_repeat: bool,
    /// Seed of every random choice; the same seed gives the same plan [default: random; 1
    /// if memory is measured, so that two runs request the same]
    #[arg(long, value_name = "N", help_heading = "Checks and controls")]
    pub seed: Option<u64>,
    /// A process that runs longer than this counts as hung: 90s, 5min; a bare number: seconds
    /// [default: 100 times the baseline, at least 20s]
    #[arg(long, value_name = "TIME", value_parser = patience, help_heading = "How long")]
    pub timeout: Option<Duration>,
    /// Transparent huge pages of the measured processes; each allocator is compared with itself
    /// without any, unless that is all that is asked for [default: as this machine is set, alone]
    #[arg(long, value_name = "WHICH", help_heading = "What is measured")]
    pub thp: Option<HugePages>,
    /// Compare each allocator in an aged heap with itself in a fresh one: blocks are allocated,
    /// replaced and freed before the clock starts, until P % of them are left
    #[arg(long, value_name = "P", value_parser = age, conflicts_with = "turns", help_heading = "What is measured")]
    pub age: Option<u8>,
    /// Who lets an allocator and the baseline take turns on one CPU, where one thread works at a time: `stop`, heapmark, or
    /// `slices`, the scheduler (Linux 6.12 and newer), whose turns end whenever something else runs there; `stop=20,80`: turns of
    /// these milliseconds [default: stop=10,40]
    #[arg(long, value_name = "BY", help_heading = "What is measured")]
    pub turns: Option<AskedTurns>,
    /// Let each process run alone, and compare wall times: for what waits, and to see what taking turns changes
    #[arg(long, conflicts_with = "turns", help_heading = "What is measured")]
    pub alone: bool,
    /// Run directory to create [default: heapmark-results/DATE-N]
    #[arg(short, long, value_name = "DIR", help_heading = "Results")]
    pub output: Option<PathBuf>,
    /// What is printed at the end
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with_all = ["dry_run", "cells", "cell"], help_heading = "Results")]
    pub format: AnswerFormat,
    /// Continue an interrupted run: a run directory, or `latest`; what is measured, and how, stands
    /// in it
    #[arg(long, value_name = "RUN", help_heading = "Results")]
    pub resume: Option<String>,
    /// Measure nothing if `heapmark doctor` has a warning: exit code 5
    #[arg(long, help_heading = "Checks and controls")]
    pub strict: bool,
    /// Repeat the checks that earlier runs have passed with the same library and the same work
    #[arg(long, help_heading = "Checks and controls")]
    pub check_again: bool,
    /// Print the plan and its estimated time, measure nothing
    #[arg(long, help_heading = "Results")]
    pub dry_run: bool,
    /// With --dry-run: also print every parameter, and every process that would run
    #[arg(long, requires = "dry_run", help_heading = "Results")]
    pub cells: bool,
    /// Run one cell of the plan (or of the run named by --resume) alone, print the output of the
    /// guest, store nothing
    #[arg(long, value_name = "ID", conflicts_with_all = ["output", "check_again", "dry_run", "cells"], help_heading = "Results")]
    pub cell: Option<String>,
    /// The larger study that this run is part of.
    #[arg(skip)]
    pub part_of: PartOf,
    /// Rows that another command makes; these replace all allocators of -a except the baseline.
    #[arg(skip)]
    pub settings: Vec<SettingRow>,
}

/// The larger study that a run is part of, which commands other than `run` and `try` make.
#[derive(Clone, Copy, Default, PartialEq)]
pub enum PartOf {
    /// No larger study.
    #[default]
    Nothing,
    /// A campaign: if it is interrupted, nothing of it is kept.
    Campaign,
    /// A history or a tuning, which prints what its runs show together, and how to continue it.
    History,
}

/// The least time that a flag may give.
const LEAST: Duration = Duration::from_millis(1);

fn blocks() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=10_000)
}

/// A word of a list, without the blank that may follow a comma.
pub fn listed(word: &str) -> Result<String, String> {
    match word.trim() {
        "" => Err("a name of the list is empty".into()),
        word => Ok(word.into()),
    }
}

/// Parses a timeout: `90s`, `5min`, or a bare number of seconds.
pub fn patience(text: &str) -> Result<Duration, String> {
    between(text, SECONDS, LEAST, Duration::from_secs(1_000_000))
}

/// Parses `1%` or `1` as a share.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse() {
        Ok(percent @ 0.01..=50.0) => Ok(percent / 100.0),
        _ => Err("expected 0.01% to 50%".into()),
    }
}

fn age(text: &str) -> Result<u8, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse() {
        Ok(0) => Err("0 % is a fresh heap, which runs beside each aged one anyway".into()),
        Ok(percent @ 1..=99) => Ok(percent),
        _ => Err("expected 1 to 99, the per cent of blocks that stay".into()),
    }
}

/// Parses a time limit, in which a bare number means seconds.
pub fn budget(text: &str) -> Result<Duration, String> {
    between(text, SECONDS, LEAST, Duration::from_secs(100_000_000))
}

/// Parses how long one process should measure; returns milliseconds.
pub fn target(text: &str) -> Result<u32, String> {
    let hour = Duration::from_secs(3600);
    Ok(between(text, ("milliseconds", 0.001), LEAST, hour)?.as_millis() as u32)
}
