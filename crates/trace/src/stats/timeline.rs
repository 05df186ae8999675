//! Live bytes over time, in as many points as a chart has, however long a trace is.

use serde::Serialize;

/// The number of points that are kept: at twice as many, neighbours are merged.
const MOST: usize = 1024;

/// A range of events, as one point of a chart.
#[derive(Clone, Copy, Serialize)]
pub struct TimelinePoint {
    /// The point's last event.
    pub event: u64,
    /// The time of the last event, in nanoseconds.
    pub ns: u64,
    /// The most live bytes at any of these events.
    pub most_bytes: u64,
    /// The least live bytes at any of these events.
    pub least_bytes: u64,
}

/// Points that become coarser as their number grows.
#[derive(Default)]
pub struct Timeline {
    pub points: Vec<TimelinePoint>,
    /// How often neighbours were merged: a point covers two to the power of this number of events.
    merges: u32,
    /// The number of further events that the last point has room for.
    left: u64,
}

impl Timeline {
    #[inline]
    pub fn add(&mut self, event: u64, ns: u64, bytes: u64) {
        let point = TimelinePoint {
            event,
            ns,
            most_bytes: bytes,
            least_bytes: bytes,
        };
        if let Some(last) = self.points.last_mut()
            && self.left > 0
        {
            *last = last.with(point);
        } else {
            if self.points.len() == 2 * MOST {
                let pairs = self.points.as_chunks::<2>().0.iter();
                self.points = pairs.map(|[one, other]| one.with(*other)).collect();
                self.merges += 1;
            }
            self.points.push(point);
            self.left = 1 << self.merges;
        }
        self.left -= 1;
    }
}

impl TimelinePoint {
    fn with(self, later: TimelinePoint) -> TimelinePoint {
        TimelinePoint {
            most_bytes: self.most_bytes.max(later.most_bytes),
            least_bytes: self.least_bytes.min(later.least_bytes),
            ..later
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_trace_has_few_points_and_keeps_its_peak() {
        let mut timeline = Timeline::default();
        for event in 0..1_000_000 {
            timeline.add(
                event,
                event * 2,
                if event == 777_777 { 5000 } else { event % 1000 },
            );
        }
        let points = timeline.points;
        assert!(
            (MOST / 2..=2 * MOST).contains(&points.len()),
            "{}",
            points.len()
        );
        assert_eq!(
            points.iter().map(|point| point.most_bytes).max(),
            Some(5000)
        );
        assert_eq!(
            points.last().map(|point| (point.event, point.ns)),
            Some((999_999, 1_999_998))
        );
        assert!(points.is_sorted_by_key(|point| point.event));
    }
}
