//! `heapmark report` on a run of a million samples: seconds, memory, size of the page, each
//! compared with its bar. The run is made from a small real one: every sample of it many times, as
//! other blocks with slightly other times, under more names. Not a test: the load of a machine must
//! not decide whether a change passes. Exits non-zero if a bar is missed.

use anyhow::{Context, Result, bail, ensure};
use heapmark::execute::Measurement;
use heapmark::plan::CellId;
use heapmark::store::{self, Purpose, Record, RunFile, Store};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

const SAMPLES: usize = 1_000_000;
const MOST_SECONDS: f64 = 20.0;
const MOST_MIB: f64 = 900.0;
const MOST_PAGE_MB: f64 = 3.0;

const HEAPMARK: &str = env!("CARGO_BIN_EXE_heapmark");

/// The real run: one allocator, its A/A copy and the null allocator, in ten cases.
const SMALL: &[&str] = &[
    "run",
    "-a",
    "glibc",
    "-w",
    "churn,churn-private,same-thread,larson,cross-vector",
    "-t",
    "1,2",
    "--blocks",
    "1",
    "--target-ms",
    "5",
    "--no-repeat",
];

/// Additional allocators of the large run.
const FURTHER: usize = 17;

const SEED: u64 = 1;

fn main() -> Result<ExitCode> {
    let folder =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).context("cannot make a folder")?;
    let (small, large) = (folder.path().join("small"), folder.path().join("large"));
    let end = Command::new(HEAPMARK)
        .args(SMALL)
        .arg("-o")
        .arg(&small)
        .output()
        .context("cannot start heapmark")?;
    ensure!(
        end.status.success(),
        "the small run failed: {}",
        String::from_utf8_lossy(&end.stderr)
    );
    let samples = enlarge(&small, &large)?;
    let bytes = large.join("samples.jsonl").metadata()?.len();
    println!("{samples} samples, {:.2} GB", bytes as f64 / 1e9);

    let (began, before) = (Instant::now(), children());
    let end = Command::new(HEAPMARK)
        .arg("report")
        .arg(&large)
        .output()
        .context("cannot start heapmark")?;
    let (seconds, usage) = (began.elapsed().as_secs_f64(), children());
    ensure!(
        end.status.success() && samples >= SAMPLES,
        "no report: {}",
        String::from_utf8_lossy(&end.stderr)
    );
    let page = large.join("report.html").metadata()?.len() as f64 / 1e6;
    // The peak of the report, as the small run is small.
    let peak_mib = usage.ru_maxrss as f64 / 1024.0;
    let bars = [
        ("seconds", seconds, MOST_SECONDS),
        ("MiB at most", peak_mib, MOST_MIB),
        ("MB page", page, MOST_PAGE_MB),
    ];
    for (what, ours, most) in bars {
        println!(
            "{ours:8.1} of {most} {what}{}",
            if ours > most { ": missed" } else { "" }
        );
    }
    println!("{:8.1} seconds of CPU time", cpu_s(&usage) - cpu_s(&before));
    Ok(if bars.iter().any(|(_, ours, most)| ours > most) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Resources used by all child processes that have been waited for.
fn children() -> libc::rusage {
    // SAFETY: `getrusage` fills a structure of plain numbers, for which zeros are valid.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    }
}

fn cpu_s(usage: &libc::rusage) -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Writes the large run; returns its number of samples.
fn enlarge(small: &Path, large: &Path) -> Result<usize> {
    let store::Run {
        mut head, records, ..
    } = store::read(small)?;
    let names = widen(&mut head)?;
    let samples: Vec<&Record> = records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample)
        .collect();
    let rows: usize = samples
        .iter()
        .map(|record| times(record, &names).len())
        .sum();
    if rows == 0 {
        bail!("the small run has no sample");
    }
    let blocks = SAMPLES.div_ceil(rows);
    head.plan.blocks = blocks as u32;
    drop(Store::create(large, &head)?);
    let file = large.join("samples.jsonl");
    let mut out = BufWriter::new(
        File::create(&file).with_context(|| format!("cannot write {}", file.display()))?,
    );
    for record in records
        .iter()
        .filter(|record| record.purpose != Purpose::Sample)
    {
        for name in times(record, &names) {
            out.write_all(store::line(&renamed(record, name, 0))?.as_bytes())?;
        }
    }
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    for block in 0..blocks as u32 {
        for record in &samples {
            for name in times(record, &names) {
                let mut other = renamed(record, name, block);
                if let Some(measurement) = &mut other.measurement {
                    scatter(measurement, &mut random);
                }
                out.write_all(store::line(&other)?.as_bytes())?;
            }
        }
    }
    out.flush()?;
    Ok(rows * blocks)
}

/// Adds copies of the only allocator that differ in name; returns the names of all.
fn widen(head: &mut RunFile) -> Result<Vec<String>> {
    let first = head
        .plan
        .allocators
        .first()
        .context("the small run has no allocator")?
        .clone();
    let info = head
        .allocators
        .iter()
        .find(|info| info.name == first)
        .context("it is not described")?
        .clone();
    for number in 1..=FURTHER {
        let mut other = info.clone();
        other.name = format!("{first}-{number:02}");
        head.plan.allocators.push(other.name.clone());
        head.allocators.push(other);
    }
    Ok(head.plan.allocators.clone())
}

/// The rows that a record stands for.
fn times<'a>(record: &'a Record, names: &'a [String]) -> Vec<&'a str> {
    match names.iter().any(|name| record.allocator == *name) {
        true => names.iter().map(String::as_str).collect(),
        false => vec![&record.allocator],
    }
}

fn renamed(record: &Record, name: &str, block: u32) -> Record {
    let mut other = record.clone();
    let case = format!("{}@{}", record.workload, record.threads);
    other.cell = match record.purpose {
        Purpose::Sample => CellId::of_block(&case, block, None, 0, name),
        Purpose::Check => CellId::of_check(&case, name),
        _ => record.cell.clone(),
    };
    (other.allocator, other.block) = (name.into(), block);
    other
}

/// Changes the times by up to 5 %.
fn scatter(measurement: &mut Measurement, random: &mut ChaCha8Rng) {
    for one in &mut measurement.iterations {
        let factor = random.random_range(0.95..1.05);
        one.wall_ns = (one.wall_ns as f64 * factor) as u64;
        one.user_ns = (one.user_ns as f64 * factor) as u64;
    }
}
