//! A recorded process: its file, its numbers, its end. All of it lies in memory that a child finds
//! wiped, however it was forked.

use crate::environment::{number, variable};
use crate::file::{Fresh, Reason};
use crate::layout::{
    FRESH, OVER, PATH_BYTES, ProcessState, RECORDING, SETTINGS, STARTING, WIPED, Wiped,
};
use crate::local::local;
use crate::metadata::{self, Origin};
use crate::signals::Quiet;
use crate::{clock, lent, program_log};
use core::ffi::CStr;
use core::sync::atomic::Ordering;
use heapmark_wire::capture::{ChunkKind, FIRST_BYTES, Header, Start, TEXT_BYTES};

/// The variable with the file's path without `.PID.cap`; if it is not set, nothing is recorded.
const TO: &CStr = c"HEAPMARK_RECORD_TO";
/// The variable with the most bytes of chunks that a process gets.
const MOST_BYTES: &CStr = c"HEAPMARK_RECORD_MAX_BYTES";
/// The variable with the moment, in nanoseconds of the monotonic clock, at which recording ends.
const UNTIL: &CStr = c"HEAPMARK_RECORD_UNTIL_NS";

/// Reads the environment; called once per program. Returns false if nothing is to be recorded.
pub fn configure() -> bool {
    let stem = variable(TO);
    if stem.is_empty() || stem.len() > PATH_BYTES - 32 {
        return false;
    }
    // SAFETY: the memory is ours to advise on. Without MADV_WIPEONFORK a child would write into its
    // parent's file.
    let wiped = unsafe {
        let (start, length) = (&raw const WIPED as *mut _, size_of::<Wiped>());
        libc::madvise(start, length, libc::MADV_NOHUGEPAGE);
        libc::madvise(start, length, libc::MADV_WIPEONFORK) == 0
    };
    if !wiped {
        return false;
    }
    // SAFETY: the length was checked, and there is one thread.
    unsafe {
        SETTINGS
            .stem
            .get()
            .cast::<u8>()
            .copy_from(stem.as_ptr(), stem.len())
    };
    if let Some(bytes) = number(variable(MOST_BYTES)) {
        let least = (TEXT_BYTES + FIRST_BYTES) as u64;
        SETTINGS
            .most_bytes
            .store(bytes.max(least), Ordering::Relaxed);
    }
    lent::configure();
    program_log::configure();
    SETTINGS.until_ns.store(
        number(variable(UNTIL)).unwrap_or(u64::MAX),
        Ordering::Relaxed,
    );
    SETTINGS
        .stem_bytes
        .store(stem.len() as u32, Ordering::Relaxed);
    true
}

impl ProcessState {
    /// Returns whether the process is being recorded.
    pub fn is_on(&self) -> bool {
        self.phase.load(Ordering::Acquire) == RECORDING
    }

    /// Begins a file if there is none yet; returns false if nothing is to be recorded, or no more,
    /// or not yet.
    pub fn start(&self) -> bool {
        if self.phase.load(Ordering::Acquire) != FRESH {
            return self.is_on();
        }
        let _quiet = Quiet::begin();
        let bytes = SETTINGS.stem_bytes.load(Ordering::Relaxed) as usize;
        let mine = self
            .phase
            .compare_exchange(FRESH, STARTING, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
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
        let created = file.create(stem, pid).and_then(|()| {
            file.chunk(TEXT_BYTES, u64::MAX)
                .inspect_err(|_| file.remove())
        });
        let Ok(chunk) = created else {
            self.phase.store(OVER, Ordering::Release);
            return false;
        };
        let header = chunk.at.cast::<Header>();
        let start = Start {
            stamp,
            place: chunk.place,
            bytes: chunk.bytes,
            ..Start::default()
        };
        // SAFETY: the chunk is fresh.
        unsafe { Header::begin(header, ChunkKind::Text, &start) };
        self.text.store(header, Ordering::Release);
        let parent = SETTINGS.parent.swap(pid, Ordering::Relaxed);
        // SAFETY: the variable belongs to the calling thread.
        let forking = core::mem::take(unsafe { &mut (*local()).forking });
        let origin = Origin {
            pid,
            parent,
            forking,
            stamp,
            ns,
        };
        self.tell(|text, room| metadata::describe(text, room, &origin));
        self.phase.store(RECORDING, Ordering::Release);
        true
    }

    /// Returns a new chunk for a stream. If there is none, recording ends.
    pub fn chunk(&self, bytes: usize) -> Option<Fresh> {
        // SAFETY: once the process is recorded, the file is only read and its counters changed.
        let file = unsafe { &*self.file.get() };
        file.chunk(bytes, SETTINGS.most_bytes.load(Ordering::Relaxed))
            .map_err(|reason| self.stop(reason))
            .ok()
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
        if self
            .phase
            .compare_exchange(RECORDING, OVER, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            self.tell(|text, _| metadata::end(text, reason, stamp, self.ns()));
        }
    }

    /// Returns whether it is time to end the recording.
    pub fn is_due(&self) -> bool {
        let until = SETTINGS.until_ns.load(Ordering::Relaxed);
        until != u64::MAX && clock::now_ns() >= until
    }

    /// Returns a new stamp.
    pub fn stamp(&self) -> u64 {
        clock::stamp(&self.counter)
    }

    /// Returns the nanoseconds since the recording began.
    pub fn ns(&self) -> u64 {
        clock::now_ns().saturating_sub(self.start_ns.load(Ordering::Relaxed))
    }

    /// Counts events that could not be written.
    pub fn drop_events(&self, count: u32) {
        self.header()
            .iter()
            .for_each(|header| header.count_dropped(count));
    }

    /// Adds to the text about the process. A second concurrent caller is ignored: both would report
    /// an end.
    pub fn tell(&self, tell: impl FnOnce(&mut metadata::Text, &mut [u8])) {
        let header = self.text.load(Ordering::Acquire);
        if !header.is_null() && !self.telling.swap(true, Ordering::Acquire) {
            // SAFETY: only one thread at a time describes the process.
            tell(&mut metadata::Text { header }, unsafe {
                &mut *self.room.get()
            });
            self.telling.store(false, Ordering::Release);
        }
    }
}
