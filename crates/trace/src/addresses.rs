//! Turns addresses into tokens, for captures and for other tools' traces. Impossible sequences,
//! such as an address that is given out twice or freed twice, are repaired and counted.

use super::near::Near;
use super::{Event, MOST_THREADS, Token};
use foldhash::fast::RandomState;
use heapmark_wire::capture;
use std::collections::HashMap;

/// The clocks of two streams may differ by this much, in units of their order: some microseconds.
/// Beyond it, a mismatch is not a matter of order.
const SKEW: u64 = 1 << 12;
/// How many frees of unknown addresses are remembered in case their allocation comes late.
const MOST_EARLY: usize = 1 << 12;

/// What was found and repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Addresses that were given out just before they were freed: their previous object ends there.
    pub reused: u64,
    /// Addresses that were given out while they were in use, and never freed: their previous object
    /// ends there.
    pub unseen: u64,
    /// Frees that came just before the allocation.
    pub early: u64,
    /// Frees of addresses that were never given out: they are left out.
    pub unknown: u64,
}

impl Mended {
    /// Places where the order cannot be the recorded one.
    pub fn repairs(&self) -> u64 {
        self.reused + self.early
    }
}

/// The object at an address.
#[derive(Clone, Copy)]
pub(super) struct PlacedObject {
    token: u64,
    size: u64,
}

impl PlacedObject {
    pub(super) fn token(self) -> Token {
        Token::of_packed(self.token)
    }
}

/// Which object is at which address.
#[derive(Default)]
pub(super) struct Addresses {
    live: HashMap<u64, PlacedObject, Near>,
    live_bytes: u64,
    /// Peak of the live bytes.
    pub most_bytes: u64,
    /// Allocations of each thread.
    allocations: Vec<u64>,
    /// Addresses that were freed because they were given out again, and when: their recorded free
    /// is still to come, from another stream.
    owed: HashMap<u64, MemoryPoint, RandomState>,
    /// Frees of addresses that were not known, and when: their allocation may still come, from
    /// another stream.
    early: HashMap<u64, MemoryPoint, RandomState>,
    pub mended: Mended,
}

/// The thread of an event, and its time.
#[derive(Clone, Copy)]
pub(super) struct MemoryPoint {
    pub key: u64,
    pub thread: u32,
    /// Within a stream, order is certain.
    pub stream: usize,
}

impl MemoryPoint {
    /// Whether these two may have happened in the other order.
    fn may_precede(self, earlier: MemoryPoint) -> bool {
        self.stream != earlier.stream && self.key.saturating_sub(earlier.key) <= SKEW
    }
}

impl Addresses {
    /// Begins an object at an address. Emits the events that this takes: mostly its own, sometimes
    /// a repair around it.
    #[inline]
    pub(super) fn begin(
        &mut self,
        at: MemoryPoint,
        address: u64,
        event: Event,
        put: &mut impl FnMut(u32, Event),
    ) {
        let thread = at.thread;
        let token = self.next_token(thread);
        let object = PlacedObject {
            token: token.packed(),
            size: event.begins().unwrap_or(0),
        };
        if let Some(before) = self.live.insert(address, object) {
            self.gone(before);
            self.mended.unseen += 1;
            if self.owed.len() >= MOST_EARLY {
                self.owed.clear();
            }
            self.owed.insert(address, at);
            put(
                thread,
                Event::Free {
                    token: before.token(),
                },
            );
        }
        self.live_bytes = self.live_bytes.saturating_add(object.size);
        self.most_bytes = self.most_bytes.max(self.live_bytes);
        put(thread, event);
        if !self.early.is_empty()
            && let Some(end) = self.early.remove(&address)
            && at.may_precede(end)
        {
            self.live.remove(&address);
            self.gone(object);
            self.mended.early += 1;
            self.mended.unknown -= 1;
            put(end.thread, Event::Free { token });
        }
    }

    fn next_token(&mut self, thread: u32) -> Token {
        let place = thread as usize;
        // The writer refuses more threads than a trace can have; nothing is kept for them.
        if place >= MOST_THREADS as usize {
            return Token { thread, index: 0 };
        }
        if place >= self.allocations.len() {
            self.allocations.resize(place + 1, 0);
        }
        self.allocations[place] += 1;
        Token {
            thread,
            index: self.allocations[place] - 1,
        }
    }

    /// Removes and returns the object at an address. Its bytes count until it is
    /// [`gone`](Self::gone).
    #[inline]
    pub(super) fn end(&mut self, at: MemoryPoint, address: u64) -> Option<PlacedObject> {
        if !self.owed.is_empty()
            && let Some(begin) = self.owed.remove(&address)
            && at.may_precede(begin)
        {
            self.mended.unseen -= 1;
            self.mended.reused += 1;
            return None;
        }
        let found = self.live.remove(&address);
        if found.is_none() {
            self.mended.unknown += 1;
            if self.early.len() >= MOST_EARLY {
                self.early.clear();
            }
            self.early.insert(address, at);
        }
        found
    }

    /// Called when the event that ends an object has been emitted.
    #[inline]
    pub(super) fn gone(&mut self, object: PlacedObject) {
        self.live_bytes = self.live_bytes.saturating_sub(object.size);
    }

    /// The object at an address.
    pub(super) fn at(&self, address: u64) -> Option<Token> {
        self.live.get(&address).map(|object| object.token())
    }

    /// All live objects.
    pub(super) fn live(&self) -> impl Iterator<Item = (u64, Token)> {
        self.live
            .iter()
            .map(|(address, object)| (*address, object.token()))
    }
}

/// An event that begins an object, without its address; `None` for the others.
#[inline]
pub(super) fn birth(event: &capture::Event) -> Option<(u64, Event)> {
    Some(match *event {
        capture::Event::Malloc {
            address,
            size,
            operator,
        } => (address, Event::Malloc { size, operator }),
        capture::Event::Calloc {
            address,
            count,
            size,
        } => (address, Event::Calloc { count, size }),
        capture::Event::Aligned {
            address,
            align,
            size,
            variant,
        } => (
            address,
            Event::Aligned {
                align,
                size,
                variant,
            },
        ),
        _ => return None,
    })
}

/// An event that ends the object at an address, whose token the caller fills in; `None` for
/// the others.
#[inline]
pub(super) fn death(event: &capture::Event) -> Option<(u64, Event)> {
    let token = Token::default();
    Some(match *event {
        capture::Event::Free { address, .. } => (address, Event::Free { token }),
        capture::Event::FreeSized { address, size, .. } => {
            (address, Event::FreeSized { token, size })
        }
        capture::Event::FreeAlignedSized {
            address,
            align,
            size,
            ..
        } => (address, Event::FreeAlignedSized { token, align, size }),
        capture::Event::FreeAligned { address, align } => {
            (address, Event::FreeAligned { token, align })
        }
        _ => return None,
    })
}
