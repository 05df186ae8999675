//! The live objects of a process, and the calls that could make them: a forked child inherits them.

use crate::addresses::Addresses;
use crate::cut::birth;
use crate::{Event, Live};

/// The live objects of a process and their calls. Kept only for processes that have children, since
/// keeping them takes as long as the merge itself.
#[derive(Default)]
pub struct Heritage {
    live: Live<(u64, Event)>,
    events: u64,
}

impl Heritage {
    /// Applies an event.
    pub fn follow(&mut self, thread: u32, event: &Event) {
        self.events += 1;
        let number = self.events;
        // Events that cannot have happened change no object.
        drop(
            self.live
                .follow(thread, event, |size, _| (number, birth(event, size))),
        );
    }

    /// Returns the addresses and calls of the live objects, in the order of their allocations.
    pub fn alive(&self, addresses: &Addresses) -> Vec<(u64, Event)> {
        let mut alive: Vec<_> = addresses
            .live()
            .filter_map(|(address, token)| Some((address, self.live.get(token)?)))
            .collect();
        alive.sort_unstable_by_key(|(_, (number, _))| *number);
        alive
            .into_iter()
            .map(|(address, (_, event))| (address, event.clone()))
            .collect()
    }
}
