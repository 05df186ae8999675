//! One stream of a capture: its chunks in order, and for each event the key that orders it among
//! the streams.

use super::capture::Capture;
use heapmark_wire::capture::{Chunk, Damage, Event, Record, Records, Start};
use std::slice::Iter;

/// The start of a key in the capture's text, followed by a stream's number. The value is the number
/// of the stream's events when the process ended.
pub const EVENTS: &str = "end.events.";

/// The part of an event. A `realloc` has two: the old address is free when it begins, and the new
/// one is valid when it returns.
#[derive(Clone, Copy, PartialEq)]
pub enum RecordPart {
    /// The whole event at once.
    Whole,
    /// The beginning of a `realloc`, which frees the old address.
    Entry,
    /// The return of a `realloc`, which makes the new address valid.
    Return,
}

/// A chunk that is being read.
struct Reading<'a> {
    chunk: Chunk<'a>,
    records: Records<'a>,
    /// The last item read, stored in place: moving an event takes longer than reading it.
    next: Option<Result<Record<'a>, Damage>>,
}

self_cell::self_cell! {
    /// A chunk's bytes, and the reader that borrows them.
    struct Opened {
        owner: Vec<u8>,
        #[covariant]
        dependent: Reading,
    }
}

/// A stream that is being read.
pub struct Stream<'a> {
    capture: &'a Capture,
    /// The stream's number.
    name: u32,
    /// The stream's further chunks.
    starts: Iter<'a, Start>,
    opened: Option<Opened>,
    /// The buffer of the previous chunk, for reuse.
    room: Vec<u8>,
    /// The stamp at which the recording ended. Each thread notices the end a little later.
    end: u64,
    /// The number of the stream's events when the process ended; 0 if it is not known.
    told: u64,
    /// The number that the first event of the next chunk must have.
    expected: u64,
    /// The key that orders events of different streams. It never decreases within one stream.
    key: u64,
    /// The part of the next event; `None` if there is none.
    part: Option<RecordPart>,
    /// A moment of this stream with a known time: stamp and nanoseconds.
    pub known: (u64, u64),
    /// Faults of the stream.
    pub damage: Vec<String>,
    /// The number of missing events.
    pub lost: u64,
    /// Bytes of the events that were read.
    pub bytes: u64,
}

impl<'a> Stream<'a> {
    pub fn new(capture: &'a Capture, starts: &'a [Start]) -> Stream<'a> {
        let name = starts.first().map_or(0, |start| start.stream);
        let mut stream = Stream {
            capture,
            name,
            starts: starts.iter(),
            opened: None,
            room: Vec::new(),
            end: capture.head.number("end.stamp").unwrap_or(u64::MAX),
            told: capture.head.number(&format!("{EVENTS}{name}")).unwrap_or(0),
            expected: 0,
            key: 0,
            part: None,
            known: (0, 0),
            damage: Vec::new(),
            lost: 0,
            bytes: 0,
        };
        stream.advance();
        stream
    }

    /// Returns the key of the next event.
    #[inline]
    pub fn key(&self) -> Option<u64> {
        self.part.map(|_| self.key)
    }

    /// Returns the next event, with its key and its part.
    #[inline]
    pub fn next(&self) -> Option<(u64, RecordPart, &Record<'_>)> {
        Some((self.key, self.part?, self.record()?))
    }

    fn record(&self) -> Option<&Record<'_>> {
        self.opened
            .as_ref()?
            .borrow_dependent()
            .next
            .as_ref()?
            .as_ref()
            .ok()
    }

    /// Advances to the next event.
    #[inline]
    pub fn advance(&mut self) {
        if self.part == Some(RecordPart::Entry) {
            let returned = self.record().and_then(|record| record.stamp).unwrap_or(0);
            self.key = self.key.max(order(returned, true));
            self.part = Some(RecordPart::Return);
            return;
        }
        self.read();
        let Some(record) = self
            .record()
            .filter(|record| record.stamp.is_none_or(|stamp| stamp <= self.end))
        else {
            self.part = None;
            return;
        };
        let (stamp, part) = match record.event {
            Event::Realloc {
                entered: Some(entered),
                old,
                ..
            } if old != 0 => (Some(entered), RecordPart::Entry),
            _ => (record.stamp, RecordPart::Whole),
        };
        let begins = part == RecordPart::Whole && begins(&record.event);
        if let Event::Time { ns } = record.event {
            self.known = (stamp.unwrap_or(self.known.0), ns);
        }
        if let Some(stamp) = stamp {
            self.key = self.key.max(order(stamp, begins));
        }
        self.part = Some(part);
    }

    /// Reads the next event of this chunk or, at its end, of the chunks after it.
    #[inline]
    fn read(&mut self) {
        loop {
            if let Some(opened) = &mut self.opened {
                opened.with_dependent_mut(|_, reading| reading.next = reading.records.next());
                match &opened.borrow_dependent().next {
                    Some(Ok(_)) => return,
                    Some(Err(damage)) => {
                        self.damage.push(format!("stream {}: {damage}", self.name));
                    }
                    None => {}
                }
            }
            if !self.open_next() {
                return;
            }
        }
    }

    /// Opens the next chunk that can be read; `false` if there is none.
    #[cold]
    fn open_next(&mut self) -> bool {
        if let Some(opened) = self.opened.take() {
            self.expected = opened.borrow_dependent().records.next_number();
            self.room = opened.into_owner();
        }
        for start in self.starts.by_ref() {
            let number = start.place;
            if let Err(error) = self.capture.read(number, &mut self.room) {
                self.damage.push(format!("chunk {number}: {error}"));
                continue;
            }
            let opened = Opened::try_new_or_recover(std::mem::take(&mut self.room), |bytes| {
                let chunk = Chunk::parse(bytes)
                    .map_err(|wrong| wrong.to_string())?
                    .ok_or("it was there, and is not any more")?;
                Ok::<_, String>(Reading {
                    chunk,
                    records: chunk.records(),
                    next: None,
                })
            });
            match opened {
                Ok(opened) => {
                    self.begin(&opened.borrow_dependent().chunk);
                    self.opened = Some(opened);
                    return true;
                }
                Err((room, wrong)) => {
                    self.room = room;
                    // If the file became shorter, one line reports that for all streams.
                    if self.capture.shortened.get().is_none() {
                        self.damage.push(format!("chunk {number}: {wrong}"));
                    }
                }
            }
        }
        if self.told > self.expected {
            self.lose(self.told - self.expected, "at its end");
            self.told = 0;
        }
        false
    }

    fn begin(&mut self, chunk: &Chunk) {
        let start = &chunk.start;
        let first = start.first_event;
        let expected = self.expected;
        if first > expected {
            self.lose(first - expected, &format!("before event {first}"));
        } else if first < expected {
            self.damage.push(format!(
                "stream {}: events from {first} on are there twice",
                self.name
            ));
        }
        self.known = (start.stamp, start.ns);
        self.key = self.key.max(order(start.stamp, false));
        self.bytes += chunk.payload.len() as u64;
    }

    fn lose(&mut self, missing: u64, place: &str) {
        self.lost = self.lost.saturating_add(missing);
        self.damage.push(format!(
            "stream {}: {missing} events {place} are missing",
            self.name
        ));
    }
}

/// Returns the key of a stamp. At the same stamp, an end comes before a beginning: an address that
/// changes its owner does so in this order.
fn order(stamp: u64, begins: bool) -> u64 {
    stamp.min(u64::MAX >> 1) << 1 | u64::from(begins)
}

fn begins(event: &Event) -> bool {
    matches!(
        event,
        Event::Malloc { .. } | Event::Calloc { .. } | Event::Aligned { .. } | Event::Realloc { .. }
    )
}
