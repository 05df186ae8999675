//! One stream of a capture: its chunks one after the other, and of each event the moment at which its turn comes.

use super::capture::{Capture, Place};
use heapmark_wire::capture::{Event, Record, Records};
use std::slice::Iter;

/// A `realloc` has two moments: the old address is free when it begins, and the new one is there when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Everything at once.
    Whole,
    /// The old address is free.
    Entry,
    /// The new one is there.
    Return,
}

/// What comes next of a stream.
pub(super) struct Next<'a> {
    /// Orders what happened in different streams. It never goes back within one.
    pub key: u64,
    pub part: Part,
    pub record: Record<'a>,
}

/// A stream that is being read.
pub(super) struct Stream<'a> {
    capture: &'a Capture,
    places: Iter<'a, Place>,
    current: Option<(Place, Records<'a>)>,
    /// When the recording ended. Threads notice a little later, each at another time.
    end: u64,
    /// The number that the next event must have.
    expected: u64,
    key: u64,
    /// A moment of this stream and its time: stamp and nanoseconds.
    pub known: (u64, u64),
    /// What comes next.
    pub next: Option<Next<'a>>,
    /// What is wrong with it.
    pub damage: Vec<String>,
    /// Events that are missing.
    pub lost: u64,
}

impl<'a> Stream<'a> {
    pub(super) fn new(capture: &'a Capture, places: &'a [Place]) -> Stream<'a> {
        let places = places.iter();
        let (damage, known) = (Vec::new(), (0, 0));
        let end = capture.head.get("end.stamp").and_then(|text| text.parse().ok()).unwrap_or(u64::MAX);
        let mut stream =
            Stream { capture, places, current: None, end, expected: 0, key: 0, known, next: None, damage, lost: 0 };
        stream.advance();
        stream
    }

    /// Goes on to what comes next.
    #[inline]
    pub(super) fn advance(&mut self) {
        if let Some(Next { part: part @ Part::Entry, record, key }) = &mut self.next {
            *part = Part::Return;
            *key = self.key.max(order(record.stamp.unwrap_or(0), true));
            self.key = *key;
            return;
        }
        let end = self.end;
        let in_time = |record: &Record| record.stamp.is_none_or(|stamp| stamp <= end);
        let Some(record) = self.record().filter(in_time) else {
            self.next = None;
            return;
        };
        let (stamp, part) = match record.event {
            Event::Realloc { entered: Some(entered), old, .. } if old != 0 => (Some(entered), Part::Entry),
            _ => (record.stamp, Part::Whole),
        };
        if let Some(stamp) = stamp {
            self.key = self.key.max(order(stamp, part == Part::Whole && begins(&record.event)));
        }
        self.next = Some(Next { key: self.key, part, record });
    }

    #[inline]
    fn record(&mut self) -> Option<Record<'a>> {
        loop {
            if let Some((place, records)) = &mut self.current {
                match records.next() {
                    Some(Ok(record)) => {
                        self.expected = record.number.wrapping_add(1);
                        return Some(record);
                    }
                    Some(Err(damage)) => self.damage.push(format!("stream {}: {damage}", place.start.stream)),
                    None => {}
                }
                self.capture.leave(*place);
            }
            let place = *self.places.next()?;
            match self.capture.chunk(place) {
                Ok(chunk) => {
                    let first = chunk.start.first_event;
                    self.missing(place, first);
                    self.known = (chunk.start.stamp, chunk.start.ns);
                    self.key = self.key.max(order(chunk.start.stamp, false));
                    self.current = Some((place, chunk.records()));
                }
                Err(wrong) => {
                    self.current = None;
                    self.damage.push(wrong);
                }
            }
        }
    }

    fn missing(&mut self, place: Place, first: u64) {
        if first > self.expected {
            let missing = first - self.expected;
            self.lost = self.lost.saturating_add(missing);
            self.damage
                .push(format!("stream {}: {missing} events before event {first} are missing", place.start.stream));
        } else if first < self.expected {
            self.damage.push(format!("stream {}: events from {first} on are there twice", place.start.stream));
        }
    }
}

/// At the same stamp, what ends comes before what begins: an address that changes hands does so in this order.
fn order(stamp: u64, begins: bool) -> u64 {
    stamp.min(u64::MAX >> 1) << 1 | u64::from(begins)
}

fn begins(event: &Event) -> bool {
    matches!(event, Event::Malloc { .. } | Event::Calloc { .. } | Event::Aligned { .. } | Event::Realloc { .. })
}
