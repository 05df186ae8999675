//! The events that a recorder writes.

/// Bytes that an event can take at most, including its prefix.
pub const MOST_EVENT_BYTES: usize = 128;

/// Bytes that a mark can have at most; longer marks are truncated.
pub const MOST_MARK_BYTES: usize = 64;

/// One call of the program, or another event. Addresses are recorded exactly below 2^62; all
/// addresses that Linux gives to programs are below that.
///
/// `operator` is true for a C++ operator, false for a C function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "fields are named for the arguments that they hold"
)]
pub enum Event<'a> {
    /// `malloc`, `operator new`.
    Malloc {
        address: u64,
        size: u64,
        operator: bool,
    },
    /// `calloc`.
    Calloc { address: u64, count: u64, size: u64 },
    /// `realloc`, `reallocarray`. `old` is 0 if the call only allocated, `new` is 0 if it only freed (`realloc(p, 0)`).
    /// The old block ends at `entered`, the new one begins at the event's stamp.
    Realloc {
        old: u64,
        new: u64,
        size: u64,
        entered: Option<u64>,
    },
    /// A function that takes an alignment.
    Aligned {
        address: u64,
        align: u64,
        size: u64,
        variant: Variant,
    },
    /// `free`, `operator delete`.
    Free { address: u64, operator: bool },
    /// `free_sized`, `operator delete` with a size.
    FreeSized {
        address: u64,
        size: u64,
        operator: bool,
    },
    /// `free_aligned_sized`, `operator delete` with size and alignment.
    FreeAlignedSized {
        address: u64,
        align: u64,
        size: u64,
        operator: bool,
    },
    /// `operator delete` with an alignment and no size.
    FreeAligned { address: u64, align: u64 },
    /// `free` or `delete` of NULL.
    FreeNull,
    /// `malloc_usable_size`.
    UsableSize { address: u64 },
    /// A call that returned NULL, and changed nothing.
    Failed { call: Call, size: u64 },
    /// From here on the stream is this thread's. Threads are numbered from 0.
    Begin { thread: u32 },
    /// The thread started another one.
    ThreadStart { child: u32 },
    /// The thread ends. Its C library may still free a few blocks afterwards.
    ThreadExit,
    /// The thread is about to fork; the child stores the same moment, in nanoseconds of the
    /// monotonic clock.
    Forking { moment: u64 },
    /// The thread created a process by forking.
    Fork { pid: u32 },
    /// Gives the time in a stream whose other events have no stamps.
    Clock,
    /// Nanoseconds since the recording began.
    Time { ns: u64 },
    /// From here on all events of the stream have stamps.
    ClockedOn,
    /// The number of whole pages in a large block, of those that are resident, and of those up to the last resident
    /// one; written just before the block is freed, or at the end.
    Touch {
        address: u64,
        resident: u64,
        extent: u64,
        pages: u64,
    },
    /// A mark left by the program.
    Mark { text: &'a [u8] },
    /// The thread is the one that runs `main`.
    Main,
    /// `mallopt`.
    Mallopt { parameter: i32, value: i32 },
    /// `malloc_trim`.
    Trim { pad: u64 },
    /// `mallinfo`, `mallinfo2`.
    Info,
}

/// A function that takes an alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Variant {
    /// `posix_memalign`
    PosixMemalign,
    /// `aligned_alloc`
    AlignedAlloc,
    /// `memalign`
    Memalign,
    /// `valloc`
    Valloc,
    /// `pvalloc`
    Pvalloc,
    /// `operator new` with an alignment
    Operator,
}

impl Variant {
    /// All variants, in the order of their numbers.
    pub const ALL: [Variant; 6] = [
        Variant::PosixMemalign,
        Variant::AlignedAlloc,
        Variant::Memalign,
        Variant::Valloc,
        Variant::Pvalloc,
        Variant::Operator,
    ];

    /// The name in source code.
    pub fn word(self) -> &'static str {
        [
            "posix_memalign",
            "aligned_alloc",
            "memalign",
            "valloc",
            "pvalloc",
            "operator new",
        ][self as usize]
    }
}

/// A call that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Call {
    /// `malloc`
    Malloc,
    /// `calloc`; its size is the product, at most 2^64 - 1
    Calloc,
    /// `realloc`, `reallocarray`; the old block stays alive
    Realloc,
    /// A function that takes an alignment
    Aligned,
    /// `operator new`
    Operator,
}

impl Call {
    /// All calls, in the order of their numbers.
    pub const ALL: [Call; 5] = [
        Call::Malloc,
        Call::Calloc,
        Call::Realloc,
        Call::Aligned,
        Call::Operator,
    ];

    /// The name in source code.
    pub fn word(self) -> &'static str {
        ["malloc", "calloc", "realloc", "aligned", "operator new"][self as usize]
    }
}

/// The low four bits of an event's first number; the bits above them are a difference of addresses,
/// in units of eight bytes.
pub(super) mod op {
    pub const MALLOC: u64 = 0;
    pub const FREE: u64 = 1;
    pub const CALLOC: u64 = 2;
    pub const REALLOC: u64 = 3;
    pub const ALIGNED: u64 = 4;
    pub const FREE_SIZED: u64 = 5;
    pub const FREE_ALIGNED_SIZED: u64 = 6;
    pub const NEW: u64 = 7;
    pub const DELETE: u64 = 8;
    pub const DELETE_SIZED: u64 = 9;
    pub const DELETE_ALIGNED_SIZED: u64 = 10;
    pub const DELETE_ALIGNED: u64 = 11;
    pub const USABLE_SIZE: u64 = 12;
    /// `realloc(NULL, size)`: saves the distance from NULL and back.
    pub const REALLOC_NULL: u64 = 13;
    /// The bits above hold the low bits of the next event's address; for `realloc`, those of both addresses.
    pub const LOW_BITS: u64 = 14;
    /// The bits above hold one of the codes in `further`.
    pub const FURTHER: u64 = 15;
}

/// Events without an address, or rare ones. The first eight take one byte.
pub(super) mod further {
    pub const FREE_NULL: u64 = 0;
    pub const CLOCK: u64 = 1;
    pub const BEGIN: u64 = 2;
    pub const TIME: u64 = 3;
    pub const THREAD_START: u64 = 4;
    pub const THREAD_EXIT: u64 = 5;
    pub const FAILED: u64 = 6;
    pub const TOUCH: u64 = 7;
    pub const FORK: u64 = 8;
    pub const CLOCKED_ON: u64 = 9;
    pub const MARK: u64 = 10;
    pub const FORKING: u64 = 11;
    pub const MAIN: u64 = 12;
    pub const MALLOPT: u64 = 13;
    pub const TRIM: u64 = 14;
    pub const INFO: u64 = 15;
}
