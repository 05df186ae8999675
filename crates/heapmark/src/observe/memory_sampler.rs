//! Samples the memory of a process from outside, at a rate that costs less than half a per cent of
//! a core.

use super::memory_profile::{MemoryPoint, MemoryProfile, most_heap_bytes, peak_footprint};
use super::pace::Pace;
use super::{Watcher, now_ns, reread, thread_cpu_ns};
use anyhow::Result;
use heapmark_wire::{Held, Page, Phase};
use std::fmt::Write;
use std::fs::File;
use std::time::Duration;

/// The shortest time between two walks of the page tables.
const LEAST_BETWEEN_WALKS_NS: u64 = 250_000_000;
/// At least this many times the duration of the last walk: in a large process one takes many
/// milliseconds.
const WALKS_APART: u64 = 1000;
/// The least number of looks with live bytes that make a memory profile.
const LEAST_POINTS: usize = 5;

/// The points that a process took itself, as a table like the memory sampler's.
pub fn csv_of_points(points: &[heapmark_wire::HeapPoint], before_bytes: u64) -> String {
    let mut table = format!("{COLUMNS},allocated_bytes\n");
    for heapmark_wire::HeapPoint {
        allocated_bytes,
        time_ns,
        live_bytes,
        occupied_bytes,
        heap_bytes,
    } in points
    {
        let (phase, rss_bytes) = (Phase::Run.word(), before_bytes + heap_bytes);
        let _ = writeln!(
            table,
            "{time_ns},{phase},{live_bytes},{occupied_bytes},{rss_bytes},0,,,{allocated_bytes}"
        );
    }
    table
}

/// The columns of the series.
const COLUMNS: &str = "time_ns,phase,requested_live_bytes,occupied_bytes,rss_bytes,harness_bytes,pss_bytes,anon_huge_bytes";

/// One sample.
#[derive(Clone, Copy, Debug, Default)]
struct MemorySample {
    time_ns: u64,
    running: bool,
    live_bytes: u64,
    occupied_bytes: u64,
    rss_bytes: u64,
    harness_bytes: u64,
    /// Set if the page tables were walked.
    walked: Option<Walked>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Walked {
    pss_bytes: u64,
    anon_huge_bytes: u64,
}

/// Samples one process.
#[derive(Default)]
pub struct MemorySampler {
    points: Vec<MemorySample>,
    files: Option<Files>,
    text: String,
    next_walk_ns: u64,
    pace: Pace,
    /// CPU time of this thread at the first look and at the last.
    cpu_ns: (u64, u64),
}

struct Files {
    statm: File,
    rollup: File,
}

impl MemorySampler {
    /// A sample, and the CPU time of walking the page tables, which has a pace of its own. A process
    /// that has ended meanwhile leaves none.
    fn point(&mut self, pid: i32, phase: Phase, held: &Held) -> Option<(MemorySample, u64)> {
        if self.files.is_none() {
            self.files = Files::open(pid).ok();
        }
        let files = self.files.as_mut()?;
        let time_ns = now_ns();
        let live_before = held.live_bytes();
        let rss_bytes = reread(&mut files.statm, &mut self.text)
            .ok()
            .and_then(super::series::resident_bytes)
            .filter(|bytes| *bytes > 0)?;
        let mut point = MemorySample {
            time_ns,
            running: matches!(phase, Phase::Cold | Phase::Run),
            live_bytes: live_before.min(held.live_bytes()),
            occupied_bytes: held.occupied_bytes(),
            rss_bytes,
            harness_bytes: held.harness_bytes(),
            walked: None,
        };
        let mut walk_ns = 0;
        if point.running && time_ns >= self.next_walk_ns {
            let began_ns = thread_cpu_ns();
            point.walked = reread(&mut files.rollup, &mut self.text)
                .ok()
                .and_then(Walked::of);
            walk_ns = thread_cpu_ns() - began_ns;
            self.next_walk_ns = now_ns() + (walk_ns * WALKS_APART).max(LEAST_BETWEEN_WALKS_NS);
        }
        Some((point, walk_ns))
    }
}

impl Watcher for MemorySampler {
    fn word(&self) -> String {
        "polled".into()
    }

    fn looks(&self) -> bool {
        true
    }

    fn look(&mut self, pid: i32, page: &Page) -> Duration {
        let seen = page.look(|phase, watched| self.point(pid, phase, watched.held()));
        let walk_ns = seen.as_ref().map_or(0, |(_, walk_ns)| *walk_ns);
        self.points.extend(seen.map(|(point, _)| point));
        let now_ns = thread_cpu_ns();
        self.cpu_ns = (
            if self.points.len() < 2 {
                now_ns
            } else {
                self.cpu_ns.0
            },
            now_ns,
        );
        self.pace.next_without(now_ns, walk_ns)
    }

    fn profile(&self, before_bytes: u64) -> Option<MemoryProfile> {
        let moments: Vec<MemoryPoint> = self
            .points
            .iter()
            .filter(|point| point.running && point.live_bytes > 0)
            .map(|it| it.moment(before_bytes))
            .collect();
        if moments.len() < LEAST_POINTS {
            return None;
        }
        let (first, last) = (self.points.first()?, self.points.last()?);
        let walked = self.points.iter().filter_map(|point| point.walked);
        Some(MemoryProfile {
            points: moments.len() as u64,
            peak_demand: *moments.iter().max_by_key(|moment| moment.live_bytes)?,
            peak_footprint: peak_footprint(&moments)?,
            live_byte_points: moments.iter().map(|moment| moment.live_bytes).sum(),
            heap_byte_points: moments.iter().map(|moment| moment.heap_bytes).sum(),
            most_anon_huge_bytes: walked
                .map(|walked| walked.anon_huge_bytes)
                .max()
                .unwrap_or(0),
            sampling_share: (self.cpu_ns.1 - self.cpu_ns.0) as f64
                / (last.time_ns - first.time_ns).max(1) as f64,
            most_heap_bytes: most_heap_bytes(&moments),
            at_peak: None,
            rss_cross_check: None,
        })
    }

    fn csv(self: Box<Self>) -> Result<Option<String>> {
        let mut table = format!("{COLUMNS}\n");
        let began_ns = self.points.first().map_or(0, |point| point.time_ns);
        for point in &self.points {
            let MemorySample {
                time_ns,
                running,
                live_bytes,
                occupied_bytes,
                rss_bytes,
                harness_bytes,
                walked,
            } = point;
            let phase = if *running { Phase::Run } else { Phase::Setup }.word();
            let walked = walked
                .map(|it| format!("{},{}", it.pss_bytes, it.anon_huge_bytes))
                .unwrap_or(",".into());
            let time_ns = time_ns - began_ns;
            let _ = writeln!(
                table,
                "{time_ns},{phase},{live_bytes},{occupied_bytes},{rss_bytes},{harness_bytes},{walked}"
            );
        }
        Ok((!self.points.is_empty()).then_some(table))
    }
}

impl MemorySample {
    /// `before_bytes` were resident before the first operation, without the harness's tables.
    fn moment(&self, before_bytes: u64) -> MemoryPoint {
        MemoryPoint {
            live_bytes: self.live_bytes,
            occupied_bytes: self.occupied_bytes,
            heap_bytes: self
                .rss_bytes
                .saturating_sub(self.harness_bytes + before_bytes),
        }
    }
}

impl Walked {
    fn of(rollup: &str) -> Option<Walked> {
        let bytes = |key: &str| rolled_up_bytes(rollup, key);
        Some(Walked {
            pss_bytes: bytes("Pss:")?,
            anon_huge_bytes: bytes("AnonHugePages:")?,
        })
    }
}

/// The value of `key` in a `smaps_rollup`.
pub(super) fn rolled_up_bytes(rollup: &str, key: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

impl Files {
    fn open(pid: i32) -> std::io::Result<Files> {
        let open = |name| File::open(format!("/proc/{pid}/{name}"));
        Ok(Files {
            statm: open("statm")?,
            rollup: open("smaps_rollup")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(live: u64, rss: u64, harness: u64) -> MemorySample {
        MemorySample {
            running: true,
            live_bytes: live,
            occupied_bytes: live,
            rss_bytes: rss,
            harness_bytes: harness,
            ..MemorySample::default()
        }
    }

    #[test]
    fn the_peaks_of_demand_and_of_the_footprint_are_other_moments() {
        let idle = MemorySample {
            running: false,
            ..point(9000, 90_000, 0)
        };
        let (before, full, low) = (
            point(0, 5000, 100),
            point(800, 2100, 200),
            point(10, 2605, 200),
        );
        let points = vec![before, full, point(400, 2600, 200), low, low, low, idle];
        let short = MemorySampler {
            points: points[..5].to_vec(),
            ..MemorySampler::default()
        };
        assert_eq!(short.profile(900), None, "four looks are too few");
        let course = MemorySampler {
            points,
            ..MemorySampler::default()
        }
        .profile(900)
        .unwrap();
        assert_eq!(
            course.points, 5,
            "neither what is not running nor what holds nothing"
        );
        assert_eq!(
            course.peak_demand,
            MemoryPoint {
                live_bytes: 800,
                occupied_bytes: 800,
                heap_bytes: 1000
            }
        );
        assert_eq!(
            course.peak_footprint,
            MemoryPoint {
                live_bytes: 400,
                occupied_bytes: 400,
                heap_bytes: 1500
            }
        );
        assert_eq!(
            (
                course.live_byte_points,
                course.heap_byte_points,
                course.most_heap_bytes
            ),
            (1230, 7015, 1505)
        );
        assert_eq!(MemorySampler::default().profile(900), None);
    }
}
