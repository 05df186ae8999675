//! Memory over time of one process: points that are polled from outside, or that the guest itself
//! writes at operations and that are parsed here afterwards.

use super::maps::Mapped;
use super::process_files::{ProcessFiles, resident_bytes};
use super::{MeanHeap, Watcher};
use crate::clock::now_ns;
use anyhow::{Context, Result};
use heapmark_catalog::file::WithPath;
use heapmark_plan::Case;
use heapmark_wire::{Known, Page, Phase, RangeKind, Watched};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fmt::Write;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

/// The memory of a process at one moment.
struct SeriesPoint {
    /// Time since just before the process was started.
    time_ns: u64,
    /// How long the sample took: changes during this time make the figures of a point disagree.
    took_ns: u64,
    phase: String,
    /// Requested live bytes, if the workload's kernel publishes them.
    requested_live_bytes: Option<u64>,
    mapped: Mapped,
    rss_bytes: u64,
}

/// Records the memory of one process over time.
pub struct SeriesSampler {
    began_ns: u64,
    program: String,
    way: Way,
    /// The files of the running process in `/proc`.
    files: Option<ProcessFiles>,
    points: Vec<SeriesPoint>,
}

enum Way {
    /// Polled from outside, at this interval.
    Polled(Duration),
    /// Written by the guest, into this file.
    Inside(File),
}

impl SeriesSampler {
    /// Makes a sampler for a process that is about to start; `None` if the process's case requests
    /// no series.
    pub fn of(case: &Case, program: &Path) -> Result<Option<SeriesSampler>> {
        let Some(every_ns) = case.series_ns else {
            return Ok(None);
        };
        let way = if case.samples_itself() {
            // The descriptor is inherited on purpose: the guest opens the file through /proc/self/fd.
            let file = memfd_create("heapmark-series", MemfdFlags::empty())
                .context("cannot create a memory file")?;
            Way::Inside(file.into())
        } else {
            Way::Polled(Duration::from_nanos(every_ns))
        };
        let program = program.canonicalize().with_path("cannot find", program)?;
        Ok(Some(SeriesSampler {
            began_ns: now_ns(),
            program: program.display().to_string(),
            way,
            files: None,
            points: Vec::new(),
        }))
    }

    /// Takes a point from outside. A process that has ended meanwhile leaves none.
    fn point(&mut self, pid: i32, phase: Phase, watched: &Watched) -> Option<SeriesPoint> {
        let files = self.files.get_or_insert_with(|| ProcessFiles::of(pid));
        let mut known: Vec<Known> = watched.ranges().known().collect();
        let live_before = watched.live_bytes();
        let time_ns = now_ns();
        let rss_bytes = files.resident_bytes()?;
        let maps = files.maps()?;
        let live_after = watched.live_bytes();
        let took_ns = now_ns() - time_ns;
        // A stack that was created or freed meanwhile may be in the maps, so ranges known before or
        // after count.
        for range in watched.ranges().known() {
            if !known.contains(&range) {
                known.push(range);
            }
        }
        Some(SeriesPoint {
            time_ns: time_ns.saturating_sub(self.began_ns),
            took_ns,
            phase: phase.word().into(),
            // The bytes that were live throughout the reading, provided they only rose or only
            // fell.
            requested_live_bytes: live_before
                .zip(live_after)
                .map(|(before, after)| before.min(after)),
            mapped: Mapped::read(maps, &self.program, &known),
            rss_bytes,
        })
    }
}

impl Watcher for SeriesSampler {
    fn word(&self) -> String {
        match &self.way {
            Way::Polled(_) => "polled".into(),
            Way::Inside(file) => format!("/proc/self/fd/{}", file.as_raw_fd()),
        }
    }

    fn looks(&self) -> bool {
        matches!(self.way, Way::Polled(_))
    }

    fn look(&mut self, pid: i32, page: &Page) -> Duration {
        let Way::Polled(every) = self.way else {
            return Duration::MAX;
        };
        let seen = page.look(|phase, watched| self.point(pid, phase, watched));
        self.points.extend(seen);
        every
    }

    fn mean_heap(&self, before_bytes: u64, iteration_ns: u64) -> Option<MeanHeap> {
        // Points that a guest takes at operations are not spaced by time; they are parsed later, so
        // there are none here.
        let points = self.points.iter();
        let looks: Vec<(u64, u64)> = points
            .filter(|point| point.phase == Phase::Run.word())
            .map(|point| (point.time_ns, point.rss_bytes))
            .collect();
        MeanHeap::of(&looks, before_bytes, iteration_ns)
    }

    fn csv(mut self: Box<Self>) -> Result<Option<String>> {
        if let Way::Inside(file) = &mut self.way {
            let mut text = String::new();
            file.rewind()
                .and_then(|()| file.read_to_string(&mut text))
                .context("cannot read a series")?;
            self.points = points(&text, &self.program, self.began_ns);
        }
        Ok((!self.points.is_empty()).then(|| csv(&self.points)))
    }
}

/// Parses the guest's text: `@point TIME LIVE PHASE`, `@known START END KIND` lines, its maps,
/// `@end LIVE TIME`, its statm, `@done`. An incomplete point is left out.
fn points(text: &str, program: &str, began_ns: u64) -> Vec<SeriesPoint> {
    text.split("@point ")
        .skip(1)
        .filter_map(|block| point(block, program, began_ns))
        .collect()
}

fn point(block: &str, program: &str, began_ns: u64) -> Option<SeriesPoint> {
    let (before, after) = block.strip_suffix("@done\n")?.split_once("@end ")?;
    let (head, maps) = before.split_once('\n')?;
    let mut words = head.split(' ');
    let time_ns: u64 = words.next()?.parse().ok()?;
    let live_before: u64 = words.next()?.parse().ok()?;
    let (end, statm) = after.split_once('\n')?;
    let (live_after, ended_ns) = end.split_once(' ')?;
    let known: Vec<Known> = maps.lines().filter_map(known).collect();
    Some(SeriesPoint {
        time_ns: time_ns.saturating_sub(began_ns),
        took_ns: ended_ns.parse::<u64>().ok()?.saturating_sub(time_ns),
        phase: words.next()?.into(),
        requested_live_bytes: Some(live_before.min(live_after.parse().ok()?)),
        mapped: Mapped::read(maps, program, &known),
        rss_bytes: resident_bytes(statm)?,
    })
}

fn known(line: &str) -> Option<Known> {
    let mut words = line.strip_prefix("@known ")?.split(' ');
    Some(Known {
        start: words.next()?.parse().ok()?,
        end: words.next()?.parse().ok()?,
        kind: RangeKind::from_word(words.next()?)?,
    })
}

fn csv(points: &[SeriesPoint]) -> String {
    let mut table = String::from(
        "time_ns,took_ns,phase,requested_live_bytes,heap_bytes,mmap_bytes,mmap_so_bytes,total_dynamic_bytes,stack_bytes,text_bytes,\
         other_bytes,harness_bytes,reserved_bytes,accessible_bytes,rss_bytes\n",
    );
    for point in points {
        let Mapped {
            heap,
            mmap,
            mmap_so,
            stack,
            text,
            other,
            harness,
            reserved,
        } = point.mapped;
        let total = point.mapped.total_dynamic();
        let accessible = point.mapped.accessible();
        let live = point
            .requested_live_bytes
            .map(|bytes| bytes.to_string())
            .unwrap_or_default();
        let _ = writeln!(
            table,
            "{},{},{},{live},{heap},{mmap},{mmap_so},{total},{stack},{text},{other},{harness},{reserved},{accessible},{}",
            point.time_ns, point.took_ns, point.phase, point.rss_bytes
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const INSIDE: &str = "\
@point 1500 300 run
@known 65536 131072 stack
10000-20000 rw-p 00000000 00:00 0 
20000-30000 rw-p 00000000 00:00 0                          [heap]
@end 200 1560
500 25 10 1 0 100 0
@done
@point 1600 400 run
20000-30000 rw-p 00000000 00:00 0                          [heap]
";

    #[test]
    fn what_a_guest_wrote_becomes_points_and_a_torn_one_does_not() {
        let points = points(INSIDE, "/guest", 1000);
        assert_eq!(points.len(), 1);
        let point = &points[0];
        assert_eq!(
            (point.time_ns, point.took_ns, point.phase.as_str()),
            (500, 60, "run")
        );
        assert_eq!(point.requested_live_bytes, Some(200));
        assert_eq!(
            (point.mapped.stack, point.mapped.mmap, point.mapped.heap),
            (0x10000, 0, 0x10000)
        );
        assert_eq!(point.rss_bytes, 25 * rustix::param::page_size() as u64);
    }

    #[test]
    fn a_line_of_the_table_has_a_figure_for_each_column_and_none_for_what_is_not_published() {
        let mut point = points(INSIDE, "/guest", 0).remove(0);
        point.requested_live_bytes = None;
        let table = csv(&[point]);
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split(',').collect())
            .collect();
        assert_eq!(lines[0].len(), lines[1].len());
        let column = |name| lines[1][lines[0].iter().position(|head| *head == name).unwrap()];
        assert_eq!(
            (
                column("requested_live_bytes"),
                column("total_dynamic_bytes")
            ),
            ("", "65536")
        );
        assert_eq!(
            (column("stack_bytes"), column("accessible_bytes")),
            ("65536", "131072")
        );
    }
}
