//! Figures of a process about its own memory, at points that its workload chooses: lines of the
//! report.

use core::fmt::{self, Display};

/// The figures of one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapPoint {
    /// Bytes that had been allocated by then.
    pub allocated_bytes: u64,
    /// Nanoseconds since the first operation.
    pub time_ns: u64,
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Bytes of the pages that hold any live byte.
    pub occupied_bytes: u64,
    /// Growth of memory that lies in no file since just before the first operation, without the
    /// harness's tables.
    pub heap_bytes: u64,
    /// Anonymous memory in huge pages.
    pub anon_huge_bytes: u64,
}

/// The figures at the peak of live bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Requested bytes of live blocks, as in [`HeapPoint`].
    pub live_bytes: u64,
    /// Bytes of the pages that hold any live byte, as in [`HeapPoint`].
    pub occupied_bytes: u64,
    /// Growth of memory as in [`HeapPoint`], and at least the resident bytes of live blocks.
    pub heap_bytes: u64,
    /// The usable size of the live blocks as the allocator reports it; 0 if it does not.
    pub usable_bytes: u64,
    /// Anonymous memory in huge pages.
    pub anon_huge_bytes: u64,
    /// A tenth of the pages with live blocks hold at most this many live bytes each.
    pub tenth_page_bytes: u64,
    /// Pages with live blocks that are less than a quarter full.
    pub sparse_pages: u64,
}

impl HeapPoint {
    /// Parses the figures of a point from a line of the report.
    pub fn parse(line: &str) -> Option<HeapPoint> {
        let [
            allocated_bytes,
            time_ns,
            live_bytes,
            occupied_bytes,
            heap_bytes,
            anon_huge_bytes,
        ] = numbers(line)?;
        Some(HeapPoint {
            allocated_bytes,
            time_ns,
            live_bytes,
            occupied_bytes,
            heap_bytes,
            anon_huge_bytes,
        })
    }
}

impl Display for HeapPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeapPoint {
            allocated_bytes,
            time_ns,
            live_bytes,
            occupied_bytes,
            heap_bytes,
            anon_huge_bytes,
        } = self;
        write!(
            f,
            "{allocated_bytes} {time_ns} {live_bytes} {occupied_bytes} {heap_bytes} {anon_huge_bytes}"
        )
    }
}

impl Peak {
    /// Parses the figures at the peak from a line of the report.
    pub fn parse(line: &str) -> Option<Peak> {
        let [
            live_bytes,
            occupied_bytes,
            heap_bytes,
            usable_bytes,
            anon_huge_bytes,
            tenth_page_bytes,
            sparse_pages,
        ] = numbers(line)?;
        Some(Peak {
            live_bytes,
            occupied_bytes,
            heap_bytes,
            usable_bytes,
            anon_huge_bytes,
            tenth_page_bytes,
            sparse_pages,
        })
    }
}

impl Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} ",
            self.live_bytes, self.occupied_bytes, self.heap_bytes
        )?;
        write!(
            f,
            "{} {} {} {}",
            self.usable_bytes, self.anon_huge_bytes, self.tenth_page_bytes, self.sparse_pages
        )
    }
}

/// Parses a line of exactly `N` numbers.
pub fn numbers<const N: usize>(line: &str) -> Option<[u64; N]> {
    let mut words = line.split(' ');
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = words.next()?.parse().ok()?;
    }
    words.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn lines_are_read_as_they_were_written_and_others_are_none() {
        let point = HeapPoint {
            allocated_bytes: 1,
            time_ns: 2,
            live_bytes: 3,
            occupied_bytes: 4,
            heap_bytes: 5,
            anon_huge_bytes: 6,
        };
        let peak = Peak {
            live_bytes: 1,
            usable_bytes: 7,
            sparse_pages: u64::MAX,
            ..Peak::default()
        };
        assert_eq!(HeapPoint::parse(&point.to_string()), Some(point));
        assert_eq!(Peak::parse(&peak.to_string()), Some(peak));
        assert_eq!(
            [
                HeapPoint::parse("1 2 3 4 5"),
                HeapPoint::parse("1 2 3 4 5 6 7"),
                HeapPoint::parse("1 2 3 4 5 x")
            ],
            [None; 3]
        );
    }
}
