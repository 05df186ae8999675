//! The events of a trace.

use Event::*;
use heapmark_wire::capture::{Call, Variant};

/// The name of an object: the thread that made it and the number of that thread's earlier
/// allocations, both counted from 0. No address is needed, and the event that begins an object does
/// not carry its token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Token {
    /// The thread that allocated the object.
    pub thread: u32,
    /// How many objects that thread had allocated before.
    pub index: u64,
}

impl Token {
    /// Returns both numbers in one word; both fit, since a reader refuses larger ones.
    pub fn packed(self) -> u64 {
        u64::from(self.thread) << 48 | self.index
    }

    /// Returns the token that [`Token::packed`] turned into this word.
    pub fn of_packed(packed: u64) -> Token {
        Token {
            thread: (packed >> 48) as u32,
            index: packed & ((1 << 48) - 1),
        }
    }
}

/// An event of a thread. The thread's number is stored beside it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// `malloc(size)`, or `operator new(size)`.
    Malloc {
        /// Bytes asked for.
        size: u64,
        /// Whether the call is C++'s `operator new`.
        operator: bool,
    },
    /// `calloc(count, size)`.
    Calloc {
        /// The number of elements.
        count: u64,
        /// The bytes of each element.
        size: u64,
    },
    /// A `realloc` that succeeded: the object ends, and another begins with a token of its own.
    Realloc {
        /// The object that ends.
        token: Token,
        /// Bytes asked for.
        size: u64,
    },
    /// A `realloc(object, 0)` that freed the object and returned NULL.
    ReallocFree {
        /// The object that ends.
        token: Token,
    },
    /// An allocation with an alignment.
    Aligned {
        /// The alignment, as passed.
        align: u64,
        /// Bytes asked for.
        size: u64,
        /// The function that was called.
        variant: Variant,
    },
    /// `free`, or `operator delete` without a size.
    Free {
        /// The object that ends.
        token: Token,
    },
    /// `free_sized`, or `operator delete` with a size.
    FreeSized {
        /// The object that ends.
        token: Token,
        /// The size, as passed.
        size: u64,
    },
    /// `free_aligned_sized`, or `operator delete` with an alignment and a size.
    FreeAlignedSized {
        /// The object that ends.
        token: Token,
        /// The alignment, as passed.
        align: u64,
        /// The size, as passed.
        size: u64,
    },
    /// `operator delete` with an alignment and no size.
    FreeAligned {
        /// The object that ends.
        token: Token,
        /// The alignment, as passed.
        align: u64,
    },
    /// `free(NULL)`.
    FreeNull,
    /// A call of `malloc_usable_size`.
    UsableSize {
        /// The object that the call asks about.
        token: Token,
    },
    /// A call that returned NULL. A `realloc` that failed leaves its object as it is.
    Failed {
        /// The function that was called.
        call: Call,
        /// Bytes asked for; the largest number if a product overflowed.
        size: u64,
    },
    /// The thread starts another.
    ThreadStart {
        /// The thread that is started.
        child: u32,
    },
    /// The thread ends.
    ThreadExit,
    /// The process forks; the child has a trace of its own.
    Fork {
        /// The child's process ID.
        pid: u32,
    },
    /// The time of the following events.
    Clock {
        /// Nanoseconds since the recording started.
        ns: u64,
    },
    /// How much of an object its program has touched, as reported by the kernel.
    Touch {
        /// The object.
        token: Token,
        /// Pages that are in memory.
        resident_pages: u64,
        /// Pages up to the last one that is in memory.
        extent_pages: u64,
        /// Pages that lie wholly in the object.
        pages: u64,
    },
    /// A mark: a text from the recorded program, or from the tool that made the trace.
    Mark {
        /// The text of the mark.
        text: Box<str>,
    },
    /// The next objects were live before the trace begins: their allocations stand for calls that
    /// were made earlier, or by the parent process.
    Inherit {
        /// The number of these objects.
        objects: u64,
    },
    /// The thread is the one that runs `main`.
    Main,
    /// A call of `mallopt`.
    Mallopt {
        /// The parameter that is set.
        parameter: i32,
        /// The parameter's new value.
        value: i32,
    },
    /// A call of `malloc_trim`.
    Trim {
        /// Bytes to keep at the top of the heap.
        pad: u64,
    },
    /// A call of `mallinfo` or `mallinfo2`.
    Info,
    /// Events that the recorder could not write.
    Dropped {
        /// The number of lost events.
        count: u64,
    },
    /// The program ends.
    End {
        /// Peak resident set in bytes; 0 if unknown.
        peak_rss_bytes: u64,
    },
}

impl Event {
    /// Returns the bytes asked for, if an object begins; the largest number if they do not fit.
    #[inline]
    pub fn begins(&self) -> Option<u64> {
        match *self {
            Malloc { size, .. } | Aligned { size, .. } | Realloc { size, .. } => Some(size),
            Calloc { count, size } => Some(count.saturating_mul(size)),
            _ => None,
        }
    }

    /// Returns the object that the event ends.
    #[inline]
    pub fn ends(&self) -> Option<Token> {
        match *self {
            Free { token }
            | FreeSized { token, .. }
            | FreeAlignedSized { token, .. }
            | FreeAligned { token, .. }
            | Realloc { token, .. }
            | ReallocFree { token } => Some(token),
            _ => None,
        }
    }

    /// Returns the object that the event names, whether the event ends it or not.
    #[inline]
    pub fn names(&self) -> Option<Token> {
        match *self {
            UsableSize { token } | Touch { token, .. } => Some(token),
            _ => self.ends(),
        }
    }

    /// Returns the token that the event names, for renaming.
    pub fn names_mut(&mut self) -> Option<&mut Token> {
        match self {
            UsableSize { token }
            | Touch { token, .. }
            | Free { token }
            | FreeSized { token, .. }
            | FreeAlignedSized { token, .. }
            | FreeAligned { token, .. }
            | Realloc { token, .. }
            | ReallocFree { token } => Some(token),
            _ => None,
        }
    }
}
