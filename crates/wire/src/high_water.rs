//! A number of bytes and its highest value so far, exactly: samples would miss a short peak.

use core::sync::atomic::{AtomicU64, Ordering};

/// A number of bytes and its highest value so far. All zeros are valid.
#[repr(C)]
#[derive(Default)]
pub struct HighWater {
    now: AtomicU64,
    most: AtomicU64,
}

impl HighWater {
    /// Adds this many bytes, or subtracts them if negative.
    pub fn grow(&self, bytes: i64) {
        let before = self.now.fetch_add(bytes as u64, Ordering::AcqRel);
        if bytes > 0 {
            let now = before.wrapping_add(bytes as u64);
            self.most.fetch_max(now, Ordering::AcqRel);
        }
    }

    /// The present number of bytes.
    pub fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    /// The highest number of bytes so far.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Acquire)
    }
}
