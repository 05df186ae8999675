//! How much is live at most, found while a trace is written: who asks need not read it once more.

use crate::trace::{Event, Live};

/// Follows sizes. Only for whoever asks: it takes a look-up for each event.
#[derive(Default)]
pub(super) struct Peak {
    live: Live<u64>,
    bytes: u64,
    /// Bytes asked for and not given back, at most.
    pub most_bytes: u64,
}

impl Peak {
    /// What an event changes.
    pub(super) fn follow(&mut self, thread: u32, event: &Event) {
        // What cannot be changes nothing.
        let Ok((_, ended)) = self.live.follow(thread, event, |size, _| size) else { return };
        let left = self.bytes.saturating_sub(ended.unwrap_or(0));
        self.bytes = left.saturating_add(event.begins().unwrap_or(0));
        self.most_bytes = self.most_bytes.max(self.bytes);
    }
}
