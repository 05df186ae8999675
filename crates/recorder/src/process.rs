//! A recorded process: its file, its numbers, its end. All of it lies in memory that a child finds
//! wiped, however it was forked.

use crate::file::{self, File, Fresh, Reason};
use crate::large::Large;
use crate::local::local;
use crate::metadata::{self, Origin};
use crate::signals::Quiet;
use crate::state::States;
use crate::{clock, hooks, lent};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use heapmark_wire::capture::{CHUNK_BYTES, Header, Kind, Start, TEXT_BYTES};

/// The file's path without `.PID.cap`; if it is not set, nothing is recorded.
const TO: &CStr = c"HEAPMARK_RECORD_TO";
/// The maximum size of a process's file.
const MOST_BYTES: &CStr = c"HEAPMARK_RECORD_MAX_BYTES";
/// The moment, in nanoseconds of the monotonic clock, at which recording ends.
const UNTIL: &CStr = c"HEAPMARK_RECORD_UNTIL_NS";

/// What a child does not inherit. All zero is a process that has recorded nothing yet.
#[repr(C, align(65536))]
pub struct Wiped {
    pub process: Process,
    pub large: Large,
    pub states: States,
}

// SAFETY: all of it is atomic, or belongs to one thread at a time by the rules of its module.
unsafe impl Sync for Wiped {}

pub static WIPED: Wiped = Wiped { process: Process::none(), large: Large::none(), states: States::none() };

/// Constant settings, which children inherit.
struct Settings {
    stem: UnsafeCell<[u8; file::PATH_BYTES]>,
    stem_bytes: AtomicU32,
    most_chunks: AtomicU32,
    until_ns: AtomicU64,
    /// The process that last recorded here: a process that begins now is its child, even if the
    /// parent has ended by then. 0 if there was none.
    parent: AtomicU32,
}

// SAFETY: the stem is written once, when there is one thread.
unsafe impl Sync for Settings {}

static SETTINGS: Settings = Settings {
    stem: UnsafeCell::new([0; file::PATH_BYTES]),
    stem_bytes: AtomicU32::new(0),
    most_chunks: AtomicU32::new(u32::MAX),
    until_ns: AtomicU64::new(u64::MAX),
    parent: AtomicU32::new(0),
};

/// Recorded bytes of a command line.
const ROOM_BYTES: usize = 16 << 10;

const FRESH: u32 = 0;
const STARTING: u32 = 1;
const RECORDING: u32 = 2;
const OVER: u32 = 3;

#[repr(C)]
pub struct Process {
    phase: AtomicU32,
    /// The number of the next thread.
    pub threads: AtomicU32,
    /// Events have stamps.
    pub clocked: AtomicBool,
    /// A thread is writing to the text.
    telling: AtomicBool,
    /// The source of stamps, if not the CPU.
    pub counter: AtomicU64,
    /// The start: times in the file count from here.
    start_ns: AtomicU64,
    /// The file's first chunk, mapped as long as the process lives.
    text: AtomicPtr<Header>,
    /// Buffer for the text that describes the process: the program's stack may be too small.
    room: UnsafeCell<[u8; ROOM_BYTES]>,
    file: UnsafeCell<File>,
}

/// Reads the environment; once per program.
pub fn configure() {
    // SAFETY: `getenv` returns a C string, and there is one thread.
    let value = |name: &CStr| unsafe {
        let value = libc::getenv(name.as_ptr());
        if value.is_null() { &[][..] } else { CStr::from_ptr(value).to_bytes() }
    };
    let number = |name| core::str::from_utf8(value(name)).ok().and_then(|text| text.parse::<u64>().ok());
    let stem = value(TO);
    if stem.is_empty() || stem.len() > file::PATH_BYTES - 32 {
        return;
    }
    // SAFETY: the memory is ours to advise on. Without MADV_WIPEONFORK a child would write into its
    // parent's file.
    let wiped = unsafe {
        let (start, length) = (&raw const WIPED as *mut _, size_of::<Wiped>());
        libc::madvise(start, length, libc::MADV_NOHUGEPAGE);
        libc::madvise(start, length, libc::MADV_WIPEONFORK) == 0
    };
    if !wiped {
        return;
    }
    // SAFETY: the length was checked, and there is one thread.
    unsafe { SETTINGS.stem.get().cast::<u8>().copy_from(stem.as_ptr(), stem.len()) };
    if let Some(bytes) = number(MOST_BYTES) {
        let chunks = (bytes / CHUNK_BYTES as u64).clamp(2, u64::from(u32::MAX));
        SETTINGS.most_chunks.store(chunks as u32, Ordering::Relaxed);
    }
    lent::configure();
    hooks::programs::configure();
    SETTINGS.until_ns.store(number(UNTIL).unwrap_or(u64::MAX), Ordering::Relaxed);
    SETTINGS.stem_bytes.store(stem.len() as u32, Ordering::Relaxed);
    // SAFETY: the functions stay loaded. If registering fails, children inherit no blocks from
    // their parents, which is reported for each.
    unsafe { libc::pthread_atfork(Some(hooks::before_fork), Some(hooks::after_fork), None) };
}

impl Process {
    /// Zeros.
    pub const fn none() -> Process {
        Process {
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

    /// Whether the process is being recorded.
    pub fn is_on(&self) -> bool {
        self.phase.load(Ordering::Acquire) == RECORDING
    }

    /// Begins a file if there is none yet; false if nothing is to be recorded, or no more, or not
    /// yet.
    pub fn start(&self) -> bool {
        if self.phase.load(Ordering::Acquire) != FRESH {
            return self.is_on();
        }
        let _quiet = Quiet::begin();
        let bytes = SETTINGS.stem_bytes.load(Ordering::Relaxed) as usize;
        let mine = self.phase.compare_exchange(FRESH, STARTING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if bytes == 0 || !mine {
            if mine {
                self.phase.store(OVER, Ordering::Release);
            }
            return false;
        }
        // SAFETY: written before there were threads; and in this phase only this thread uses the
        // file.
        let (stem, file) = unsafe { (&(&(*SETTINGS.stem.get()))[..bytes], &mut *self.file.get()) };
        let (stamp, ns) = (self.stamp(), clock::now_ns());
        self.start_ns.store(ns, Ordering::Relaxed);
        // SAFETY: no arguments.
        let pid = unsafe { libc::getpid() } as u32;
        let created =
            file.create(stem, pid).and_then(|()| file.chunk(TEXT_BYTES, u32::MAX).inspect_err(|_| file.remove()));
        let Ok(chunk) = created else {
            self.phase.store(OVER, Ordering::Release);
            return false;
        };
        let header = chunk.at.cast::<Header>();
        let start = Start { stamp, place: chunk.place, bytes: chunk.bytes, ..Start::default() };
        // SAFETY: a fresh chunk.
        unsafe { Header::begin(header, Kind::Text, &start) };
        self.text.store(header, Ordering::Release);
        let parent = SETTINGS.parent.swap(pid, Ordering::Relaxed);
        // SAFETY: the calling thread's own variable.
        let forking = core::mem::take(unsafe { &mut (*local()).forking });
        let origin = Origin { pid, parent, forking, stamp, ns };
        self.tell(|text, room| metadata::describe(text, room, &origin));
        self.phase.store(RECORDING, Ordering::Release);
        true
    }

    /// A chunk for a stream. If there is none, recording ends.
    pub fn chunk(&self, bytes: usize) -> Option<Fresh> {
        // SAFETY: once the process is recorded, the file is only read and its counters changed.
        let file = unsafe { &*self.file.get() };
        file.chunk(bytes, SETTINGS.most_chunks.load(Ordering::Relaxed)).map_err(|reason| self.stop(reason)).ok()
    }

    /// Counts a chunk given to a stream, so that a reader finds it.
    pub fn begun_chunk(&self) {
        self.header().iter().for_each(|header| header.count_chunk());
    }

    fn header(&self) -> Option<&Header> {
        // SAFETY: the text stays mapped.
        unsafe { self.text.load(Ordering::Acquire).as_ref() }
    }

    /// Ends recording. Threads notice at their next chunk or time check; events they write until
    /// then have later stamps.
    #[cold]
    #[inline(never)]
    pub fn stop(&self, reason: Reason) {
        let stamp = self.stamp();
        if self.phase.compare_exchange(RECORDING, OVER, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.tell(|text, _| metadata::end(text, reason, stamp, self.ns()));
        }
    }

    /// Whether it is time to end.
    pub fn is_due(&self) -> bool {
        let until = SETTINGS.until_ns.load(Ordering::Relaxed);
        until != u64::MAX && clock::now_ns() >= until
    }

    /// A stamp.
    pub fn stamp(&self) -> u64 {
        clock::stamp(&self.counter)
    }

    /// Nanoseconds since the recording began.
    pub fn ns(&self) -> u64 {
        clock::now_ns().saturating_sub(self.start_ns.load(Ordering::Relaxed))
    }

    /// Counts events that could not be written.
    pub fn drop_events(&self, count: u32) {
        self.header().iter().for_each(|header| header.count_dropped(count));
    }

    /// Adds to the text about the process. A second concurrent caller is ignored: both would report
    /// an end.
    pub fn tell(&self, tell: impl FnOnce(&mut metadata::Text, &mut [u8])) {
        let header = self.text.load(Ordering::Acquire);
        if !header.is_null() && !self.telling.swap(true, Ordering::Acquire) {
            // SAFETY: only one thread at a time describes the process.
            tell(&mut metadata::Text { header }, unsafe { &mut *self.room.get() });
            self.telling.store(false, Ordering::Release);
        }
    }
}
