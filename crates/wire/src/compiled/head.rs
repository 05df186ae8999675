//! The head of a compiled trace, and its table of threads.

use super::MOST_SLOTS;

/// The first word; the number at its end is the version of the layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HMscore\x06");
/// Words of the head.
pub const HEAD_WORDS: usize = 29;

/// The start of a compiled trace: its size, and the expected totals of one replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompiledHead {
    /// Words of the whole file.
    pub words: u64,
    /// CRC-32 of all words after the head.
    pub checksum: u64,
    /// The index of the word at which the table of threads begins.
    pub table: u64,
    /// The number of threads.
    pub threads: u64,
    /// Largest number of threads that were alive at a time.
    pub threads_at_a_time: u64,
    /// Number of slots that the ops use.
    pub slots: u64,
    /// Calls of malloc.
    pub malloc: u64,
    /// Calls that free a block, including those after the end for blocks that were left.
    pub free: u64,
    /// Calls of calloc.
    pub calloc: u64,
    /// Calls of realloc.
    pub realloc: u64,
    /// Aligned allocations.
    pub aligned: u64,
    /// Sum of the requested sizes.
    pub bytes: u64,
    /// Calls that are replayed while the clock runs.
    pub events: u64,
    /// Highest sum of requested sizes of live blocks, in the order of the compiled trace.
    pub requested_peak_bytes: u64,
    /// The thread that reaches this peak, and after how many of its ops.
    pub peak: (u64, u64),
    /// The number of `Rare::Point` ops.
    pub points: u64,
    /// Nanoseconds that the recorded program took, if the trace has them.
    pub recorded_ns: u64,
    /// Calls that failed, which are not replayed.
    pub failed: u64,
    /// Events that the recorder could not write.
    pub dropped: u64,
    /// Calls of threads that had ended, made by another thread.
    pub strays: u64,
    /// Start and number of the words for objects of C++ operators that the program has left: how
    /// each is freed.
    pub left: (u64, u64),
    /// Bytes for the largest block, including space to align it.
    pub largest_bytes: u64,
    /// The thread that the program's main thread plays: its number plus one; 0 if that is not known.
    pub main: u64,
    /// Calls of mallopt.
    pub tunings: u64,
    /// Calls of malloc_trim.
    pub trims: u64,
    /// 1 if the program has forbidden itself huge pages.
    pub thp_disabled: u64,
}

/// The reason why a file is not a compiled trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompiledFault {
    /// The file is shorter than a head, or not as long as the head states.
    Length,
    /// The file is something else, or of another version.
    Magic,
    /// The numbers in the head contradict each other.
    Numbers,
}

impl CompiledHead {
    /// Returns the words that represent the head in the file.
    pub fn encode(&self) -> [u64; HEAD_WORDS] {
        let mut words = [0; HEAD_WORDS];
        let numbers = [
            MAGIC,
            self.words,
            self.checksum,
            self.table,
            self.threads,
            self.threads_at_a_time,
            self.slots,
            self.malloc,
            self.free,
            self.calloc,
            self.realloc,
            self.aligned,
            self.bytes,
            self.events,
            self.requested_peak_bytes,
            self.peak.0,
            self.peak.1,
            self.points,
            self.recorded_ns,
            self.failed,
            self.dropped,
            self.strays,
            self.left.0,
            self.left.1,
            self.largest_bytes,
            self.main,
            self.tunings,
            self.trims,
            self.thp_disabled,
        ];
        words[..numbers.len()].copy_from_slice(&numbers);
        words
    }

    /// Reads the head from the words of a whole file.
    pub fn decode(file: &[u64]) -> Result<CompiledHead, CompiledFault> {
        let head: &[u64; HEAD_WORDS] = file.first_chunk().ok_or(CompiledFault::Length)?;
        let head = CompiledHead::of_words(head)?;
        if head.words != file.len() as u64 {
            Err(CompiledFault::Length)
        } else {
            Ok(head)
        }
    }

    /// Reads the head from the words of the head alone.
    pub fn of_words(words: &[u64; HEAD_WORDS]) -> Result<CompiledHead, CompiledFault> {
        if words[0] != MAGIC {
            return Err(CompiledFault::Magic);
        }
        // The numbers are in the order of `encode`.
        let mut numbers = words[1..].iter().copied();
        let mut next = || numbers.next().unwrap_or_default();
        let head = CompiledHead {
            words: next(),
            checksum: next(),
            table: next(),
            threads: next(),
            threads_at_a_time: next(),
            slots: next(),
            malloc: next(),
            free: next(),
            calloc: next(),
            realloc: next(),
            aligned: next(),
            bytes: next(),
            events: next(),
            requested_peak_bytes: next(),
            peak: (next(), next()),
            points: next(),
            recorded_ns: next(),
            failed: next(),
            dropped: next(),
            strays: next(),
            left: (next(), next()),
            largest_bytes: next(),
            main: next(),
            tunings: next(),
            trims: next(),
            thp_disabled: next(),
        };
        let table_end = head
            .threads
            .checked_mul(THREAD_WORDS as u64)
            .and_then(|words| head.table.checked_add(words));
        let left_end = head.left.0.checked_add(head.left.1);
        if head.threads == 0
            || head.main > head.threads
            || head.slots > MOST_SLOTS
            || [table_end, left_end]
                .iter()
                .any(|end| end.is_none_or(|end| end > head.words))
        {
            return Err(CompiledFault::Numbers);
        }
        Ok(head)
    }
}

/// Words per thread in the table.
pub const THREAD_WORDS: usize = 2;

/// A thread in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompiledThread {
    /// Index of the word at which the thread's stream begins; 0 if no thread of this number plays.
    pub first: u64,
    /// Whether an op creates the thread; otherwise it exists from the start.
    pub is_started: bool,
}

impl CompiledThread {
    /// Returns the words that represent the thread in the table.
    pub fn encode(&self) -> [u64; THREAD_WORDS] {
        [self.first, u64::from(self.is_started)]
    }

    /// Whether the thread plays anything: the numbers of a trace's threads may have gaps.
    pub fn plays(&self) -> bool {
        self.first != 0
    }

    /// The thread of this number. The file must be as long as its head states.
    pub fn of(file: &[u64], head: &CompiledHead, number: usize) -> Option<CompiledThread> {
        let at = head.table as usize + number * THREAD_WORDS;
        let &[first, is_started] = file
            .get(at..at + THREAD_WORDS)?
            .first_chunk::<THREAD_WORDS>()?;
        Some(CompiledThread {
            first,
            is_started: is_started != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_back_and_one_that_lies_is_refused() {
        let head = CompiledHead {
            words: 37,
            table: 29,
            threads: 3,
            slots: 5,
            peak: (1, 2),
            recorded_ns: 9,
            main: 3,
            left: (35, 2),
            ..CompiledHead::default()
        };
        let mut file = [0; 37];
        file[..HEAD_WORDS].copy_from_slice(&head.encode());
        assert_eq!(CompiledHead::decode(&file), Ok(head));
        assert_eq!(
            CompiledHead::decode(&file[..36]),
            Err(CompiledFault::Length)
        );
        assert_eq!(CompiledHead::decode(&file[..5]), Err(CompiledFault::Length));
        let broken = |head: CompiledHead| CompiledHead::of_words(&head.encode());
        assert_eq!(
            broken(CompiledHead { threads: 5, ..head }),
            Err(CompiledFault::Numbers)
        );
        assert_eq!(
            broken(CompiledHead { main: 4, ..head }),
            Err(CompiledFault::Numbers)
        );
        assert_eq!(
            broken(CompiledHead {
                threads: u64::MAX,
                ..head
            }),
            Err(CompiledFault::Numbers)
        );
        assert_eq!(
            broken(CompiledHead {
                left: (35, 3),
                ..head
            }),
            Err(CompiledFault::Numbers)
        );
        assert_eq!(
            broken(CompiledHead {
                slots: MOST_SLOTS + 1,
                ..head
            }),
            Err(CompiledFault::Numbers)
        );
        file[0] += 1;
        assert_eq!(CompiledHead::decode(&file), Err(CompiledFault::Magic));
    }

    #[test]
    fn threads_are_found_in_their_table() {
        let head = CompiledHead {
            words: 33,
            table: 29,
            threads: 2,
            ..CompiledHead::default()
        };
        let (one, two) = (
            CompiledThread {
                first: 11,
                is_started: false,
            },
            CompiledThread {
                first: 12,
                is_started: true,
            },
        );
        let mut file = [0; 33];
        file[29..31].copy_from_slice(&one.encode());
        file[31..].copy_from_slice(&two.encode());
        assert_eq!(
            [0, 1, 2].map(|n| CompiledThread::of(&file, &head, n)),
            [Some(one), Some(two), None]
        );
    }
}
