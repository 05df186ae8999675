//! Converts stamps to nanoseconds since the recording began.

use super::capture::Capture;

/// Two chunks at least this far apart give the rate more exactly than the recorder's measurement at
/// its start.
const FAR_NS: u64 = 10_000_000;

/// The duration of one stamp.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Nanoseconds per stamp; 0 if stamps count events, so that only the times that the recorder
    /// wrote are known.
    ns_per_stamp: f64,
}

impl Rate {
    pub fn of(capture: &Capture) -> Rate {
        let per_second: Option<f64> = capture.head.number("stamps-per-second");
        let per_second =
            per_second.filter(|per_second| *per_second > 0.0 && per_second.is_finite());
        let moments = capture
            .streams
            .iter()
            .flatten()
            .map(|start| (start.ns, start.stamp));
        let ns_per_stamp = match (per_second, moments.clone().min(), moments.max()) {
            (None, ..) => 0.0,
            (_, Some(first), Some(last)) if last.0 - first.0 >= FAR_NS && last.1 > first.1 => {
                (last.0 - first.0) as f64 / (last.1 - first.1) as f64
            }
            (Some(per_second), ..) => 1e9 / per_second,
        };
        Rate { ns_per_stamp }
    }

    /// Returns how many stamps pass in this time; the largest number if stamps count events.
    pub fn stamps(self, ns: u64) -> u64 {
        // A float that is too large, such as a quotient by 0, converts to the largest number.
        (ns as f64 / self.ns_per_stamp) as u64
    }

    /// Returns the time of a stamp, given another stamp of the same stream whose time is known.
    pub fn ns(self, known: (u64, u64), stamp: Option<u64>) -> u64 {
        let later = stamp.map_or(0, |stamp| stamp.saturating_sub(known.0));
        // A float that is too large converts to the largest number.
        known
            .1
            .saturating_add((later as f64 * self.ns_per_stamp) as u64)
    }
}
