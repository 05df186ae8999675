//! `heapmark selftest`: plants slowdowns, memory growth and stalls of known size into an allocator.
//! Reports which ones are found, and whether nothing is found if nothing was planted.

use super::{Exit, catalog, print, run};
use crate::analyse::{Analysis, Ratio, TableRow, Verdict, analyse};
use crate::build;
use crate::execute::Subject;
use crate::metric::WALL;
use crate::observe::machine;
use crate::plan::{AskedTurns, Plan, cases};
use crate::report::units;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Plant effects of known size into an allocator and see which ones are found: the resolution of
/// this machine
#[derive(clap::Args)]
pub struct SelftestArgs {
    /// Number of blocks
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(6..=1000))]
    blocks: u32,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Run directory to create [default: heapmark-results/DATE-N]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A fault that is planted into an allocator.
#[derive(Clone, Copy, PartialEq)]
enum Plant {
    /// Nothing is planted, so nothing must be found.
    Nothing,
    /// Additional steps in each call, in per cent.
    Instructions(u32),
    /// Accesses to memory that only the caches keep near, in per cent of the steps' time.
    Cache(u32),
    /// Additional memory, in per cent.
    Memory(u32),
}

const BASELINE: &str = "plain";
/// The steps of each call, under every allocator. They take most of a call's time, so a per cent of steps is a per cent of time.
const STEPS: u32 = 300;
/// How far a ratio of times may be from what was planted.
const TIME_TOLERANCE: f64 = 0.005;
const EFFECTS: [(&str, Plant); 7] = [
    ("plain-again", Plant::Nothing),
    ("plus-1-percent", Plant::Instructions(1)),
    ("plus-2-percent", Plant::Instructions(2)),
    ("plus-5-percent", Plant::Instructions(5)),
    ("cache-1-percent", Plant::Cache(1)),
    ("memory-1-percent", Plant::Memory(1)),
    ("memory-5-percent", Plant::Memory(5)),
];
/// A workload that spends most of its time in calls of the allocator, and one with dense memory.
const TIME: &str = "churn-private";
const MEMORY: &str = "same-thread";
/// A workload whose requests are due at given times, and its parameters: 20,000 requests in a second.
const LATENCY: &str = "open-loop";
const DUE_PER_S: f64 = 20_000.0;
const SET: [&str; 3] = [
    "open-loop.capacity=40000",
    "open-loop.load=50",
    "open-loop.requests=10000",
];
/// The allocator with stalls: how long a stall lasts, after how many requests there is one, and how many blocks a request allocates on
/// average.
const STALLS: &str = "stalls";
const STALL_MS: u32 = 20;
const STALL_REQUESTS: f64 = 1000.0;
const BLOCKS_PER_REQUEST: f64 = 23.1;
/// How far the 99.9th percentile may be from the computed one, as a share.
const STALL_TOLERANCE: f64 = 0.2;

/// Runs `heapmark selftest`.
pub fn run(args: SelftestArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let (plant, _) = build::program::build(catalog.program("planted-effects")?)
        .context("nothing can be planted")?;
    let library = plant.folder.join("plant.so");
    let mut subjects = vec![subject(&library, BASELINE, Plant::Nothing)?];
    for (name, plant) in EFFECTS {
        subjects.push(subject(&library, name, plant)?);
    }
    let mut stalls = subject(&library, STALLS, Plant::Nothing)?;
    let every = STALL_REQUESTS * BLOCKS_PER_REQUEST;
    stalls.allocator.environment.extend([
        ("PLANT_STALL_MS".to_owned(), STALL_MS.to_string()),
        ("PLANT_STALL_EVERY".to_owned(), every.to_string()),
    ]);
    subjects.push(stalls);
    let name = |subject: &Subject| subject.allocator.name.clone();
    let workloads = [TIME, MEMORY, LATENCY].map(|name| catalog.workloads(name));
    let workloads = workloads.into_iter().collect::<Result<Vec<_>>>()?.concat();
    let set = SET.map(|change| change.parse().expect("a parameter and its value"));
    let mut plan = Plan {
        seed: args.seed,
        blocks: args.blocks,
        baseline: BASELINE.into(),
        target_ms: 150,
        cases: cases(&workloads, "quick", &[1], machine::usable_cpus(), &set)?,
        allocators: subjects.iter().map(name).collect(),
        repeats: true,
        ..Plan::default()
    }
    .in_turns(&AskedTurns::default());
    for case in plan.cases.iter_mut().filter(|case| case.workload != TIME) {
        case.turns = None;
    }
    let (stored, whole) = run::nested("selftest", plan, subjects, args.output)?;
    if !whole {
        return Ok(Exit::Interrupted);
    }
    let (text, good) = told(&analyse(&stored.head, &stored.records))?;
    print(text)?;
    Ok(Exit::Failed.when(!good))
}

fn subject(library: &Path, name: &str, plant: Plant) -> Result<Subject> {
    let mut allocator = build::library_of_file(name, library)?;
    // The planted effects wrap libc's functions.
    allocator.wrapper = true;
    let steps = match plant {
        Plant::Instructions(percent) => STEPS + STEPS * percent / 100,
        _ => STEPS,
    };
    let environment = &mut allocator.environment;
    environment.insert("PLANT_STEPS".into(), steps.to_string());
    match plant {
        Plant::Cache(percent) => {
            environment.insert("PLANT_CACHE_PERCENT".into(), percent.to_string())
        }
        Plant::Memory(percent) => environment.insert("PLANT_PERCENT".into(), percent.to_string()),
        Plant::Nothing | Plant::Instructions(_) => None,
    };
    let build::State::Ready(library) = build::state(&allocator, &[]) else {
        bail!("{name}: cannot be preloaded")
    };
    Ok(Subject::new(allocator, library))
}

/// What was found, as text, and whether every result is as expected.
fn told(analysis: &Analysis) -> Result<(String, bool)> {
    let mut text = format!(
        "Planted into glibc's malloc, {} blocks:\n\n",
        analysis.planned_blocks
    );
    let mut good = true;
    let mut finest = [None, None];
    for (name, plant) in EFFECTS {
        let memory = matches!(plant, Plant::Memory(_));
        let (workload, metric) = match memory {
            true => (MEMORY, "grown_bytes"),
            false => (TIME, WALL.key),
        };
        let (what, planted) = match plant {
            Plant::Nothing => ("nothing".into(), 0),
            Plant::Instructions(percent) => (format!("+{percent} % instructions"), percent),
            Plant::Cache(percent) => (format!("+{percent} % in caches"), percent),
            Plant::Memory(percent) => (format!("+{percent} % memory"), percent),
        };
        let numbers_of = |workload| numbers(analysis, workload, name);
        let of_metric = numbers_of(workload)?;
        let ratio = of_metric.ratio(metric);
        let mut found = is_found(of_metric.verdict(metric));
        if plant == Plant::Nothing {
            let dense = numbers_of(MEMORY)?;
            found |= [WALL.key, "grown_bytes"]
                .iter()
                .any(|metric| is_found(dense.verdict(metric)));
            found |= is_found(numbers_of(LATENCY)?.verdict("open_p99_ns"));
        }
        let expected = 1.0 + f64::from(planted) / 100.0;
        let is_off = |ratio: &Ratio| (ratio.ratio - expected).abs() > TIME_TOLERANCE;
        let wrong = match plant {
            Plant::Nothing => found,
            // Whether an effect of 1 % is found shows the resolution; neither result is wrong.
            Plant::Memory(percent) => percent > 1 && !found,
            Plant::Instructions(_) => !found || ratio.as_ref().is_none_or(is_off),
            // The added time is not compared: it depends on what else uses the caches.
            Plant::Cache(_) => !found,
        };
        good &= !wrong;
        if found && plant != Plant::Nothing {
            finest[usize::from(memory)].get_or_insert(what.clone());
        }
        let verdict = if found { "found" } else { "not found" };
        let mark = if wrong { "  WRONG" } else { "" };
        writeln!(
            text,
            "  {what:<16} {:<24} {verdict}{mark}",
            ratio.as_ref().map_or("-".into(), words)
        )?;
    }
    let (line, as_computed) = stalls(analysis)?;
    text += &line;
    good &= as_computed;
    let [time, memory] = finest.map(|one| one.unwrap_or_else(|| "none".into()));
    writeln!(text, "\nSmallest effects found here: {time}; {memory}.")?;
    text.push_str(if good {
        "What was not planted was not found.\n"
    } else {
        "WRONG: what must be found was not, or what must not be found was. Do not trust small \
         differences here.\n"
    });
    Ok((text, good))
}

/// The effect of the stalls on latency, and whether it is as expected: a request that is due during a stall waits until the stall ends.
fn stalls(analysis: &Analysis) -> Result<(String, bool)> {
    let stall_ns = f64::from(STALL_MS) * 1e6;
    let waiting = DUE_PER_S * stall_ns / 1e9 / STALL_REQUESTS;
    let computed_ns = stall_ns * (1.0 - 0.001 / waiting);
    let numbers = numbers(analysis, LATENCY, STALLS)?;
    let median = |key: &str| {
        let missing = || format!("{STALLS} has no {key} on {LATENCY}");
        numbers.median(key).with_context(missing)
    };
    let found_ns = median("open_p99_9_ns")?;
    let good = (found_ns / computed_ns - 1.0).abs() <= STALL_TOLERANCE;
    let [p99, found, computed, closed] = [
        median("open_p99_ns")?,
        found_ns,
        computed_ns,
        median("closed_p99_ns")?,
    ]
    .map(units::duration);
    let line = format!(
        "  {STALL_MS} ms of {STALL_REQUESTS} requests: p99.9 {found}, computed {computed}; p99 {p99}, in a closed loop {closed}{}\n",
        if good { "" } else { "  WRONG" }
    );
    Ok((line, good))
}

fn numbers<'a>(analysis: &'a Analysis, workload: &str, allocator: &str) -> Result<&'a TableRow> {
    let mut rows = analysis
        .cases
        .iter()
        .filter(|case| case.workload == workload)
        .flat_map(|case| &case.rows);
    rows.find(|row| row.allocator == allocator)
        .filter(|row| row.has_run())
        .with_context(|| format!("{allocator} has no numbers on {workload}"))
}

fn is_found(verdict: Option<Verdict>) -> bool {
    matches!(
        verdict,
        Some(Verdict::Slower | Verdict::Faster | Verdict::Small)
    )
}

fn words(ratio: &Ratio) -> String {
    let interval = ratio
        .interval
        .map(|(low, high)| format!(" [{low:.4}, {high:.4}]"));
    format!("{:.4}{}", ratio.ratio, interval.unwrap_or_default())
}
