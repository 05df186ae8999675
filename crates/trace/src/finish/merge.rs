//! Merges the streams of a capture into one order of events, with tokens instead of addresses.

use super::capture::Capture;
use super::clock::Rate;
use super::stream::{RecordPart, Stream};
use crate::Event;
use crate::addresses::{Addresses, MemoryPoint, Mended, PlacedObject, birth, death};
use crate::fault::Fault;
use heapmark_wire::capture;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events between two readings of the clock.
const CLOCK_EVERY: u32 = 64;

/// The result of a merge, besides its events.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub mended: Mended,
    /// Calls that use addresses which were never given out.
    pub unknown_uses: u64,
    /// Events that are missing.
    pub lost: u64,
    /// Bytes of events in the capture.
    pub bytes: u64,
    /// Peak of the live bytes.
    pub peak_live_bytes: u64,
    pub damage: Vec<String>,
}

/// The next item of a merge.
pub(super) enum MergeStep {
    Event(u32, Event),
    /// The child that names this moment inherits what is alive now.
    Forking(u64),
}

/// A merge in progress.
pub(super) struct Merge<'a> {
    capture: &'a Capture,
    streams: Vec<Stream<'a>>,
    rate: Rate,
    pub addresses: Addresses,
    /// Of each stream, the object that a `realloc` has freed and not yet replaced.
    moving: Vec<Option<PlacedObject>>,
    unknown_uses: u64,
    until_clock: u32,
    ns: u64,
}

impl<'a> Merge<'a> {
    pub(super) fn new(capture: &'a Capture) -> Merge<'a> {
        let streams: Vec<Stream> = capture
            .streams
            .iter()
            .map(|places| Stream::new(capture, places))
            .collect();
        let (moving, addresses) = (vec![None; streams.len()], Addresses::default());
        let rate = Rate::of(capture);
        Merge {
            capture,
            streams,
            rate,
            addresses,
            moving,
            unknown_uses: 0,
            until_clock: 0,
            ns: 0,
        }
    }

    /// Adds an object from before the recording.
    pub(super) fn inherit(&mut self, address: u64, event: Event, put: &mut impl FnMut(u32, Event)) {
        self.addresses.begin(
            MemoryPoint {
                key: 0,
                thread: 0,
                stream: usize::MAX,
            },
            address,
            event,
            put,
        );
    }

    /// Emits all events in order, until there are none or `put` returns false.
    pub(super) fn run(
        mut self,
        mut put: impl FnMut(&Addresses, MergeStep) -> Result<bool, Fault>,
    ) -> Result<Merged, Fault> {
        let mut heap: BinaryHeap<Reverse<(u64, usize)>> = self
            .streams
            .iter()
            .enumerate()
            .filter_map(|(place, stream)| Some(Reverse((stream.key()?, place))))
            .collect();
        let mut ready = Vec::new();
        'all: while let Some(Reverse((_, place))) = heap.pop() {
            let limit = heap.peek().map_or(u64::MAX, |Reverse((key, _))| *key);
            loop {
                self.step(place, &mut |step| ready.push(step));
                for step in ready.drain(..) {
                    if !put(&self.addresses, step)? {
                        break 'all;
                    }
                }
                self.streams[place].advance();
                match self.streams[place].key() {
                    Some(key) if key > limit => {
                        heap.push(Reverse((key, place)));
                        break;
                    }
                    Some(_) => {}
                    None => break,
                }
            }
        }
        let Addresses {
            mended,
            most_bytes: peak_live_bytes,
            ..
        } = self.addresses;
        let mut merged = Merged {
            mended,
            peak_live_bytes,
            unknown_uses: self.unknown_uses,
            ..Merged::default()
        };
        for stream in self.streams {
            merged.lost = merged.lost.saturating_add(stream.lost);
            merged.bytes += stream.bytes;
            merged.damage.extend(stream.damage);
        }
        if let Some(length) = self.capture.shortened.get() {
            merged.damage.push(format!(
                "the file became shorter while it was read: what stood behind byte {length} is lost"
            ));
        }
        Ok(merged)
    }

    /// Emits the next item of a stream, as events without addresses: mostly one.
    #[inline]
    fn step(&mut self, place: usize, give: &mut impl FnMut(MergeStep)) {
        let mut put = |thread, event| give(MergeStep::Event(thread, event));
        let put = &mut put;
        let stream = &self.streams[place];
        let (Some(key), Some((part, record))) = (stream.key(), stream.next()) else {
            return;
        };
        let at = MemoryPoint {
            key,
            thread: record.thread,
            stream: place,
        };
        match self.until_clock.checked_sub(1) {
            Some(left) => self.until_clock = left,
            None => {
                self.until_clock = CLOCK_EVERY;
                let ns = self.rate.ns(stream.known, record.stamp);
                if ns > self.ns {
                    self.ns = ns;
                    put(at.thread, Event::Clock { ns });
                }
            }
        }
        if let Some((address, event)) = birth(&record.event) {
            self.addresses.begin(at, address, event, put);
        } else if let Some((address, mut event)) = death(&record.event) {
            if let (Some(found), Some(token)) = (self.addresses.end(at, address), event.names_mut())
            {
                *token = found.token();
                self.addresses.gone(found);
                put(at.thread, event);
            }
        } else if let capture::Event::Realloc { old, new, size, .. } = record.event {
            if part != RecordPart::Return && old != 0 {
                self.moving[place] = self.addresses.end(at, old);
            }
            if part != RecordPart::Entry {
                let old = self.moving[place].take();
                if let Some(old) = old {
                    self.addresses.gone(old);
                }
                match (old.map(PlacedObject::token), new) {
                    (None, 0) => {}
                    (Some(token), 0) => put(at.thread, Event::ReallocFree { token }),
                    (Some(token), new) => {
                        self.addresses
                            .begin(at, new, Event::Realloc { token, size }, put)
                    }
                    (None, new) => self.addresses.begin(
                        at,
                        new,
                        Event::Malloc {
                            size,
                            operator: false,
                        },
                        put,
                    ),
                }
            }
        } else if let capture::Event::Forking { moment } = record.event {
            give(MergeStep::Forking(moment));
        } else {
            self.other(place, put);
        }
    }

    /// Handles events that begin and end no object.
    fn other(&mut self, place: usize, put: &mut impl FnMut(u32, Event)) {
        let Some((_, record)) = self.streams[place].next() else {
            return;
        };
        let known = |address: u64| self.addresses.at(address);
        let event = match record.event {
            capture::Event::UsableSize { address } => {
                known(address).map(|token| Event::UsableSize { token })
            }
            capture::Event::Touch {
                address,
                resident,
                pages,
            } => known(address).map(|token| Event::Touch {
                token,
                resident_pages: resident,
                pages,
            }),
            capture::Event::FreeNull => Some(Event::FreeNull),
            capture::Event::Failed { call, size } => Some(Event::Failed { call, size }),
            capture::Event::ThreadStart { child } => Some(Event::ThreadStart { child }),
            capture::Event::ThreadExit => Some(Event::ThreadExit),
            capture::Event::Fork { pid } => Some(Event::Fork { pid }),
            capture::Event::Mark { text } => Some(Event::Mark {
                text: String::from_utf8_lossy(text).into(),
            }),
            _ => return,
        };
        match event {
            Some(event) => put(record.thread, event),
            None => self.unknown_uses += 1,
        }
    }
}
