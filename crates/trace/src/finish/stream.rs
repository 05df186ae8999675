//! One stream of a capture: its chunks in order, and for each event the key that orders it among
//! the streams.

use super::capture::{Capture, ChunkPlace};
use heapmark_wire::capture::{CHUNK_BYTES, Chunk, Damage, Event, Record, Records, Start};
use std::slice::Iter;

/// Key in the capture's text: the events of each stream when the process ended. The stream's number
/// follows.
pub(super) const EVENTS: &str = "end.events.";

/// A `realloc` has two moments: the old address is free when it begins, and the new one is valid
/// when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordPart {
    /// Everything at once.
    Whole,
    /// The old address becomes free.
    Entry,
    /// The new address becomes valid.
    Return,
}

/// A chunk that is being read.
struct Reading<'a> {
    start: Start,
    bytes: u64,
    records: Records<'a>,
    /// The last item read. Stored where it is written: to move an event takes longer than to read
    /// it.
    next: Option<Result<Record<'a>, Damage>>,
}

self_cell::self_cell! {
    /// A chunk's bytes, and the reader that looks into them.
    struct Opened {
        owner: Vec<u8>,
        #[covariant]
        dependent: Reading,
    }
}

/// A stream that is being read.
pub(super) struct Stream<'a> {
    capture: &'a Capture,
    /// Its number.
    name: u32,
    places: Iter<'a, ChunkPlace>,
    opened: Option<Opened>,
    /// The buffer of the previous chunk, for reuse.
    room: Vec<u8>,
    /// When the recording ended. Threads notice that a little later, each at another time.
    end: u64,
    /// The number of its events when the process ended, if known.
    told: u64,
    /// The number that the first event of the next chunk must have.
    expected: u64,
    /// Orders events of different streams. It never decreases within one.
    key: u64,
    /// The part of the next event; `None` if there is none.
    part: Option<RecordPart>,
    /// A moment of this stream with a known time: stamp and nanoseconds.
    pub known: (u64, u64),
    /// What is wrong with it.
    pub damage: Vec<String>,
    /// Events that are missing.
    pub lost: u64,
    /// Bytes of the events that were read.
    pub bytes: u64,
}

impl<'a> Stream<'a> {
    pub(super) fn new(capture: &'a Capture, places: &'a [ChunkPlace]) -> Stream<'a> {
        let number = |key: &str| capture.head.get(key).and_then(|text| text.parse().ok());
        let end = number("end.stamp").unwrap_or(u64::MAX);
        let name = places.first().map_or(0, |place| place.start.stream);
        let mut stream = Stream {
            capture,
            name,
            places: places.iter(),
            opened: None,
            room: Vec::new(),
            end,
            told: number(&format!("{EVENTS}{name}")).unwrap_or(0),
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

    /// The key of the next event.
    #[inline]
    pub(super) fn key(&self) -> Option<u64> {
        self.part.map(|_| self.key)
    }

    /// The next event.
    #[inline]
    pub(super) fn next(&self) -> Option<(RecordPart, &Record<'_>)> {
        Some((self.part?, self.record()?))
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
    pub(super) fn advance(&mut self) {
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
                let reading = opened.borrow_dependent();
                match &reading.next {
                    Some(Ok(_)) => return,
                    Some(Err(damage)) => self
                        .damage
                        .push(format!("stream {}: {damage}", reading.start.stream)),
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
        for &place in self.places.by_ref() {
            let name = format!("chunk {}", place.at / CHUNK_BYTES as u64);
            if let Err(error) = self.capture.read(place.at, &mut self.room) {
                self.damage.push(format!("{name}: {error}"));
                continue;
            }
            let opened = Opened::try_new_or_recover(std::mem::take(&mut self.room), |bytes| {
                let chunk = Chunk::parse(bytes).map_err(|wrong| wrong.to_string())?;
                let chunk = chunk.ok_or("it was there, and is not any more")?;
                let bytes = chunk.payload.len() as u64;
                Ok::<_, String>(Reading {
                    start: chunk.start,
                    bytes,
                    records: chunk.records(),
                    next: None,
                })
            });
            match opened {
                Ok(opened) => {
                    self.begin(opened);
                    return true;
                }
                Err((room, wrong)) => {
                    self.room = room;
                    // If the file became shorter, one line reports that for all streams.
                    if self.capture.shortened.get().is_none() {
                        self.damage.push(format!("{name}: {wrong}"));
                    }
                }
            }
        }
        if self.told > self.expected {
            let missing = self.told - self.expected;
            self.lost = self.lost.saturating_add(missing);
            self.damage.push(format!(
                "stream {}: {missing} events at its end are missing",
                self.name
            ));
            self.told = 0;
        }
        false
    }

    fn begin(&mut self, opened: Opened) {
        let Start {
            stream,
            first_event,
            stamp,
            ns,
            ..
        } = opened.borrow_dependent().start;
        self.missing(stream, first_event);
        self.known = (stamp, ns);
        self.key = self.key.max(order(stamp, false));
        self.bytes += opened.borrow_dependent().bytes;
        self.opened = Some(opened);
    }

    fn missing(&mut self, stream: u32, first: u64) {
        if first > self.expected {
            let missing = first - self.expected;
            self.lost = self.lost.saturating_add(missing);
            self.damage.push(format!(
                "stream {stream}: {missing} events before event {first} are missing"
            ));
        } else if first < self.expected {
            self.damage.push(format!(
                "stream {stream}: events from {first} on are there twice"
            ));
        }
    }
}

/// At the same stamp, an end comes before a beginning: an address that changes its owner does so in
/// this order.
fn order(stamp: u64, begins: bool) -> u64 {
    stamp.min(u64::MAX >> 1) << 1 | u64::from(begins)
}

fn begins(event: &Event) -> bool {
    matches!(
        event,
        Event::Malloc { .. } | Event::Calloc { .. } | Event::Aligned { .. } | Event::Realloc { .. }
    )
}
