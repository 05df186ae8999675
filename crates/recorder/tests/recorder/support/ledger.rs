//! Checks a recording for what no program can do: get an address that is still alive, or free one
//! that is not.

use super::Capture;
use super::capture::Noted;
use heapmark_wire::capture::Event;
use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Ledger {
    /// Addresses that were born while they lived.
    pub born_twice: Vec<u64>,
    /// Addresses that died without having been born here. In a forked child they can come from its
    /// parent.
    pub unknown: Vec<u64>,
    /// Addresses that live at the end, with their sizes.
    pub alive: HashMap<u64, u64>,
}

enum Turn {
    Birth { address: u64, size: u64 },
    Death { address: u64 },
}

impl Ledger {
    pub fn of(capture: &Capture) -> Ledger {
        Ledger::of_events(&capture.streams)
    }

    /// All streams in the order of their stamps; each in its own order.
    pub fn of_events(streams: &[Vec<Noted>]) -> Ledger {
        let mut turns = Vec::new();
        for (stream, noted) in streams.iter().enumerate() {
            let mut last = 0;
            for (place, noted) in noted.iter().enumerate() {
                assert!(noted.stamp >= last, "a stream's stamps never go back");
                last = noted.stamp;
                let entered = match noted.event {
                    Event::Realloc { entered, .. } => entered.unwrap_or(noted.stamp),
                    _ => noted.stamp,
                };
                turns.extend(death(&noted.event).map(|turn| ((entered, stream, place), turn)));
                turns.extend(birth(&noted.event).map(|turn| ((noted.stamp, stream, place), turn)));
            }
        }
        turns.sort_by_key(|(when, _)| *when);
        let mut ledger = Ledger::default();
        for (_, turn) in turns {
            match turn {
                Turn::Birth { address, size } => {
                    if ledger.alive.insert(address, size).is_some() {
                        ledger.born_twice.push(address);
                    }
                }
                Turn::Death { address } => {
                    if ledger.alive.remove(&address).is_none() {
                        ledger.unknown.push(address);
                    }
                }
            }
        }
        ledger
    }

    pub fn assert_consistent(&self) {
        assert!(
            self.born_twice.is_empty(),
            "born while alive: {:x?}",
            self.born_twice
        );
        assert!(
            self.unknown.is_empty(),
            "freed and never born: {:x?}",
            self.unknown
        );
    }

    /// How many blocks of a size live at the end.
    pub fn alive(&self, size: u64) -> usize {
        self.alive.values().filter(|found| **found == size).count()
    }
}

fn birth(event: &Event) -> Option<Turn> {
    match *event {
        Event::Malloc { address, size, .. } | Event::Aligned { address, size, .. } => {
            Some(Turn::Birth { address, size })
        }
        Event::Calloc {
            address,
            count,
            size,
        } => Some(Turn::Birth {
            address,
            size: count * size,
        }),
        Event::Realloc { new, size, .. } if new != 0 => Some(Turn::Birth { address: new, size }),
        _ => None,
    }
}

fn death(event: &Event) -> Option<Turn> {
    match *event {
        Event::Free { address, .. }
        | Event::FreeSized { address, .. }
        | Event::FreeAlignedSized { address, .. }
        | Event::FreeAligned { address, .. } => Some(Turn::Death { address }),
        Event::Realloc { old, .. } if old != 0 => Some(Turn::Death { address: old }),
        _ => None,
    }
}
