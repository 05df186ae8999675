//! Statistics of all events of a trace: sizes, lifetimes, live bytes over time, which thread frees
//! whose objects, growth of objects.

mod histogram;
mod threads;
mod timeline;

pub use histogram::{Bucket, Histogram};
pub use threads::{Pair, Thread};
pub use timeline::TimelinePoint;

use super::Event::{self, *};
use super::check::alone;
use super::fault::{Fault, Result};
use super::{Live, Reader};
use serde::Serialize;
use std::collections::BTreeMap;
use threads::Threads;
use timeline::Timeline;

/// Everything that can be computed from a trace without keeping its events.
#[derive(Default, Serialize)]
pub struct Stats {
    /// The trace's metadata about the recorded program, escaped as in the file.
    pub head: BTreeMap<String, String>,
    /// The number of events.
    pub events: u64,
    /// Time of the last clock event, in nanoseconds.
    pub duration_ns: u64,
    /// The number of calls by function.
    pub calls: BTreeMap<&'static str, u64>,
    /// How often `mallopt` set each parameter to a value, such as `M_ARENA_MAX=1`.
    pub settings: BTreeMap<String, u64>,
    /// The number of objects that begin, without those from before the trace.
    pub allocations: u64,
    /// Bytes requested by all allocations.
    pub allocated_bytes: u64,
    /// Objects from before the trace.
    pub inherited: u64,
    /// Peak of the live bytes.
    pub peak_live_bytes: u64,
    /// The number of the event at which the live bytes peaked.
    pub peak_event: u64,
    /// Peak of the live objects.
    pub peak_live_objects: u64,
    /// Bytes alive at the end.
    pub end_live_bytes: u64,
    /// Objects alive at the end.
    pub end_live_objects: u64,
    /// Pages of large objects that lay in memory when the objects ended, and all pages of these objects.
    pub touched_pages: (u64, u64),
    /// Peak resident set of the whole process; 0 if unknown.
    pub peak_rss_bytes: u64,
    /// The number of events that the recorder lost.
    pub dropped: u64,
    /// Bytes that allocations ask for.
    pub sizes: Histogram,
    /// For objects that end: bytes that were allocated during their life.
    pub lifetimes_bytes: Histogram,
    /// For objects that end: nanoseconds of their life, with the resolution of the trace's clock.
    pub lifetimes_ns: Histogram,
    /// For objects that realloc moved and that ended: how often it moved them.
    pub realloc_chains: Histogram,
    /// What each thread did.
    pub threads: Vec<Thread>,
    /// Which thread frees whose objects, the most frequent pairs first.
    pub pairs: Vec<Pair>,
    /// Live bytes over time.
    pub timeline: Vec<TimelinePoint>,
}

/// What is known about a live object.
struct LiveObject {
    size: u64,
    /// Bytes allocated in total before the object.
    at_bytes: u64,
    at_ns: u64,
    /// How often `realloc` moved the object.
    steps: u32,
    /// Whether the object's beginning is unknown, because it lived before the trace.
    inherited: bool,
}

/// Computes the statistics of a trace. Everything before any damage counts; the damage is returned
/// with the result.
pub fn stats(mut reader: Reader) -> (Stats, Option<Fault>) {
    let mut count = Count::default();
    let mut damage = None;
    while let Some(next) = reader.next() {
        let followed =
            next.and_then(|(thread, event)| count.event(thread, &event, reader.is_inherited()));
        if let Err(fault) = followed {
            damage = Some(fault.at(reader.chunk_number(), count.stats.events));
            break;
        }
    }
    let (threads, pairs) = count.threads.end();
    let stats = Stats {
        head: reader.head().0.iter().cloned().collect(),
        end_live_objects: count.live.len(),
        threads,
        pairs,
        timeline: count.timeline.points,
        ..count.stats
    };
    (stats, damage)
}

#[derive(Default)]
struct Count {
    stats: Stats,
    live: Live<LiveObject>,
    threads: Threads,
    timeline: Timeline,
}

impl Count {
    fn event(&mut self, thread: u32, event: &Event, inherited: bool) -> Result<()> {
        let stats = &mut self.stats;
        let about = |size, before: Option<&LiveObject>| LiveObject {
            size,
            at_bytes: stats.allocated_bytes,
            at_ns: stats.duration_ns,
            steps: before.map_or(0, |before| before.steps.saturating_add(1)),
            inherited,
        };
        alone(event)?;
        let ended = self.live.follow(thread, event, about)?;
        if let Some((object, token)) = ended.zip(event.ends()) {
            stats.ended(&object, event);
            self.threads.free(thread, token.thread, stats.duration_ns);
        }
        if let Some(size) = event.begins() {
            if inherited {
                stats.inherited += 1;
            } else {
                stats.allocations += 1;
                stats.allocated_bytes = stats.allocated_bytes.saturating_add(size);
                stats.sizes.add(size);
                self.threads.allocate(thread, size, stats.duration_ns);
            }
            stats.end_live_bytes = stats.end_live_bytes.saturating_add(size);
            if stats.end_live_bytes > stats.peak_live_bytes {
                stats.peak_live_bytes = stats.end_live_bytes;
                stats.peak_event = stats.events;
            }
            stats.peak_live_objects = stats.peak_live_objects.max(self.live.len());
        }
        self.timeline
            .add(stats.events, stats.duration_ns, stats.end_live_bytes);
        stats.events += 1;
        // Inherited objects stand for an earlier time: their allocations are not calls of the program.
        if !inherited {
            stats.count(event);
        }
        Ok(())
    }
}

/// Returns the name that glibc gives to a parameter of `mallopt`.
fn name_of_setting(parameter: i32) -> String {
    let name = match parameter {
        1 => "M_MXFAST",
        -1 => "M_TRIM_THRESHOLD",
        -2 => "M_TOP_PAD",
        -3 => "M_MMAP_THRESHOLD",
        -4 => "M_MMAP_MAX",
        -5 => "M_CHECK_ACTION",
        -6 => "M_PERTURB",
        -7 => "M_ARENA_TEST",
        -8 => "M_ARENA_MAX",
        other => return other.to_string(),
    };
    name.to_owned()
}

impl Stats {
    fn ended(&mut self, object: &LiveObject, event: &Event) {
        self.end_live_bytes = self.end_live_bytes.saturating_sub(object.size);
        if !object.inherited {
            self.lifetimes_bytes
                .add(self.allocated_bytes - object.at_bytes);
            self.lifetimes_ns.add(self.duration_ns - object.at_ns);
        }
        if object.steps > 0 && event.begins().is_none() {
            self.realloc_chains.add(object.steps.into());
        }
    }

    fn count(&mut self, event: &Event) {
        let call = match *event {
            Malloc { operator: true, .. } => "operator new",
            Malloc { .. } => "malloc",
            Calloc { .. } => "calloc",
            Realloc { .. } | ReallocFree { .. } => "realloc",
            Aligned { variant, .. } => variant.word(),
            Free { .. } => "free",
            FreeNull => "free(NULL)",
            FreeSized { .. } => "free with a size",
            FreeAlignedSized { .. } | FreeAligned { .. } => "free with an alignment",
            UsableSize { .. } => "malloc_usable_size",
            Mallopt { parameter, value } => {
                let setting = format!("{}={value}", name_of_setting(parameter));
                *self.settings.entry(setting).or_default() += 1;
                "mallopt"
            }
            Trim { .. } => "malloc_trim",
            Info => "mallinfo",
            Failed { .. } => "failed",
            _ => return self.count_other(event),
        };
        *self.calls.entry(call).or_default() += 1;
    }

    /// Counts events that are not calls.
    fn count_other(&mut self, event: &Event) {
        match *event {
            Clock { ns } => self.duration_ns = ns,
            Touch {
                resident_pages,
                pages,
                ..
            } => {
                let (resident, all) = &mut self.touched_pages;
                *resident = resident.saturating_add(resident_pages);
                *all = all.saturating_add(pages);
            }
            Dropped { count } => self.dropped = self.dropped.saturating_add(count),
            End { peak_rss_bytes } => self.peak_rss_bytes = peak_rss_bytes,
            _ => {}
        }
    }
}
