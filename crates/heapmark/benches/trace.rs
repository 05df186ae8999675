//! A long capture through `heapmark trace finish`, `check`, `stats` and `cut`: events per second
//! and peak memory, each compared with its bar, and bytes per event. The events are generated from
//! a seed: four threads that allocate and free among 100 000 live objects, a fifth of them another
//! thread's. `cargo bench --bench trace -- 1e9` makes more than the usual 1e8. Exits non-zero if a
//! bar is missed.

#[path = "../tests/support/captured.rs"]
mod captured;

use anyhow::{Context, Result, ensure};
use captured::Captured;
use heapmark_wire::capture::Event;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

const EVENTS: u64 = 100_000_000;
const STREAMS: u32 = 4;
const LIVE: usize = 100_000;
const SEED: u64 = 7;

const LEAST_MILLIONS_PER_SECOND: f64 = 10.0;
/// The live objects, and a fixed allowance for everything else.
const MOST_MIB: f64 = 64.0 + (64 * LIVE) as f64 / (1 << 20) as f64;

fn main() -> Result<ExitCode> {
    let asked = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let events = asked
        .map_or(Ok(EVENTS as f64), |word| word.parse())
        .context("the number of events is no number")? as u64;
    let folder =
        tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).context("cannot make a folder")?;
    let at = |name: &str| folder.path().join(name);
    make(&at("a.cap"), events);
    let middle = format!("{}..{}", events / 2, events / 2 + events / 10);
    let commands: [&[&str]; 4] = [
        &["finish", "a.cap"],
        &["check", "a.trace"],
        &["stats", "a.trace"],
        &["cut", "a.trace", "--events", &middle, "-o", "b.trace"],
    ];
    println!("{events} events of {STREAMS} threads, {LIVE} objects alive");
    println!(
        "{:8}{:>14}{:>12}{:>12}",
        "", "M events/s", "CPU s", "peak MiB"
    );
    let (mut missed, mut told) = (false, String::new());
    for args in commands {
        let Ran {
            cpu_s,
            peak_mib,
            stdout,
        } = run(folder.path(), args)?;
        let rate = events as f64 / cpu_s / 1e6;
        let slow = args[0] == "finish" && rate < LEAST_MILLIONS_PER_SECOND;
        let word = if slow || peak_mib > MOST_MIB {
            "missed"
        } else {
            ""
        };
        println!(
            "{:8}{rate:14.1}{cpu_s:12.2}{peak_mib:12.1}  {word}",
            args[0]
        );
        missed |= !word.is_empty();
        told.push_str(&stdout);
    }
    println!(
        "bars: {LEAST_MILLIONS_PER_SECOND} million events per second of CPU time in finish, {MOST_MIB:.1} MiB in each"
    );
    // The line that finish prints: `… threads: 4; 1.75 B per event, 0.13 in the file`.
    let raw = told
        .split_once("; ")
        .and_then(|(_, rest)| rest.split(' ').next())
        .unwrap_or_default();
    let each = |name: &str| {
        at(name)
            .metadata()
            .map_or(0.0, |file| file.len() as f64 / events as f64)
    };
    println!(
        "{:.2} B per event in the capture, {raw} in the trace, {:.2} behind zstd: these numbers are random; recorded programs need less",
        each("a.cap"),
        each("a.trace")
    );
    Ok(if missed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The resources that one command used, and its output.
struct Ran {
    cpu_s: f64,
    peak_mib: f64,
    stdout: String,
}

fn run(folder: &Path, args: &[&str]) -> Result<Ran> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command
        .arg("trace")
        .args(args)
        .current_dir(folder)
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start heapmark")?;
    let mut stdout = String::new();
    child
        .stdout
        .take()
        .context("no stdout")?
        .read_to_string(&mut stdout)?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and no other thread waits for it; both pointers are to locals of
    // ours.
    let usage = unsafe {
        ensure!(
            libc::wait4(child.id() as i32, &mut status, 0, usage.as_mut_ptr()) > 0,
            "cannot wait for heapmark"
        );
        usage.assume_init()
    };
    ensure!(ExitStatus::from_raw(status).success(), "{args:?} failed");
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    Ok(Ran {
        cpu_s,
        peak_mib: usage.ru_maxrss as f64 / 1024.0,
        stdout,
    })
}

/// Writes the capture.
fn make(path: &Path, events: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut captured = Captured::new(path, STREAMS, &[]);
    // Places of 256 bytes, as in an allocator's size class: the one that was freed last is used
    // next.
    let mut free: Vec<u64> = (0..LIVE as u64 * 2)
        .rev()
        .map(|place| 0x5000_0000_0000 + place * 256)
        .collect();
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
        // A fifth of the frees are of another thread's objects.
        let owner = if (word >> 24) % 5 == 0 {
            (stream + 1) % STREAMS
        } else {
            stream
        } as usize;
        match live[owner].len() {
            count if !fills && count > 0 => {
                // Mostly young objects are freed.
                let back = (random.random_range(0..64usize)).min(count - 1);
                let address = live[owner].swap_remove(count - 1 - back);
                free.push(address);
                alive -= 1;
                captured.put(
                    stream,
                    &Event::Free {
                        address,
                        operator: false,
                    },
                    stamp,
                );
            }
            _ => {
                let Some(address) = free.pop() else { continue };
                live[stream as usize].push(address);
                alive += 1;
                let size = 16 << (word >> 32 & 3) | (word >> 40 & 8);
                captured.put(
                    stream,
                    &Event::Malloc {
                        address,
                        size,
                        operator: false,
                    },
                    stamp,
                );
            }
        }
    }
    captured.end();
}
