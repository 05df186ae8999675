//! The cost of the replay harness itself: nanoseconds per event under the null allocator, which
//! does nothing, compared with the bars.
//! `cargo bench --bench replay_floor [EVENTS]`.

use anyhow::{Result, ensure};
use heapmark::build::Library;
use heapmark::catalog::{Catalog, Iterations};
use heapmark::execute::{self, Guest, Job, Outcome, Subject};
use heapmark::plan::{Case, Cell, Target};
use heapmark_trace::compile::{Order, Recorded, compile};
use heapmark_trace::{Event, Fault, Token};
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Repetitions; the fastest one counts, since other load only slows a loop down.
const PROCESSES: u32 = 7;
const ROUNDS: u32 = 3;

/// Objects that are live at a time.
const LIVE: u64 = 10_000;

fn main() -> Result<()> {
    // Cargo passes its own flags to a bench.
    let events = std::env::args()
        .skip(1)
        .find_map(|word| word.parse().ok())
        .unwrap_or(2_000_000);
    let mut failed = false;
    for (name, consumer, bar) in [
        ("one thread", 0, 4.0),
        ("all freed by another thread", 1, 7.0),
    ] {
        let (cpu_ns, wall_ns, compile_s) = floor(events, consumer)?;
        failed |= cpu_ns > bar;
        println!(
            "replay floor, {name}: {cpu_ns:.2} ns of CPU per event (bar {bar}), {wall_ns:.2} ns of wall time; compiled at {:.1} million events/s",
            events as f64 / compile_s / 1e6
        );
    }
    ensure!(!failed, "a floor is above its bar");
    Ok(())
}

/// Mallocs and frees in turn; thread `consumer` makes the frees.
fn trace(events: u64, consumer: u32) -> impl Iterator<Item = Result<(u32, Event), Fault>> {
    let start = (consumer > 0).then_some((0, Event::ThreadStart { child: consumer }));
    let pairs = (0..events / 2).flat_map(move |index| {
        let freed = index
            .checked_sub(LIVE)
            .map(|index| Token { thread: 0, index });
        let malloc = (
            0,
            Event::Malloc {
                size: 16 + index * 7 % 240,
                operator: false,
            },
        );
        [
            Some(malloc),
            freed.map(|token| (consumer, Event::Free { token })),
        ]
    });
    start.into_iter().chain(pairs.flatten()).map(Ok)
}

fn floor(events: u64, consumer: u32) -> Result<(f64, f64, f64)> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("compiled");
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)?;
    let began = Instant::now();
    let head = compile(
        &mut trace(events, consumer),
        Order::Dependent,
        Recorded::default(),
        file,
    )?;
    let compile_s = began.elapsed().as_secs_f64();
    let compiled = path.display().to_string();
    let parameters = [
        ("compiled", compiled.as_str()),
        ("mode", "speed"),
        ("touch", "none"),
        ("skew", "1000000"),
        ("pace", "1"),
        ("packed_bytes", "0"),
        ("thread", "recorded"),
    ];
    let case = Case {
        workload: "trace:floor".into(),
        target: Target::Kernel("replay".into()),
        rows: Vec::new(),
        operation: String::new(),
        threads: head.threads_at_a_time as u32,
        oversubscribed: false,
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        cold: 1,
        iterations: Iterations::Fixed(ROUNDS),
        counts_purge: false,
        whole_process: false,
        caution: None,
        series_ns: None,
        factor: None,
        at_once: None,
        beside: false,
        turns: None,
    };
    let guest = Guest::find()?;
    let allocator = Catalog::load()?.allocator("null")?.clone();
    let subject = Subject {
        allocator,
        library: Library::default(),
        variant: None,
        refused: None,
    };
    let cell = Cell {
        id: "floor".into(),
        allocator: "null".into(),
        seed: 1,
        ..Cell::default()
    };
    let (mut cpu_ns, mut wall_ns) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..PROCESSES {
        let job = Job::new(&case, &cell, 1, ROUNDS, false)?;
        let stop = AtomicBool::new(false);
        let limit = Duration::from_secs(300);
        let attempt = execute::run(&guest, &subject, &job, limit, &stop, None)?;
        ensure!(attempt.outcome == Outcome::Ok, "{}", attempt.outcome);
        for round in attempt
            .measurement
            .iter()
            .flat_map(|measurement| measurement.measured())
        {
            let ops = round.ops as f64;
            cpu_ns = cpu_ns.min((round.user_ns + round.sys_ns) as f64 / ops);
            wall_ns = wall_ns.min(round.wall_ns as f64 / ops);
        }
    }
    Ok((cpu_ns, wall_ns, compile_s))
}
