//! Converts stamps to nanoseconds since the recording began.

use super::capture::Capture;

/// Chunks this far apart give the rate more exactly than the recorder's measurement at its start.
const FAR_NS: u64 = 10_000_000;

/// The length of a stamp.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    /// 0 if stamps count events: then only the times that the recorder wrote are known.
    ns_per_stamp: f64,
}

impl Rate {
    pub(super) fn of(capture: &Capture) -> Rate {
        let told: f64 = capture
            .head
            .get("stamps-per-second")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0);
        if told <= 0.0 || !told.is_finite() {
            return Rate { ns_per_stamp: 0.0 };
        }
        let starts = || {
            capture
                .streams
                .iter()
                .flatten()
                .map(|place| (place.start.ns, place.start.stamp))
        };
        let (Some(first), Some(last)) = (starts().min(), starts().max()) else {
            return Rate {
                ns_per_stamp: 1e9 / told,
            };
        };
        let (ns, stamps) = (last.0 - first.0, last.1.saturating_sub(first.1));
        let ns_per_stamp = if ns >= FAR_NS && stamps > 0 {
            ns as f64 / stamps as f64
        } else {
            1e9 / told
        };
        Rate { ns_per_stamp }
    }

    /// The time of a stamp, given another stamp of the same stream whose time is known.
    pub(super) fn ns(self, known: (u64, u64), stamp: Option<u64>) -> u64 {
        let (known_stamp, known_ns) = known;
        let later = stamp.map_or(0, |stamp| stamp.saturating_sub(known_stamp));
        // A float that is too large converts to the largest number.
        known_ns.saturating_add((later as f64 * self.ns_per_stamp) as u64)
    }
}
