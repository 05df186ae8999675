//! Memory over time: the points that this process takes itself, and where it waits for the host's
//! samples.
//!
//! The job's key `series` selects one of two ways. `polled`: the host reads this process's maps
//! from outside, and this process only publishes which ranges belong to the harness (`published`).
//! A path: this process takes the points at operations that the kernel chooses, and writes them to
//! that file as the operating system's own text; the host computes numbers from them afterwards.

use crate::clock::now_ns;
use crate::job::Job;
use crate::memory::HarnessTable;
use crate::published::{self, page};
use crate::stack;
use crate::sys;
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr,
    Ordering::{Acquire, Release},
};
use heapmark_wire::{Known, Page};

/// The file for points that this process takes itself.
static POINTS: AtomicI32 = AtomicI32::new(-1);
/// Buffer for the text of one point. It is static, so that taking a point does not change what is
/// measured.
static ROOM: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static ROOM_TAKEN: AtomicBool = AtomicBool::new(false);
const ROOM_BYTES: usize = 64 << 10;

/// How long the process waits for the host's sample if none comes.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Prepares what the job's key `series` selects; called before anything else is mapped.
pub fn start(page: &'static Page, job: &Job<'_>) {
    let Some(series) = job.get("series") else {
        return;
    };
    published::start(page);
    stack::present();
    if job.is("memory", "1") {
        // The page is touched now, so that later writes do not look like growth of a heap.
        let bytes = ptr::from_ref(page).cast::<u8>();
        // SAFETY: within the page, which holds plain bytes and atomics.
        (0..size_of::<Page>())
            .step_by(4096)
            .for_each(|at| unsafe { _ = bytes.add(at).read_volatile() });
    }
    if series == "polled" {
        return;
    }
    let mut path = [0u8; 256];
    let file = job
        .c_str("series", &mut path)
        .map_or(-1, |path| open(path, libc::O_WRONLY | libc::O_APPEND));
    if file < 0 {
        fail!("error", "cannot open `{series}` for the series");
    }
    let mut room = core::mem::ManuallyDrop::new(HarnessTable::<u8>::zeroed(ROOM_BYTES));
    ROOM.store(room.as_mut_ptr(), Release);
    POINTS.store(file, Release);
}

/// Adds a point for this moment, in which nothing changes; called outside measured phases.
pub fn pause() {
    let Some(page) = page() else { return };
    if POINTS.load(Acquire) >= 0 {
        return record();
    }
    // The first sample may have begun before this moment; the second one lies wholly after it.
    let (looks, began) = (page.watched().looks(), now_ns());
    while page.watched().looks().wrapping_sub(looks) < 2 && now_ns() - began < PATIENCE_NS {
        sys::give_way();
    }
}

/// Takes a point now, if the job wants points taken by this process. Other threads that want a
/// point wait.
#[cold]
pub fn record() {
    let file = POINTS.load(Acquire);
    let Some(page) = page().filter(|_| file >= 0) else {
        return;
    };
    while ROOM_TAKEN.swap(true, Acquire) {
        sys::give_way();
    }
    let live = || page.watched().live_bytes().unwrap_or(0);
    // SAFETY: made by `start` before it stored the file; the lock makes it this thread's.
    let room = unsafe { core::slice::from_raw_parts_mut(ROOM.load(Acquire), ROOM_BYTES) };
    let mut point = SeriesPoint { file, room, len: 0 };
    point.line(format_args!(
        "@point {} {} {}",
        now_ns(),
        live(),
        page.phase().word()
    ));
    for Known { start, end, kind } in page.watched().ranges().known() {
        point.line(format_args!("@known {start} {end} {}", kind.word()));
    }
    point.copy(c"/proc/self/maps");
    point.line(format_args!("@end {} {}", live(), now_ns()));
    point.copy(c"/proc/self/statm");
    point.line(format_args!("@done"));
    point.flush();
    ROOM_TAKEN.store(false, Release);
}

/// Text on its way to the file, which is written and not mapped, so that it adds no memory to this
/// process.
struct SeriesPoint<'a> {
    file: i32,
    room: &'a mut [u8],
    len: usize,
}

impl SeriesPoint<'_> {
    fn line(&mut self, text: fmt::Arguments<'_>) {
        // Writing never fails: `write_str` flushes what does not fit, and gives up if that fails.
        let _ = writeln!(self, "{text}");
    }

    fn copy(&mut self, path: &CStr) {
        let Some(from) = sys::RawFile::open(path) else {
            return;
        };
        loop {
            // Leaves space for what one call may return. Otherwise the kernel reads the region of
            // one line under two successive locks.
            if self.room.len() - self.len < 8 << 10 {
                self.flush();
            }
            let read = from.read(&mut self.room[self.len..]);
            if read == 0 {
                break;
            }
            self.len += read;
        }
    }

    fn flush(&mut self) {
        let mut done = 0;
        while done < self.len {
            let rest = &self.room[done..self.len];
            // SAFETY: writes an initialised buffer.
            let wrote = unsafe { libc::write(self.file, rest.as_ptr().cast(), rest.len()) };
            if wrote <= 0 {
                fail!("error", "no room for another point of the series");
            }
            done += wrote as usize;
        }
        self.len = 0;
    }
}

impl Write for SeriesPoint<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() > self.room.len() - self.len {
            self.flush();
        }
        self.room[self.len..self.len + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

fn open(path: &CStr, flags: i32) -> i32 {
    // SAFETY: a plain system call.
    unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) }
}

/// Returns the ledgers, one for each worker, in which the workers publish their requested bytes.
pub fn ledgers(page: &Page, threads: usize) -> &[heapmark_wire::Ledger] {
    page.watched().open_ledgers(threads).unwrap_or_else(|| {
        fail!(
            "unsupported",
            "{threads} threads: memory over time is known of 1024 at most"
        )
    })
}
