//! A number of bytes and the most that it has been, exactly: samples of it would miss a short peak.

use core::sync::atomic::{AtomicU64, Ordering};

/// All zero is valid.
#[repr(C)]
#[derive(Default)]
pub struct HighWater {
    now: AtomicU64,
    most: AtomicU64,
}

impl HighWater {
    /// So many bytes more, or fewer if negative.
    pub fn grow(&self, bytes: i64) {
        let before = self.now.fetch_add(bytes as u64, Ordering::AcqRel);
        if bytes > 0 {
            let now = before.wrapping_add(bytes as u64);
            self.most.fetch_max(now, Ordering::AcqRel);
        }
    }

    /// The number.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// The most that it has been.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Acquire)
    }
}
