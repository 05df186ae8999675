//! `heapmark which`: reads the flags, looks at processes, and prints what was seen.

use crate::held::HeldMemory;
use crate::look::ProcessView;
use crate::process::{Process, has_gone};
use crate::report;
use crate::started::{self, Started};
use anyhow::Result;
use heapmark_core::catalog::time::{SECONDS, between};
use heapmark_core::catalog::{Allocator, Catalog, did_you_mean};
use heapmark_core::cmd::output::AnswerFormat;
use heapmark_core::cmd::{Exit, catalog, print, print_json, screen};
use heapmark_core::report::render;
use serde::Serialize;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Look at a running process: which allocator serves it, which settings reached it, what it holds
#[derive(clap::Args)]
#[command(
    after_help = "Reads /proc only: nothing is stopped, attached to or written to. Your own processes, or all as root (in a container, with CAP_SYS_PTRACE). What is \
                  not read in the process itself is said to be not known."
)]
pub struct WhichArgs {
    /// Numbers of processes
    #[arg(value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pids: Vec<i32>,
    /// Exit with code 3 if another allocator serves one of the processes, or if that is not known
    #[arg(long, value_name = "ALLOCATOR")]
    expect: Option<String>,
    /// Print a line of what the process holds at this interval, until it ends
    #[arg(long, value_name = "TIME", value_parser = interval, conflicts_with_all = ["expect", "command"])]
    watch: Option<Duration>,
    /// With a command: look at it for this long, and then end it [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = interval, requires = "command")]
    after: Option<Duration>,
    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// Start this command, look at all its processes, and end them
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pids")]
    command: Vec<OsString>,
}

fn interval(text: &str) -> Result<Duration, String> {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    between(text, SECONDS, Duration::from_millis(100), DAY)
}

/// A line of `--watch`.
#[derive(Serialize)]
struct WatchLine {
    pid: i32,
    after_ns: u64,
    threads: u64,
    memory: HeldMemory,
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    /// Whether the expected allocator serves all processes; null if none was expected.
    as_expected: Option<bool>,
    processes: &'a [ProcessView],
    /// Processes of a command that could not be judged, as one line each.
    closed: &'a [String],
}

/// Runs the command.
pub fn run(args: WhichArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let expected = args
        .expect
        .as_deref()
        .map(|word| family(word, catalog))
        .transpose()?;
    if let Some(every) = args.watch {
        let [pid] = args.pids[..] else {
            refuse!("--watch is for one process: heapmark which --watch 10s PID");
        };
        return watch(pid, every, args.format);
    }
    let known = &catalog.allocators;
    let Started { looks, closed } = match (&args.pids[..], &args.command[..]) {
        ([], []) => {
            refuse!("name a process, or a command: heapmark which PID, heapmark which -- COMMAND")
        }
        ([], command) => {
            started::looks(command, args.after.unwrap_or(Duration::from_secs(2)), known)?
        }
        (pids, _) => {
            let looks = pids.iter().map(|pid| ProcessView::at(*pid, known));
            let closed = Vec::new();
            looks
                .collect::<Result<Vec<ProcessView>>>()
                .map(|looks| Started { looks, closed })?
        }
    };
    let unexpected: Vec<&ProcessView> = expected
        .iter()
        .flat_map(|family| looks.iter().filter(|look| !look.is_served_by(family)))
        .collect();
    match args.format {
        AnswerFormat::Json => print_json(&Answer {
            as_expected: expected
                .as_ref()
                .map(|_| unexpected.is_empty() && closed.is_empty()),
            processes: &looks,
            closed: &closed,
        })?,
        AnswerFormat::Text => print(render::terminal(&report::looks(&looks), screen()) + "\n")?,
    }
    for line in &closed {
        say!("heapmark: {line}");
    }
    for look in &unexpected {
        let expected = args.expect.as_deref().unwrap_or_default();
        say!("expected {expected}: {}", report::headline(look));
    }
    // If a process could not be judged, its allocator is not known.
    let is_unknown = expected.is_some() && !closed.is_empty();
    Ok(Exit::Condition.when(is_unknown || !unexpected.is_empty()))
}

/// The family of an expected allocator.
fn family(word: &str, catalog: &Catalog) -> Result<String> {
    /// Allocators that are not in the catalogue.
    const OTHERS: [&str; 2] = ["musl", "go"];
    match word {
        "go" => return Ok(heapmark_core::build::command::GO.to_owned()),
        "musl" => return Ok(word.to_owned()),
        _ => {}
    }
    let is_family = |allocator: &Allocator| allocator.family == word;
    if catalog.allocators.iter().any(is_family) {
        return Ok(word.to_owned());
    }
    let is_it = |allocator: &&Allocator| {
        allocator.name == word || allocator.aliases.iter().any(|alias| alias == word)
    };
    let meant: Vec<&Allocator> = catalog.allocators.iter().filter(is_it).collect();
    match meant[..] {
        [one] if one.name != one.family => refuse!(
            "--expect {word}: which tells allocators apart, not their versions or builds: --expect {}",
            one.family
        ),
        [first, ..] => return Ok(first.family.clone()),
        [] => {}
    }
    let families = catalog
        .allocators
        .iter()
        .map(|allocator| allocator.family.as_str());
    let hint = did_you_mean(word, families.chain(OTHERS));
    refuse!("--expect: no allocator `{word}`{hint}: see `heapmark list allocators`");
}

fn watch(pid: i32, every: Duration, format: AnswerFormat) -> Result<Exit> {
    let first = Process::of(pid)?;
    let began = Instant::now();
    for turn in 1_u32.. {
        let look = || -> Result<(Process, HeldMemory)> {
            first.is_still_there()?;
            let process = Process::of(pid)?;
            let held = HeldMemory::by(&process)?;
            process.is_still_there()?;
            Ok((process, held))
        };
        let (process, memory) = match look() {
            Err(error) if has_gone(pid, &error) => {
                say!("{} has ended", first.title());
                return Ok(Exit::Done);
            }
            seen => seen?,
        };
        let watched = WatchLine {
            pid,
            after_ns: began.elapsed().as_nanos() as u64,
            threads: process.threads,
            memory,
        };
        match format {
            // JSON has one line per turn.
            AnswerFormat::Json => print(serde_json::to_string(&watched)? + "\n")?,
            AnswerFormat::Text => {
                let words = report::held(&watched.memory.resident, watched.threads);
                print(format!(
                    "+{:.0} s: {words}\n",
                    began.elapsed().as_secs_f64()
                ))?;
            }
        }
        // Times count from the beginning, so that the intervals do not drift.
        let next = every * turn;
        std::thread::sleep(next.saturating_sub(began.elapsed()));
    }
    Ok(Exit::Done)
}
