//! Merges the streams of a capture into one order of events, with tokens instead of addresses.

use super::capture::Capture;
use super::clock::Rate;
use super::stream::{RecordPart, Stream};
use crate::Event::{self, *};
use crate::Token;
use crate::addresses::{Addresses, MemoryPoint, PlacedObject, moved};
use heapmark_wire::capture::Event as Recorded;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};

/// Events between two readings of the clock, if it is not read earlier.
const CLOCK_EVERY: u32 = 64;
/// Nanoseconds after which the clock is read at the next event that has a stamp.
const CLOCK_EVERY_NS: u64 = 50_000;
/// The moment at which the objects from before the recording are taken to begin.
const BEFORE: MemoryPoint = MemoryPoint {
    key: 0,
    thread: 0,
    stream: usize::MAX,
};

/// The next item of a merge.
pub enum MergeStep {
    Event(u32, Event),
    /// A fork: the child that names this moment inherits what is alive now.
    Forking(u64),
}

/// The threads that have begun. The recorder notes the start of a thread only if a call of
/// `pthread_create` from outside the C library creates it.
struct BegunThreads {
    begun: HashSet<u32>,
    /// The thread of each stream's last event.
    of_streams: Vec<Option<u32>>,
    /// The main thread; the first one until an event identifies the main thread.
    eldest: u32,
}

impl BegunThreads {
    /// Notes that a thread has an event; returns the thread that starts it now, if no event has
    /// started it and it is neither the main thread nor the first.
    #[cold]
    fn starter(&mut self, stream: usize, thread: u32, event: &Recorded) -> Option<u32> {
        self.of_streams[stream] = Some(thread);
        let is_root = self.begun.is_empty() || *event == Recorded::Main;
        if is_root {
            self.eldest = thread;
        }
        (self.begun.insert(thread) && !is_root).then_some(self.eldest)
    }
}

/// A merge in progress.
pub struct Merge<'a> {
    pub streams: Vec<Stream<'a>>,
    /// The stream that is being read; `waiting` has the keys of all others that have events.
    current: usize,
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    rate: Rate,
    pub addresses: Addresses,
    /// Objects from before the recording that are still to come.
    inherited: std::vec::IntoIter<(u64, Event)>,
    /// For each stream, the object that a `realloc` has freed and not yet replaced.
    moving: Vec<Option<PlacedObject>>,
    ready: VecDeque<MergeStep>,
    threads: BegunThreads,
    until_clock: u32,
    /// The stamp at which the clock is read again, and the number of stamps between two readings.
    clock_at: u64,
    clock_every: u64,
    /// The time of the last reading.
    pub ns: u64,
}

impl<'a> Merge<'a> {
    /// Begins a merge, with the objects from before the recording first.
    pub fn new(capture: &'a Capture, inherited: Vec<(u64, Event)>) -> Merge<'a> {
        let streams: Vec<Stream> = capture
            .streams
            .iter()
            .map(|places| Stream::new(capture, places))
            .collect();
        let keys = streams.iter().map(Stream::key);
        let rate = Rate::of(capture);
        Merge {
            current: usize::MAX,
            waiting: std::iter::zip(keys, 0..)
                .filter_map(|(key, place)| Some(Reverse((key?, place))))
                .collect(),
            rate,
            addresses: Addresses::default(),
            inherited: inherited.into_iter(),
            moving: vec![None; streams.len()],
            ready: VecDeque::new(),
            threads: BegunThreads {
                begun: HashSet::new(),
                of_streams: vec![None; streams.len()],
                eldest: 0,
            },
            until_clock: 0,
            clock_at: 0,
            clock_every: rate.stamps(CLOCK_EVERY_NS),
            ns: 0,
            streams,
        }
    }

    /// Returns the next item in order; `None` at the end.
    #[inline]
    pub fn next(&mut self) -> Option<MergeStep> {
        while self.ready.is_empty() {
            if let Some((address, event)) = self.inherited.next() {
                self.begin(BEFORE, address, event);
                continue;
            }
            // A stream is read until another one has an earlier event.
            let key = self.streams.get(self.current).and_then(Stream::key);
            let other = self.waiting.peek().map(|Reverse((key, _))| *key);
            if key.is_none() || other.is_some() && key > other {
                self.waiting
                    .extend(key.map(|key| Reverse((key, self.current))));
                Reverse((_, self.current)) = self.waiting.pop()?;
            }
            self.step();
            self.streams[self.current].advance();
        }
        self.ready.pop_front()
    }

    fn begin(&mut self, at: MemoryPoint, address: u64, event: Event) {
        self.addresses
            .begin(at, address, event, &mut |thread, event| {
                self.ready.push_back(MergeStep::Event(thread, event));
            });
    }

    /// Turns the next record of the current stream into events without addresses, mostly into one.
    #[inline]
    fn step(&mut self) {
        let place = self.current;
        let stream = &self.streams[place];
        let Some((key, part, record)) = stream.next() else {
            return;
        };
        let thread = record.thread;
        let at = MemoryPoint {
            key,
            thread,
            stream: place,
        };
        // The record's own stamp is that of the return, up to which other threads may have events.
        let stamp = match record.event {
            Recorded::Realloc { entered, .. } if part == RecordPart::Entry => entered,
            _ => record.stamp,
        };
        let is_due = matches!(record.event, Recorded::Clock)
            || stamp.is_some_and(|stamp| stamp >= self.clock_at);
        match self.until_clock.checked_sub(1) {
            Some(left) if !is_due => self.until_clock = left,
            _ => {
                self.until_clock = CLOCK_EVERY;
                if let Some(stamp) = stamp {
                    self.clock_at = stamp.saturating_add(self.clock_every);
                }
                let ns = self.rate.ns(stream.known, stamp);
                if ns > self.ns {
                    self.ns = ns;
                    self.ready.push_back(MergeStep::Event(thread, Clock { ns }));
                }
            }
        }
        if self.threads.of_streams[place] != Some(thread)
            && !is_of_recorder(&record.event)
            && let Some(starter) = self.threads.starter(place, thread, &record.event)
        {
            let start = ThreadStart { child: thread };
            self.ready.push_back(MergeStep::Event(starter, start));
        }
        if let Recorded::ThreadStart { child } = record.event {
            self.threads.begun.insert(child);
        }
        let mut put = |event| self.ready.push_back(MergeStep::Event(thread, event));
        let (address, event) = match record.event {
            Recorded::Malloc {
                address,
                size,
                operator,
            } => (address, Malloc { size, operator }),
            Recorded::Calloc {
                address,
                count,
                size,
            } => (address, Calloc { count, size }),
            Recorded::Aligned {
                address,
                align,
                size,
                variant,
            } => (
                address,
                Aligned {
                    align,
                    size,
                    variant,
                },
            ),
            Recorded::Realloc { old, new, size, .. } => {
                if part != RecordPart::Return && old != 0 {
                    self.moving[place] = self.addresses.end(at, old);
                }
                if part == RecordPart::Entry {
                    return;
                }
                let old = self.moving[place].take();
                let old = old.map(|old| self.addresses.gone(old));
                match old {
                    Some(token) if new == 0 => return put(ReallocFree { token }),
                    None if new == 0 => return,
                    _ => (new, moved(old, size)),
                }
            }
            Recorded::Forking { moment } => {
                return self.ready.push_back(MergeStep::Forking(moment));
            }
            event => {
                if let Some(event) = translated(event, at, &mut self.addresses) {
                    put(event);
                }
                return;
            }
        };
        self.begin(at, address, event);
    }
}

/// Returns whether an event is the recorder's own: such an event may come before the one that
/// identifies the main thread.
fn is_of_recorder(event: &Recorded) -> bool {
    matches!(
        event,
        Recorded::Begin { .. } | Recorded::Clock | Recorded::ClockedOn | Recorded::Time { .. }
    )
}

/// Translates a record into an event of a trace, with the token of its object. `None` if there is
/// no object at the address, or if a trace has no such event.
#[inline]
fn translated(event: Recorded, at: MemoryPoint, addresses: &mut Addresses) -> Option<Event> {
    let token = match event {
        Recorded::Free { address, .. }
        | Recorded::FreeSized { address, .. }
        | Recorded::FreeAlignedSized { address, .. }
        | Recorded::FreeAligned { address, .. } => addresses.free(at, address)?,
        Recorded::UsableSize { address } | Recorded::Touch { address, .. } => {
            addresses.used(address)?
        }
        _ => Token::default(),
    };
    Some(match event {
        Recorded::Free { .. } => Free { token },
        Recorded::FreeSized { size, .. } => FreeSized { token, size },
        Recorded::FreeAlignedSized { align, size, .. } => FreeAlignedSized { token, align, size },
        Recorded::FreeAligned { align, .. } => FreeAligned { token, align },
        Recorded::UsableSize { .. } => UsableSize { token },
        Recorded::Touch {
            resident: resident_pages,
            extent: extent_pages,
            pages,
            ..
        } => Touch {
            token,
            resident_pages,
            extent_pages,
            pages,
        },
        Recorded::FreeNull => FreeNull,
        Recorded::Failed { call, size } => Failed { call, size },
        Recorded::ThreadStart { child } => ThreadStart { child },
        Recorded::ThreadExit => ThreadExit,
        Recorded::Fork { pid } => Fork { pid },
        Recorded::Main => Main,
        Recorded::Mallopt { parameter, value } => Mallopt { parameter, value },
        Recorded::Trim { pad } => Trim { pad },
        Recorded::Info => Info,
        Recorded::Mark { text } => Mark {
            text: String::from_utf8_lossy(text).into(),
        },
        _ => return None,
    })
}
