//! Samples the memory of a process from outside, at a rate that costs less than half a per cent of
//! a core.

use super::Watcher;
use super::memory_profile::{MemoryPoint, MemoryProfile};
use super::pace::Pace;
use super::process_files::{ProcessFiles, Walked};
use crate::clock::{now_ns, thread_cpu_ns};
use anyhow::Result;
use heapmark_wire::{Held, Page, Phase};
use std::fmt::Write;
use std::time::Duration;

/// The shortest time between two walks of the page tables.
const LEAST_BETWEEN_WALKS_NS: u64 = 250_000_000;
/// The time between two walks is at least this many times the duration of the last one: in a large process a walk takes many milliseconds.
const WALKS_APART: u64 = 1000;
/// The least number of looks with live bytes that make a memory profile.
const LEAST_POINTS: usize = 5;
/// A look during which more than the live bytes divided by this came or went had to wait for a CPU: what it read belongs to
/// several moments.
const MOST_CHANGE: u64 = 64;
/// The most attempts to take a look of a single moment. A program that allocates and frees most of what it holds all the time has no such
/// look.
const LOOKS: usize = 3;

/// Returns the points that a process took itself, as a table like the memory sampler's.
pub fn csv_of_points(points: &[heapmark_wire::HeapPoint], before_bytes: u64) -> String {
    let mut table = format!("{COLUMNS},allocated_bytes\n");
    for point in points {
        let _ = writeln!(
            table,
            "{},{},{},{},{},0,,{},{}",
            point.time_ns,
            Phase::Run.word(),
            point.live_bytes,
            point.occupied_bytes,
            before_bytes + point.heap_bytes,
            point.anon_huge_bytes,
            point.allocated_bytes
        );
    }
    table
}

/// The columns of the series.
const COLUMNS: &str = "time_ns,phase,requested_live_bytes,occupied_bytes,rss_bytes,harness_bytes,pss_bytes,anon_huge_bytes";

/// One sample of memory.
#[derive(Clone, Copy, Default)]
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

/// Samples one process.
#[derive(Default)]
pub struct MemorySampler {
    points: Vec<MemorySample>,
    files: Option<ProcessFiles>,
    next_walk_ns: u64,
    pace: Pace,
    /// CPU time of this thread at the first look and at the last.
    cpu_ns: (u64, u64),
}

impl MemorySampler {
    /// Takes a sample; a process that has ended meanwhile leaves none.
    fn point(&mut self, pid: i32, phase: Phase, held: &Held) -> Option<MemorySample> {
        let files = self.files.get_or_insert_with(|| ProcessFiles::of(pid));
        let running = matches!(phase, Phase::Cold | Phase::Run);
        let mut point = MemorySample::default();
        for _ in 0..LOOKS {
            let (time_ns, live_before) = (now_ns(), held.live_bytes());
            point = MemorySample {
                time_ns,
                running,
                rss_bytes: files.resident_bytes()?,
                occupied_bytes: held.occupied_bytes(),
                harness_bytes: held.harness_bytes(),
                ..point
            };
            let live_after = held.live_bytes();
            point.live_bytes = live_before.min(live_after);
            if live_before.abs_diff(live_after) <= point.live_bytes / MOST_CHANGE {
                break;
            }
        }
        if running && point.time_ns >= self.next_walk_ns {
            let began_ns = thread_cpu_ns();
            point.walked = files.walked();
            let walk_ns = thread_cpu_ns() - began_ns;
            self.pace.leave_out(walk_ns);
            self.next_walk_ns = now_ns() + (walk_ns * WALKS_APART).max(LEAST_BETWEEN_WALKS_NS);
        }
        Some(point)
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
        self.points.extend(seen);
        self.cpu_ns.1 = thread_cpu_ns();
        if self.points.len() < 2 {
            self.cpu_ns.0 = self.cpu_ns.1;
        }
        self.pace.next(self.cpu_ns.1)
    }

    fn profile(&self, before_bytes: u64) -> Option<MemoryProfile> {
        let points = self.points.iter();
        let moments: Vec<MemoryPoint> = points
            .filter(|point| point.running && point.live_bytes > 0)
            .map(|point| MemoryPoint {
                live_bytes: point.live_bytes,
                occupied_bytes: point.occupied_bytes,
                heap_bytes: point
                    .rss_bytes
                    .saturating_sub(point.harness_bytes + before_bytes),
            })
            .collect();
        if moments.len() < LEAST_POINTS {
            return None;
        }
        let took_ns = self.points.last()?.time_ns - self.points.first()?.time_ns;
        let walked = self.points.iter().filter_map(|point| point.walked);
        Some(MemoryProfile {
            most_anon_huge_bytes: walked.map(|walk| walk.anon_huge_bytes).max().unwrap_or(0),
            sampling_share: (self.cpu_ns.1 - self.cpu_ns.0) as f64 / took_ns.max(1) as f64,
            ..MemoryProfile::of(
                &moments,
                *moments.iter().max_by_key(|moment| moment.live_bytes)?,
            )
        })
    }

    fn csv(self: Box<Self>) -> Result<Option<String>> {
        let Some(first) = self.points.first() else {
            return Ok(None);
        };
        let mut table = format!("{COLUMNS}\n");
        for point in &self.points {
            let phase = if point.running {
                Phase::Run
            } else {
                Phase::Setup
            };
            let walked = point.walked.map_or(",".into(), |walk| {
                format!("{},{}", walk.pss_bytes, walk.anon_huge_bytes)
            });
            let _ = writeln!(
                table,
                "{},{},{},{},{},{},{walked}",
                point.time_ns - first.time_ns,
                phase.word(),
                point.live_bytes,
                point.occupied_bytes,
                point.rss_bytes,
                point.harness_bytes
            );
        }
        Ok(Some(table))
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
