//! Turns addresses into tokens, for captures and for other tools' traces. Impossible sequences,
//! such as an address that is given out twice or freed twice, are repaired and counted.

use super::layout::checked_thread;
use super::live::Allocations;
use super::near::Near;
use super::{Event, Token};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// The most by which the clocks of two streams may differ, in units of their ordering key: some
/// microseconds. A larger mismatch cannot be explained by a wrong order.
const SKEW: u64 = 1 << 12;
/// The most frees of unknown addresses that are remembered in case their allocation comes late.
const MOST_EARLY: usize = 1 << 12;

/// The inconsistencies that were found and repaired.
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Mended {
    /// Addresses that were given out just before they were freed: their previous object ends there.
    pub reused: u64,
    /// Addresses that were given out while they were in use, and never freed: their previous object
    /// ends there.
    pub unseen: u64,
    /// Frees that came just before the allocation of their object.
    pub early: u64,
    /// Frees of addresses that were never given out; these are left out of the trace.
    pub unknown: u64,
}

impl Mended {
    /// Returns the number of places where the recorded order cannot be right.
    pub fn repairs(&self) -> u64 {
        self.reused + self.early
    }
}

/// The object at an address.
#[derive(Clone, Copy)]
pub struct PlacedObject {
    token: u64,
    size: u64,
}

/// The objects in use, by their addresses.
#[derive(Default)]
pub struct Addresses {
    live: HashMap<u64, PlacedObject, Near>,
    live_bytes: u64,
    /// Peak of the live bytes.
    pub most_bytes: u64,
    allocations: Allocations,
    /// Addresses that were freed because they were given out again, and when: their recorded free
    /// is still to come, from another stream.
    owed: HashMap<u64, MemoryPoint, RandomState>,
    /// Frees of addresses that were not known, and when: their allocation may still come, from
    /// another stream.
    early: HashMap<u64, MemoryPoint, RandomState>,
    pub mended: Mended,
    /// Calls that use addresses which were never given out.
    pub unknown_uses: u64,
}

/// The time, the thread and the stream of an event.
#[derive(Clone, Copy)]
pub struct MemoryPoint {
    pub key: u64,
    pub thread: u32,
    /// The stream's number; the order of events within one stream is certain.
    pub stream: usize,
}

impl MemoryPoint {
    /// Returns whether the two events may have happened in the opposite order.
    fn may_precede(self, earlier: MemoryPoint) -> bool {
        self.stream != earlier.stream && self.key.saturating_sub(earlier.key) <= SKEW
    }
}

impl Addresses {
    /// Begins an object at an address. Emits the events needed for that: usually only the object's
    /// own event, sometimes also a repair around it.
    #[inline]
    pub fn begin(
        &mut self,
        at: MemoryPoint,
        address: u64,
        event: Event,
        put: &mut impl FnMut(u32, Event),
    ) {
        let thread = at.thread;
        // The writer refuses more threads than a trace can have; nothing is kept for them.
        let token = checked_thread(thread.into())
            .map_or(Token::default(), |thread| self.allocations.next(thread));
        let object = PlacedObject {
            token: token.packed(),
            size: event.begins().unwrap_or(0),
        };
        if let Some(before) = self.live.insert(address, object) {
            self.mended.unseen += 1;
            remember(&mut self.owed, address, at);
            let token = self.gone(before);
            put(thread, Event::Free { token });
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

    /// Removes and returns the object at an address. Its bytes count until it is
    /// [`gone`](Self::gone).
    #[inline]
    pub fn end(&mut self, at: MemoryPoint, address: u64) -> Option<PlacedObject> {
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
            remember(&mut self.early, address, at);
        }
        found
    }

    /// Stops counting an object's bytes when the event that ends it is emitted; returns its token.
    #[inline]
    pub fn gone(&mut self, object: PlacedObject) -> Token {
        self.live_bytes = self.live_bytes.saturating_sub(object.size);
        Token::of_packed(object.token)
    }

    /// Ends the object at an address at once; returns its token.
    #[inline]
    pub fn free(&mut self, at: MemoryPoint, address: u64) -> Option<Token> {
        let object = self.end(at, address)?;
        Some(self.gone(object))
    }

    /// Returns the object that a call uses, by its address; counts a call without an object.
    pub fn used(&mut self, address: u64) -> Option<Token> {
        let object = self.live.get(&address);
        self.unknown_uses += u64::from(object.is_none());
        Some(Token::of_packed(object?.token))
    }

    /// Returns all live objects.
    pub fn live(&self) -> impl Iterator<Item = (u64, Token)> {
        self.live
            .iter()
            .map(|(address, object)| (*address, Token::of_packed(object.token)))
    }
}

/// Remembers an address for a while.
fn remember(points: &mut HashMap<u64, MemoryPoint, RandomState>, address: u64, at: MemoryPoint) {
    if points.len() >= MOST_EARLY {
        points.clear();
    }
    points.insert(address, at);
}

/// Returns the event of a `realloc` to a new address: the object at the old address moves, or, if
/// there was none, the call becomes a `malloc`.
pub fn moved(old: Option<Token>, size: u64) -> Event {
    match old {
        Some(token) => Event::Realloc { token, size },
        None => Event::Malloc {
            size,
            operator: false,
        },
    }
}
