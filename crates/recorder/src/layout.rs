//! The recorder's memory: its layout, and its global variables. This module has only layout and
//! zeros: the modules that use a part define what happens with it. No module depends on another one
//! only because their parts lie in the same memory.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
use heapmark_wire::capture::{Header, Writer};

/// Memory that a forked child does not inherit. All zeros stand for a process that has recorded nothing yet.
#[repr(C, align(65536))]
pub struct Wiped {
    pub process: ProcessState,
    pub large: LargeBlocks,
    pub states: StreamStates,
}

// SAFETY: all of it is atomic, or belongs to one thread at a time by the rules of its module.
unsafe impl Sync for Wiped {}

/// The memory that a child finds wiped.
pub static WIPED: Wiped = Wiped {
    process: ProcessState::none(),
    large: LargeBlocks::none(),
    states: StreamStates::none(),
};

/// Constant settings, which children inherit.
pub struct Settings {
    pub stem: UnsafeCell<[u8; PATH_BYTES]>,
    pub stem_bytes: AtomicU32,
    pub most_bytes: AtomicU64,
    pub until_ns: AtomicU64,
    /// The process that last recorded here: a process that begins now is its child, even if the
    /// parent has ended by then. 0 if there was none.
    pub parent: AtomicU32,
}

// SAFETY: the stem is written once, when there is one thread.
unsafe impl Sync for Settings {}

/// The settings of this process and its children.
pub static SETTINGS: Settings = Settings {
    stem: UnsafeCell::new([0; PATH_BYTES]),
    stem_bytes: AtomicU32::new(0),
    most_bytes: AtomicU64::new(u64::MAX),
    until_ns: AtomicU64::new(u64::MAX),
    parent: AtomicU32::new(0),
};

/// The most bytes of a path.
pub const PATH_BYTES: usize = 4096;

/// The most bytes of a command line that are recorded.
pub const ROOM_BYTES: usize = 16 << 10;

/// Phase of a process in which nothing has been recorded yet.
pub const FRESH: u32 = 0;
/// Phase of a process in which its file is being created.
pub const STARTING: u32 = 1;
/// The process's events are written.
pub const RECORDING: u32 = 2;
/// Recording has ended, or was not possible.
pub const OVER: u32 = 3;

/// A recorded process.
#[repr(C)]
pub struct ProcessState {
    pub phase: AtomicU32,
    /// The number of the next thread.
    pub threads: AtomicU32,
    /// Whether events have stamps.
    pub clocked: AtomicBool,
    /// Whether a thread is writing to the text.
    pub telling: AtomicBool,
    /// The source of stamps, if not the CPU.
    pub counter: AtomicU64,
    /// The start of the recording: times in the file count from here.
    pub start_ns: AtomicU64,
    /// The file's first chunk, mapped as long as the process lives.
    pub text: AtomicPtr<Header>,
    /// Buffer for the text that describes the process: the program's stack may be too small.
    pub room: UnsafeCell<[u8; ROOM_BYTES]>,
    pub file: UnsafeCell<CaptureFile>,
}

impl ProcessState {
    /// Returns a process that has recorded nothing yet: all zeros.
    pub const fn none() -> ProcessState {
        ProcessState {
            phase: AtomicU32::new(FRESH),
            threads: AtomicU32::new(0),
            clocked: AtomicBool::new(false),
            telling: AtomicBool::new(false),
            counter: AtomicU64::new(0),
            start_ns: AtomicU64::new(0),
            text: AtomicPtr::new(core::ptr::null_mut()),
            room: UnsafeCell::new([0; ROOM_BYTES]),
            // SAFETY: zeros are a valid value: no file.
            file: UnsafeCell::new(unsafe { core::mem::zeroed() }),
        }
    }
}

/// The path and the identity of the file.
pub struct CaptureFile {
    pub path: [u8; PATH_BYTES],
    pub device: u64,
    pub inode: u64,
    /// The number of the file's next free chunk.
    pub next: AtomicU32,
    /// Bytes of all chunks so far. A place in the file may be larger than its chunk.
    pub bytes: AtomicU64,
}

/// The most threads that can live at a time. Unused states are only address space.
pub const MOST_STATES: usize = 1 << 16;

/// What a thread needs to write its stream. All zero is a free state without a chunk; a child finds
/// this after a fork.
#[repr(C, align(128))]
pub struct StreamState {
    pub writer: Writer,
    /// The address from which on the next event needs new space.
    pub limit: *mut u8,
    /// The witness of the call that is writing an event; 0 if there is none.
    pub writing: usize,
    /// The witness of the running call of the next library; 0 if there is none.
    pub calling: usize,
    /// The stream's kind of clock, a constant of `clock`. Other threads may set it to `WANTED`.
    pub clocked: AtomicU8,
    /// How often the thread's destructors have run.
    pub rounds: u8,
    /// The number of the thread whose events are being written.
    pub thread: u32,
    /// The state's number plus one.
    pub number_and_one: u32,
    /// The number of the stream's chunks so far.
    pub chunks: u32,
    /// The kernel's number of the thread that owns the state; 0 if no thread does.
    pub task: AtomicU32,
    /// The number of calls that the next library made to itself.
    pub inner: u64,
    /// How many of these inner calls came since the last event, and how many events there were then.
    pub inner_since: (u64, u64),
    /// The number plus one of the idle state below this state.
    pub below: AtomicU32,
    /// The function that a new thread is to run.
    pub start: Option<extern "C" fn(*mut c_void) -> *mut c_void>,
    pub argument: *mut c_void,
}

/// The states of all streams.
#[repr(C)]
pub struct StreamStates {
    /// How many states were ever used.
    pub used: AtomicU32,
    /// The number plus one of the top idle state; above it a count of changes, so that a changed
    /// stack is not mistaken for the same one.
    pub idle: AtomicU64,
    /// The state that is checked next for a vanished thread.
    pub asked: AtomicU32,
    pub all: UnsafeCell<[StreamState; MOST_STATES]>,
}

impl StreamStates {
    /// Returns the value with no states in use: all zeros.
    pub const fn none() -> StreamStates {
        StreamStates {
            used: AtomicU32::new(0),
            idle: AtomicU64::new(0),
            asked: AtomicU32::new(0),
            // SAFETY: zeros are a valid state.
            all: UnsafeCell::new(unsafe { core::mem::zeroed() }),
        }
    }
}

/// The number of places in the table of large blocks; a block that finds no free place is not
/// checked.
pub const PLACES: usize = 4096;
/// Pages with a filter byte of their own: 16 MiB. The neighbours of a freed block are often freed
/// next, and their byte is in the cache.
pub const PAGES: usize = 4096;

/// A place in the table of large blocks; all zeros mean that it is free.
pub struct LargeSlot {
    pub address: AtomicUsize,
    pub size: AtomicUsize,
}

/// Live large blocks: a lock-free table, and a filter in front of it.
#[repr(C)]
pub struct LargeBlocks {
    /// How many blocks begin in a page; pages whose numbers are equal modulo [`PAGES`] share a counter.
    pub filter: [AtomicU8; PAGES],
    pub places: [LargeSlot; PLACES],
}

impl LargeBlocks {
    /// Returns the table without live blocks: all zeros.
    pub const fn none() -> LargeBlocks {
        LargeBlocks {
            filter: [const { AtomicU8::new(0) }; PAGES],
            places: [const {
                LargeSlot {
                    address: AtomicUsize::new(0),
                    size: AtomicUsize::new(0),
                }
            }; PLACES],
        }
    }
}
