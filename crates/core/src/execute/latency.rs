//! How long single calls of one process took, as its guest counted them. Raw data: nothing here is
//! merged or ranked.

use super::report_lines::ReportLines;
use heapmark_wire::bucket_range;
use serde::{Deserialize, Serialize};

/// The report of a process that timed single calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// On average, one in this many calls of each thread was timed.
    pub every: u32,
    /// The clock that was read: `rdtsc`, `cntvct_el0` or `clock_gettime`.
    pub clock: String,
    /// The shortest time between two consecutive readings of the clock. Every figure contains it.
    pub timer_least_ns: u64,
    /// The median time between two consecutive readings of the clock.
    pub timer_median_ns: u64,
    /// The functions that were called.
    pub functions: Vec<Calls>,
}

/// The timed calls of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The function's name: `malloc`, `free`, …
    pub function: String,
    /// How many calls were timed.
    pub count: u64,
    /// The call that took longest.
    pub longest: Stall,
    /// Histogram of durations, the shortest first. Stored in a file of its own.
    #[serde(skip)]
    pub buckets: Vec<Bucket>,
}

/// One timed call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// How long the call took.
    pub ns: u64,
    /// Requested bytes; `None` for free, which does not receive a size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// When the call ended, counted from the guest's first clock reading just before the kernel.
    pub at_ns: u64,
}

/// Calls of about the same duration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// The shortest duration that the bucket counts.
    pub from_ns: u64,
    /// The longest duration that the bucket counts.
    pub to_ns: u64,
    /// How many calls the bucket counts.
    pub count: u64,
}

impl Latency {
    /// Reads the latency in a report; `None` if the process timed no calls, or a line does not have the guest's format.
    pub(super) fn of(lines: &ReportLines<'_>) -> Option<Latency> {
        let mut clock = lines.value("latency.clock")?.split(' ');
        let calls: Vec<Calls> = lines.values("latency").map(calls).collect::<Option<_>>()?;
        Some(Latency {
            every: lines.value("latency.every")?.parse().ok()?,
            clock: clock.next()?.to_string(),
            timer_least_ns: clock.next()?.parse().ok()?,
            timer_median_ns: clock.next()?.parse().ok()?,
            functions: calls.into_iter().filter(|calls| calls.count > 0).collect(),
        })
    }
}

/// Parses a line `FUNCTION LONGEST-NS BYTES AT-NS BUCKET:COUNT ...`.
fn calls(line: &str) -> Option<Calls> {
    let mut words = line.split(' ');
    let function = words.next()?.to_string();
    let mut number = || words.next()?.parse::<u64>().ok();
    let ns = number()?;
    let bytes = number()?;
    let at_ns = number()?;
    let buckets: Vec<Bucket> = words.map(bucket).collect::<Option<_>>()?;
    let count = buckets
        .iter()
        .try_fold(0u64, |sum, bucket| sum.checked_add(bucket.count))?;
    let bytes = (function != "free").then_some(bytes);
    Some(Calls {
        function,
        count,
        longest: Stall { ns, bytes, at_ns },
        buckets,
    })
}

fn bucket(word: &str) -> Option<Bucket> {
    let (bucket, count) = word.split_once(':')?;
    let (from_ns, to_ns) = bucket_range(bucket.parse().ok()?)?;
    Some(Bucket {
        from_ns,
        to_ns,
        count: count.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "latency.every=16\nlatency.clock=rdtsc 20 22\nlatency=malloc 5000000 64 700 30:5 128:2\n\
        latency=free 9 0 800 9:1\nlatency=calloc 0 0 0\n";

    fn read(text: &str) -> Option<Latency> {
        Latency::of(&ReportLines::parse(text))
    }

    #[test]
    fn what_a_guest_counted_is_read_and_functions_without_calls_are_left_out() {
        let latency = read(GOOD).unwrap();
        assert_eq!((latency.every, latency.clock.as_str()), (16, "rdtsc"));
        assert_eq!((latency.timer_least_ns, latency.timer_median_ns), (20, 22));
        let [malloc, free] = &latency.functions[..] else {
            panic!("{latency:?}")
        };
        assert_eq!(
            (malloc.count, malloc.longest.bytes, free.longest.bytes),
            (7, Some(64), None)
        );
        assert_eq!(
            malloc.buckets[0],
            Bucket {
                from_ns: 30,
                to_ns: 30,
                count: 5
            }
        );
        assert_eq!(
            malloc.buckets[1],
            Bucket {
                from_ns: 128,
                to_ns: 129,
                count: 2
            }
        );
    }

    #[test]
    fn a_scribbled_line_is_no_result() {
        assert_eq!(read(""), None);
        let wrong = ["30:x", "99999:1", "30", ":", "30:18446744073709551615"];
        for word in wrong {
            assert_eq!(read(&GOOD.replace("30:5", word)), None, "{word}");
        }
        assert_eq!(read(&GOOD.replace("rdtsc 20", "rdtsc -1")), None);
        assert_eq!(read(&GOOD.replace("every=16", "every=")), None);
    }
}
