//! The score: a trace made ready to be replayed. The host compiles it, the guest maps it and plays it word by word.
//!
//! A score is an array of 64-bit words of this machine: the head, then the streams of the threads in chunks, then the table of
//! threads. A stream's chunk ends with a [`Rare::Jump`] to the next one, so that streams of any number of threads grow side by
//! side in one file that is written once from its start to its end.
//!
//! A word is an op: `{op: 3 bits, slot: 29, size: 32}`. What does not fit there is a [`Rare`] op with further words behind it.

/// Of the first word; the number at its end is the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"HMscore\x01");
/// Words of the head.
pub const HEAD_WORDS: usize = 24;
/// Words of a thread in the table.
pub const THREAD_WORDS: usize = 2;
/// Slots that an op can name.
pub const MOST_SLOTS: u64 = 1 << SLOT_BITS;
/// Stands for "all pages" in [`Rare::Pages`].
pub const ALL_PAGES: u32 = u32::MAX;
/// Blocks of this size have their share of touched pages said; smaller ones are touched at both ends.
pub const PAGES_FROM_BYTES: u64 = 64 << 10;
/// A thread says its place in the recorded order at least so often.
pub const POSITION_EVERY: u64 = 4096;

const SLOT_BITS: u32 = 29;

/// Ops of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// malloc(size) into the slot.
    Malloc = 0,
    /// free of the slot's block.
    Free = 1,
    /// calloc(1, size) into the slot.
    Calloc = 2,
    /// realloc of the slot's block to size; the slot keeps what comes of it.
    Realloc = 3,
    /// free of the slot's block, whose size is told.
    FreeSized = 4,
    /// Wait until thread `slot` has done `size` ops.
    Wait = 5,
    /// This thread's place in the recorded order, in all bits behind the op.
    Position = 6,
    /// A [`Rare`] op: its number stands in `slot`, an argument in `size`.
    Rare = 7,
}

/// Ops with further words, or without a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rare {
    /// The stream goes on at the next word's index.
    Jump = 0,
    /// The stream is over, and the recorded program ended with this thread alive.
    End = 1,
    /// The stream is over: the thread exits.
    Exit = 2,
    /// Creates thread `argument`.
    Start = 3,
    /// Of the block that comes next `argument` pages are touched.
    Pages = 4,
    /// Wait until so many nanoseconds after the start: the next word.
    Clock = 5,
    /// The recorded program has allocated so much (the next word), of which so much is live (the one after it).
    Point = 6,
    /// free(NULL).
    FreeNull = 7,
    /// malloc_usable_size of the slot `argument`.
    UsableSize = 8,
    /// malloc into the slot `argument`; the size follows.
    Malloc = 9,
    /// calloc into the slot `argument`; count and size follow.
    Calloc = 10,
    /// realloc of the slot `argument`; the size follows.
    Realloc = 11,
    /// An aligned allocation into the slot `argument`; alignment and size follow.
    Aligned = 12,
    /// As [`Op::FreeSized`] of the slot `argument`; the size follows.
    FreeSized = 13,
}

impl Op {
    /// The op of a word.
    #[inline(always)]
    pub fn of(word: u64) -> Op {
        match word & 7 {
            0 => Op::Malloc,
            1 => Op::Free,
            2 => Op::Calloc,
            3 => Op::Realloc,
            4 => Op::FreeSized,
            5 => Op::Wait,
            6 => Op::Position,
            _ => Op::Rare,
        }
    }

    /// A word of this op.
    pub fn word(self, slot: u32, size: u32) -> u64 {
        self as u64 | u64::from(slot) << 3 | u64::from(size) << 32
    }

    /// A place in the recorded order.
    pub fn position(at: u64) -> u64 {
        Op::Position as u64 | at << 3
    }
}

/// The slot of a word, or whatever stands in its place.
#[inline(always)]
pub fn slot(word: u64) -> usize {
    ((word >> 3) & (MOST_SLOTS - 1)) as usize
}

/// The size of a word, or whatever stands in its place.
#[inline(always)]
pub fn size(word: u64) -> usize {
    (word >> 32) as usize
}

impl Rare {
    const ALL: [Rare; 14] = [
        Rare::Jump,
        Rare::End,
        Rare::Exit,
        Rare::Start,
        Rare::Pages,
        Rare::Clock,
        Rare::Point,
        Rare::FreeNull,
        Rare::UsableSize,
        Rare::Malloc,
        Rare::Calloc,
        Rare::Realloc,
        Rare::Aligned,
        Rare::FreeSized,
    ];

    /// The rare op of a word; `None` where there is none of that number.
    pub fn of(word: u64) -> Option<Rare> {
        Rare::ALL.get(slot(word)).copied()
    }

    /// A word of this op.
    pub fn word(self, argument: u32) -> u64 {
        Op::Rare.word(self as u32, argument)
    }
}

/// What stands at the start of a score: how large it is, and what playing it once must come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Words of the whole file.
    pub words: u64,
    /// CRC-32 of all words behind the head.
    pub checksum: u64,
    /// Where the table of threads begins.
    pub table: u64,
    /// Threads.
    pub threads: u64,
    /// Most threads that were alive at a time.
    pub threads_at_a_time: u64,
    /// Slots that the ops use.
    pub slots: u64,
    /// Calls of malloc.
    pub malloc: u64,
    /// Calls that free a block, those after the end of blocks that were left included.
    pub free: u64,
    /// Calls of calloc.
    pub calloc: u64,
    /// Calls of realloc.
    pub realloc: u64,
    /// Aligned allocations.
    pub aligned: u64,
    /// Sum of the sizes that were asked for.
    pub bytes: u64,
    /// Calls that are replayed while the clock runs.
    pub events: u64,
    /// Highest sum of requested sizes of live blocks, in the order of the score.
    pub requested_peak_bytes: u64,
    /// The thread that reaches it, and after how many of its ops.
    pub peak: (u64, u64),
    /// [`Rare::Point`] ops.
    pub points: u64,
    /// Nanoseconds that the recorded program took, where the trace tells.
    pub recorded_ns: u64,
    /// Calls that failed, which are not made again.
    pub failed: u64,
    /// Events that the recorder could not write.
    pub dropped: u64,
    /// Calls of threads that had ended, made by another thread.
    pub strays: u64,
}

/// Why a file is no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is shorter than a head, or not as long as the head says.
    Length,
    /// It is something else, or of another version.
    Magic,
    /// Its numbers do not fit each other.
    Numbers,
}

impl Head {
    /// As it stands in the file.
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
        ];
        words[..numbers.len()].copy_from_slice(&numbers);
        words
    }

    /// From the words of a whole file.
    pub fn decode(file: &[u64]) -> Result<Head, Fault> {
        let head: &[u64; HEAD_WORDS] = file.first_chunk().ok_or(Fault::Length)?;
        let head = Head::of_words(head)?;
        if head.words != file.len() as u64 { Err(Fault::Length) } else { Ok(head) }
    }

    /// From the words of a head alone.
    pub fn of_words(words: &[u64; HEAD_WORDS]) -> Result<Head, Fault> {
        let [
            magic,
            words,
            checksum,
            table,
            threads,
            threads_at_a_time,
            slots,
            malloc,
            free,
            calloc,
            realloc,
            aligned,
            bytes,
            events,
            requested_peak_bytes,
            peak_thread,
            peak_count,
            points,
            recorded_ns,
            failed,
            dropped,
            strays,
            ..,
        ] = *words;
        if magic != MAGIC {
            return Err(Fault::Magic);
        }
        let table_end = threads.checked_mul(THREAD_WORDS as u64).and_then(|words| table.checked_add(words));
        if threads == 0 || slots > MOST_SLOTS || table_end.is_none_or(|end| end > words) {
            return Err(Fault::Numbers);
        }
        Ok(Head {
            words,
            checksum,
            table,
            threads,
            threads_at_a_time,
            slots,
            malloc,
            free,
            calloc,
            realloc,
            aligned,
            bytes,
            events,
            requested_peak_bytes,
            peak: (peak_thread, peak_count),
            points,
            recorded_ns,
            failed,
            dropped,
            strays,
        })
    }
}

/// A thread in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Where its stream begins.
    pub first: u64,
    /// Whether an op creates it; otherwise it is there from the start.
    pub is_started: bool,
}

impl Thread {
    /// As it stands in the table.
    pub fn encode(&self) -> [u64; THREAD_WORDS] {
        [self.first, u64::from(self.is_started)]
    }

    /// The thread of this number; the file is as long as its head says.
    pub fn of(file: &[u64], head: &Head, number: usize) -> Option<Thread> {
        let at = head.table as usize + number * THREAD_WORDS;
        let &[first, is_started] = file.get(at..at + THREAD_WORDS)?.first_chunk::<THREAD_WORDS>()?;
        Some(Thread { first, is_started: is_started != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_what_went_into_it() {
        for (op, s, z) in [(Op::Malloc, 0, 0), (Op::Wait, (1 << 29) - 1, u32::MAX), (Op::FreeSized, 7, 9)] {
            let word = op.word(s, z);
            assert_eq!((Op::of(word), slot(word), size(word)), (op, s as usize, z as usize));
        }
        assert_eq!(Op::of(Op::position(1 << 60)), Op::Position);
        for rare in Rare::ALL {
            assert_eq!((Op::of(rare.word(5)), Rare::of(rare.word(5))), (Op::Rare, Some(rare)));
        }
        assert_eq!(Rare::of(Op::Rare.word(14, 0)), None);
    }

    #[test]
    fn a_head_is_read_back_and_one_that_lies_is_refused() {
        let head = Head { words: 30, table: 24, threads: 3, slots: 5, peak: (1, 2), recorded_ns: 9, ..Head::default() };
        let mut file = [0; 30];
        file[..HEAD_WORDS].copy_from_slice(&head.encode());
        assert_eq!(Head::decode(&file), Ok(head));
        assert_eq!(Head::decode(&file[..29]), Err(Fault::Length));
        assert_eq!(Head::decode(&file[..5]), Err(Fault::Length));
        let broken = |head: Head| Head::of_words(&head.encode());
        assert_eq!(broken(Head { threads: 4, ..head }), Err(Fault::Numbers));
        assert_eq!(broken(Head { threads: u64::MAX, ..head }), Err(Fault::Numbers));
        assert_eq!(broken(Head { slots: MOST_SLOTS + 1, ..head }), Err(Fault::Numbers));
        file[0] += 1;
        assert_eq!(Head::decode(&file), Err(Fault::Magic));
    }

    #[test]
    fn threads_are_found_in_their_table() {
        let head = Head { words: 28, table: 24, threads: 2, ..Head::default() };
        let (one, two) = (Thread { first: 11, is_started: false }, Thread { first: 12, is_started: true });
        let mut file = [0; 28];
        file[24..26].copy_from_slice(&one.encode());
        file[26..].copy_from_slice(&two.encode());
        assert_eq!([0, 1, 2].map(|n| Thread::of(&file, &head, n)), [Some(one), Some(two), None]);
    }
}
