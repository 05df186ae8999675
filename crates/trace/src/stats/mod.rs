//! Statistics of all events of a trace: sizes, lifetimes, live bytes over time, which thread frees
//! whose objects, growth of objects.

mod histogram;
mod threads;
mod timeline;

pub use histogram::{Bucket, Histogram};
pub use threads::{Pair, Thread};
pub use timeline::TimelinePoint;

use super::check::alone;
use super::fault::Fault;
use super::{Event, Live, Reader};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;
use threads::Threads;
use timeline::Timeline;

/// Everything that can be computed from a trace without keeping its events.
#[derive(Serialize)]
pub struct Stats {
    /// The trace's metadata on its program, escaped as in the file.
    pub head: BTreeMap<String, String>,
    /// Events.
    pub events: u64,
    /// Time of the last clock event, in nanoseconds.
    pub duration_ns: u64,
    /// Calls by function.
    pub calls: BTreeMap<&'static str, u64>,
    /// Objects that begin, without those from before the trace.
    pub allocations: u64,
    /// Bytes that they asked for.
    pub allocated_bytes: u64,
    /// Objects from before the trace.
    pub inherited: u64,
    /// Peak of the live bytes.
    pub peak_live_bytes: u64,
    /// The event at that peak.
    pub peak_event: u64,
    /// Peak of the live objects.
    pub peak_live_objects: u64,
    /// Bytes alive at the end.
    pub end_live_bytes: u64,
    /// Objects alive at the end.
    pub end_live_objects: u64,
    /// Pages of large objects that lay in memory when they ended, and all pages of these.
    pub touched_pages: (u64, u64),
    /// Peak resident set of the whole process; 0 if unknown.
    pub peak_rss_bytes: u64,
    /// Events that the recorder lost.
    pub dropped: u64,
    /// Bytes that allocations ask for.
    pub sizes: Histogram,
    /// For objects that end: bytes that were allocated during their life.
    pub lifetimes_bytes: Histogram,
    /// For objects that end: nanoseconds, with the resolution of the trace's clock.
    pub lifetimes_ns: Histogram,
    /// For objects that realloc moved and that ended: how often it moved them.
    pub realloc_chains: Histogram,
    /// What each thread did.
    pub threads: Vec<Thread>,
    /// Which thread frees whose objects, most first.
    pub pairs: Vec<Pair>,
    /// Live bytes over time.
    pub timeline: Vec<TimelinePoint>,
}

/// What is known of a live object.
struct LiveObject {
    size: u64,
    /// Bytes allocated in total before it.
    at_bytes: u64,
    at_ns: u64,
    /// How often `realloc` moved it.
    steps: u32,
    /// Its beginning is unknown.
    inherited: bool,
}

/// Reads to the end. Everything before damage counts; the damage is returned with it.
pub fn stats<R: Read>(mut reader: Reader<R>) -> (Stats, Option<Fault>) {
    let head = reader
        .head()
        .pairs()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let mut count = Count::new(head);
    let mut damage = None;
    while let Some(next) = reader.next() {
        let followed = next.and_then(|(thread, event)| count.event(thread, &event));
        if let Err(fault) = followed {
            damage = Some(fault.at(reader.chunk_number(), count.stats.events));
            break;
        }
    }
    (count.end(), damage)
}

struct Count {
    stats: Stats,
    live: Live<LiveObject>,
    live_bytes: u64,
    inherited_left: u64,
    threads: Threads,
    timeline: Timeline,
}

impl Count {
    fn new(head: BTreeMap<String, String>) -> Count {
        let stats = Stats {
            head,
            events: 0,
            duration_ns: 0,
            calls: BTreeMap::new(),
            allocations: 0,
            allocated_bytes: 0,
            inherited: 0,
            peak_live_bytes: 0,
            peak_event: 0,
            peak_live_objects: 0,
            end_live_bytes: 0,
            end_live_objects: 0,
            touched_pages: (0, 0),
            peak_rss_bytes: 0,
            dropped: 0,
            sizes: Histogram::default(),
            lifetimes_bytes: Histogram::default(),
            lifetimes_ns: Histogram::default(),
            realloc_chains: Histogram::default(),
            threads: Vec::new(),
            pairs: Vec::new(),
            timeline: Vec::new(),
        };
        let (threads, timeline) = (Threads::default(), Timeline::default());
        Count {
            stats,
            live: Live::default(),
            live_bytes: 0,
            inherited_left: 0,
            threads,
            timeline,
        }
    }

    fn event(&mut self, thread: u32, event: &Event) -> Result<(), Fault> {
        let inherited = self.inherited_left > 0;
        self.inherited_left = self.inherited_left.saturating_sub(1);
        let (at_bytes, at_ns) = (self.stats.allocated_bytes, self.stats.duration_ns);
        let about = |size, before: Option<&LiveObject>| {
            let steps = before.map_or(0, |before| before.steps.saturating_add(1));
            LiveObject {
                size,
                at_bytes,
                at_ns,
                steps,
                inherited,
            }
        };
        alone(event)?;
        let (_, ended) = self.live.follow(thread, event, about)?;
        let moves = event.begins().is_some();
        if let Some(object) = ended {
            self.ended(&object, moves);
            self.threads.free(
                thread,
                event.ends().map_or(thread, |token| token.thread),
                self.stats.duration_ns,
            );
        }
        if let Some(size) = event.begins() {
            self.begun(thread, size, inherited);
        }
        self.timeline
            .add(self.stats.events, self.stats.duration_ns, self.live_bytes);
        self.stats.events += 1;
        // Inherited objects stand for an earlier time: they are not calls of the program.
        if !inherited {
            self.other(event);
        }
        Ok(())
    }

    fn ended(&mut self, object: &LiveObject, moves: bool) {
        self.live_bytes -= object.size.min(self.live_bytes);
        if !object.inherited {
            self.stats
                .lifetimes_bytes
                .add(self.stats.allocated_bytes - object.at_bytes);
            self.stats
                .lifetimes_ns
                .add(self.stats.duration_ns - object.at_ns);
        }
        if object.steps > 0 && !moves {
            self.stats.realloc_chains.add(object.steps.into());
        }
    }

    fn begun(&mut self, thread: u32, size: u64, inherited: bool) {
        self.live_bytes = self.live_bytes.saturating_add(size);
        if inherited {
            self.stats.inherited += 1;
        } else {
            self.stats.allocations += 1;
            self.stats.allocated_bytes = self.stats.allocated_bytes.saturating_add(size);
            self.stats.sizes.add(size);
            self.threads.allocate(thread, size, self.stats.duration_ns);
        }
        if self.live_bytes > self.stats.peak_live_bytes {
            (self.stats.peak_live_bytes, self.stats.peak_event) =
                (self.live_bytes, self.stats.events);
        }
        self.stats.peak_live_objects = self.stats.peak_live_objects.max(self.live.len());
    }

    fn other(&mut self, event: &Event) {
        let call = match *event {
            Event::Malloc { operator: true, .. } => "operator new",
            Event::Malloc { .. } => "malloc",
            Event::Calloc { .. } => "calloc",
            Event::Realloc { .. } | Event::ReallocFree { .. } => "realloc",
            Event::Aligned { variant, .. } => variant.word(),
            Event::Free { .. } => "free",
            Event::FreeNull => "free(NULL)",
            Event::FreeSized { .. } => "free with a size",
            Event::FreeAlignedSized { .. } | Event::FreeAligned { .. } => "free with an alignment",
            Event::UsableSize { .. } => "malloc_usable_size",
            Event::Failed { .. } => "failed",
            Event::Inherit { objects } => {
                self.inherited_left = objects;
                return;
            }
            Event::Clock { ns } => {
                self.stats.duration_ns = ns;
                return;
            }
            Event::Touch {
                resident_pages,
                pages,
                ..
            } => {
                let (resident, all) = &mut self.stats.touched_pages;
                (*resident, *all) = (
                    resident.saturating_add(resident_pages),
                    all.saturating_add(pages),
                );
                return;
            }
            Event::Dropped { count } => {
                self.stats.dropped = self.stats.dropped.saturating_add(count);
                return;
            }
            Event::End { peak_rss_bytes } => {
                self.stats.peak_rss_bytes = peak_rss_bytes;
                return;
            }
            Event::ThreadStart { .. }
            | Event::ThreadExit
            | Event::Fork { .. }
            | Event::Mark { .. } => return,
        };
        *self.stats.calls.entry(call).or_default() += 1;
    }

    fn end(mut self) -> Stats {
        (self.stats.end_live_bytes, self.stats.end_live_objects) =
            (self.live_bytes, self.live.len());
        (self.stats.threads, self.stats.pairs) = self.threads.end();
        self.stats.timeline = self.timeline.end();
        self.stats
    }
}
