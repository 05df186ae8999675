//! What recording an event costs on this machine: measured when something is recorded for the first
//! time, and stored, because measuring takes longer than many programs run.

use super::{Recorder, captures};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_core::build::{cache_root, short_hash, write_to_cache};
use heapmark_core::execute::Guest;
use heapmark_core::file::{Draft, WithPath};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The quickest of this many tries counts.
const TRIES: usize = 3;
/// Pairs of calls in an estimate: some tenths of a second in all.
const ESTIMATE_PAIRS: u32 = 400_000;
/// The version of the estimate, which changes with what is measured, or with the file's format.
const FORMAT: &str = "1";
/// The kernel's file that names the CPU model in its first lines; reading all lines of a large
/// machine takes milliseconds.
const CPUS: &str = "/proc/cpuinfo";
const CPU_BYTES: u64 = 2048;

/// Nanoseconds of CPU time that recording an event takes on this machine.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Cost {
    /// The cost while a process has one thread.
    pub alone_ns: f64,
    /// The cost once a process has several threads, with a time stamp at each event.
    pub threaded_ns: f64,
    /// What reading the CPU's counter at each call costs the same program without a recorder: a
    /// time stamp cannot cost less.
    pub counter_ns: f64,
}

impl Recorder {
    /// The cost that was measured when this recorder first recorded on this machine. Fails if
    /// nothing can be recorded into the folder, which is tried each time.
    pub fn estimate(&self, guest: &Guest, folder: &Path) -> Result<Cost> {
        let place = self.place(guest, folder);
        if let Some(cost) = place.as_deref().ok().and_then(kept) {
            self.try_out(folder, |stem| self.pairs(guest, Some(stem), 1))?;
            return Ok(cost);
        }
        let cost = self.cost(guest, folder, ESTIMATE_PAIRS)?;
        // If the cost cannot be stored, the next recording measures it again.
        let _ = place.and_then(|place| keep(&place, &cost));
        Ok(cost)
    }

    /// Measures the cost with this many pairs of calls, with the recorder and without. Fails if
    /// nothing can be recorded into the folder.
    pub fn cost(&self, guest: &Guest, folder: &Path, pairs: u32) -> Result<Cost> {
        let best = self.try_out(folder, |stem| {
            let mut best = [[f64::INFINITY; 3]; 2];
            for _ in 0..TRIES {
                for (best, stem) in best.iter_mut().zip([None, Some(stem)]) {
                    let found = self.pairs(guest, stem, pairs)?;
                    best.iter_mut()
                        .zip(found)
                        .for_each(|(best, found)| *best = best.min(found));
                }
            }
            Ok(best)
        })?;
        let [[alone, threaded, stamped], recorded] = best;
        Ok(Cost {
            alone_ns: (recorded[0] - alone).max(0.0),
            threaded_ns: (recorded[1] - threaded).max(0.0),
            counter_ns: (stamped - threaded).max(0.0),
        })
    }

    /// What the guest program reports for this many pairs, recorded or not.
    fn pairs(&self, guest: &Guest, stem: Option<&Path>, pairs: u32) -> Result<[f64; 3]> {
        let mut command = match stem {
            None => Command::new(guest.path()),
            Some(stem) => self.command(guest.path().as_os_str(), None, stem),
        };
        let end = command
            .arg("pairs")
            .arg(pairs.to_string())
            .output()
            .context("cannot start the guest program")?;
        let text = String::from_utf8_lossy(&end.stdout);
        let numbers: Vec<f64> = text
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        <[f64; 3]>::try_from(numbers)
            .map_err(|_| anyhow!("the guest program printed no numbers: {text}"))
    }

    /// Makes a recording and removes it. Fails if the recording left no capture.
    fn try_out<T>(&self, folder: &Path, record: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let cannot = || {
            format!(
                "nothing can be recorded into {}: no room (1 MiB at least), no right to write, a kernel before Linux 4.14, or a sandbox that \
                 forbids madvise, openat, pwrite64 or mmap; \
                 name a file in another folder with -o",
                folder.display()
            )
        };
        // A folder of its own: other processes record into the same folder, and may have a file
        // named `cost`.
        let draft = Draft::folder(folder).with_context(cannot)?;
        let stem = draft.path().join("cost");
        let found = record(&stem)?;
        if captures(&stem)?.is_empty() {
            bail!(cannot());
        }
        Ok(found)
    }

    /// Where the estimate is stored: the file's name is a hash of everything that may change the estimate.
    fn place(&self, guest: &Guest, folder: &Path) -> Result<PathBuf> {
        let build = |file: &Path| -> Result<String> {
            let known = file.metadata().with_path("cannot look at", file)?;
            Ok(format!(
                "{} {} {}",
                known.len(),
                known.mtime(),
                known.mtime_nsec()
            ))
        };
        let kernel = rustix::system::uname();
        let parts = [
            FORMAT.to_owned(),
            build(&self.0)?,
            build(guest.path())?,
            cpu(),
            kernel.release().to_string_lossy().into_owned(),
            kernel.version().to_string_lossy().into_owned(),
            // The clock that time stamps come from.
            std::fs::read_to_string(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            )
            .unwrap_or_default(),
            std::env::var("HEAPMARK_RECORD_CLOCK").unwrap_or_default(),
            rustix::fs::statfs(folder).map_or(String::new(), |disk| disk.f_type.to_string()),
        ];
        let key = short_hash(parts.iter().map(String::as_str));
        Ok(cache_root()?.join("recorder").join(format!("{key}.json")))
    }
}

fn kept(place: &Path) -> Option<Cost> {
    serde_json::from_slice(&std::fs::read(place).ok()?).ok()
}

fn keep(place: &Path, cost: &Cost) -> Result<()> {
    write_to_cache(place, &serde_json::to_vec(cost)?)
}

fn cpu() -> String {
    let mut text = String::new();
    let _ = File::open(CPUS).and_then(|file| file.take(CPU_BYTES).read_to_string(&mut text));
    text.lines()
        .find(|line| line.starts_with("model name") || line.starts_with("CPU part"))
        .unwrap_or_default()
        .to_owned()
}
