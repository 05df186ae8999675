//! A long capture through `heapmark trace finish`, `check`, `stats` and `cut`: events per second, peak memory, bytes per event, each
//! held against its bar. The events are made up, from a seed: four threads that allocate and free among 100 000 live objects, a fifth
//! of them another thread's. `cargo bench --bench trace -- 1e9` for more than the usual 1e8. Ends non-zero where a bar is missed.

#[path = "../tests/support/captured.rs"]
mod captured;

use anyhow::{Context, Result, bail, ensure};
use captured::Captured;
use heapmark_wire::capture::Event;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Instant;

const EVENTS: u64 = 100_000_000;
const STREAMS: u32 = 4;
const LIVE: usize = 100_000;
const SEED: u64 = 7;

const LEAST_MILLIONS_PER_SECOND: f64 = 10.0;
const MOST_BYTES_PER_EVENT: [(&str, f64); 3] = [("capture", 5.0), ("trace raw", 2.0), ("trace stored", 0.5)];

fn main() -> Result<ExitCode> {
    let asked = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let events =
        asked.map_or(Ok(EVENTS as f64), |word| word.parse()).context("the number of events is no number")? as u64;
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).context("cannot make a folder")?;
    let at = |name: &str| folder.path().join(name);
    make(&at("a.cap"), events);
    let bytes = |name: &str| at(name).metadata().map_or(0.0, |file| file.len() as f64 / events as f64);
    println!("{events} events, {:.2} B each in the capture", bytes("a.cap"));

    let mut missed = 0;
    let middle = format!("{}..{}", events / 2, events / 2 + events / 10);
    let commands: [(&str, &[&str]); 4] = [
        ("finish", &["finish", "a.cap"]),
        ("check", &["check", "a.trace"]),
        ("stats", &["stats", "a.trace"]),
        ("cut", &["cut", "a.trace", "--events", &middle, "-o", "b.trace"]),
    ];
    println!("{:8}{:>14}{:>12}{:>12}", "", "M events/s", "CPU s", "peak MiB");
    for (name, args) in commands {
        let (cpu_s, peak_mib) = run(folder.path(), args)?;
        let rate = events as f64 / cpu_s / 1e6;
        // The bar of memory: what is alive, and a room for everything else.
        let most_mib = 64.0 + LIVE as f64 * 64.0 / f64::from(1 << 20);
        let slow = name == "finish" && rate < LEAST_MILLIONS_PER_SECOND;
        let wrong =
            [(slow, "too slow"), (peak_mib > most_mib, "too large")].map(|(is, word)| if is { word } else { "" });
        println!("{name:8}{rate:14.1}{cpu_s:12.2}{peak_mib:12.1}  {}", wrong.join(" ").trim());
        missed += usize::from(slow) + usize::from(peak_mib > most_mib);
    }
    println!("{:.3} B per event stored", bytes("a.trace"));
    println!(
        "bars: {LEAST_MILLIONS_PER_SECOND} M events/s of CPU time in finish, 64 MiB + 64 B per live object, {MOST_BYTES_PER_EVENT:?} B per event"
    );
    missed += usize::from(bytes("a.cap") > MOST_BYTES_PER_EVENT[0].1);
    Ok(if missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// CPU seconds and peak memory of one command.
fn run(folder: &Path, args: &[&str]) -> Result<(f64, f64)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    let began = Instant::now();
    let child = child.arg("trace").args(args).current_dir(folder).spawn().context("cannot start heapmark")?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and nobody else waits for it; both places are ours to write.
    let usage = unsafe {
        ensure!(libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) > 0, "cannot wait for heapmark");
        usage.assume_init()
    };
    if !ExitStatus::from_raw(status).success() {
        bail!("{args:?} failed after {:?}", began.elapsed());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok((seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss as f64 / 1024.0))
}

/// Writes the capture.
fn make(path: &Path, events: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut captured = Captured::new(path, STREAMS, &[]);
    // Places of 256 bytes, as an allocator's size class has them: the one that was freed last is used next.
    let mut free: Vec<u64> = (0..LIVE as u64 * 2).rev().map(|place| 0x5000_0000_0000 + place * 256).collect();
    let mut live: Vec<Vec<u64>> = vec![Vec::new(); STREAMS as usize];
    let (mut stream, mut stamp, mut alive) = (0, 0, 0);
    for _ in 0..events {
        let word = random.next_u64();
        // Threads take turns of some events.
        if word & 15 == 0 {
            stream = (word >> 8) as u32 % STREAMS;
        }
        stamp += 2 + (word >> 16 & 7);
        let fills = alive < LIVE / 2 || (alive < LIVE && word >> 20 & 1 == 0);
        // A fifth of the frees is of what another thread has.
        let owner = if (word >> 24) % 5 == 0 { (stream + 1) % STREAMS } else { stream } as usize;
        match live[owner].len() {
            count if !fills && count > 0 => {
                // Mostly what is young.
                let back = (random.random_range(0..64usize)).min(count - 1);
                let address = live[owner].swap_remove(count - 1 - back);
                free.push(address);
                alive -= 1;
                captured.put(stream, &Event::Free { address, operator: false }, stamp);
            }
            _ => {
                let Some(address) = free.pop() else { continue };
                live[stream as usize].push(address);
                alive += 1;
                let size = 16 << (word >> 32 & 3) | (word >> 40 & 8);
                captured.put(stream, &Event::Malloc { address, size, operator: false }, stamp);
            }
        }
    }
    captured.end();
}
