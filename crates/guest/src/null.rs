//! The null allocator: measures the cost of the harness loop itself. malloc hands out the next slot
//! of the calling thread's window of 256 KiB, which stays in the second-level cache; free does
//! nothing. Blocks overlap after one turn of the window, so their contents mean nothing.
//!
//! A bump allocator that never frees would not be a floor, since it would measure page faults.

extern crate std;

use crate::api::{AlignedOperators, Api};
use crate::memory;
use crate::report;
use crate::threads::wait_until;
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Returns the null allocator's functions; from now on, the null allocator serves this process.
pub fn serve() -> Api {
    SERVES.store(true, Relaxed);
    let aligned = AlignedOperators {
        new: new_aligned,
        delete: free_told,
        delete_sized: Some(free_sized),
    };
    Api {
        malloc,
        free,
        calloc,
        realloc,
        posix_memalign,
        free_sized,
        new: malloc,
        delete: free,
        delete_sized: free_told,
        aligned: Some(aligned),
        usable_size,
    }
}

static SERVES: AtomicBool = AtomicBool::new(false);
/// The address of all blocks that are larger than a window, if they may overlap, and their greatest
/// size.
static LARGE: AtomicUsize = AtomicUsize::new(0);
static LARGE_BYTES: AtomicUsize = AtomicUsize::new(0);

const WINDOW_BYTES: usize = 256 << 10;
/// Slots begin at multiples of this, as malloc's blocks must.
const SLOT_ALIGNMENT: usize = 16;

std::thread_local! {
    // Const and without a destructor, so that an access is one load relative to the thread pointer.
    static NEXT: Cell<usize> = const { Cell::new(0) };
    static END: Cell<usize> = const { Cell::new(0) };
    /// `NEXT` and `END` of a window that is not in use.
    static ASIDE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // The thread's variable is read first: any value computed before this access would have to be
    // saved across it.
    let next = NEXT.get();
    let after = next.wrapping_add(slot(size));
    if after > END.get() {
        return turn(size);
    }
    NEXT.set(after);
    next as *mut u8
}

/// Bytes of the window that a block takes.
fn slot(size: usize) -> usize {
    size.max(1).next_multiple_of(SLOT_ALIGNMENT)
}

unsafe extern "C" fn free(_block: *mut u8) {}

unsafe extern "C" fn free_sized(_block: *mut u8, _size: usize, _flags: usize) {}

unsafe extern "C" fn free_told(_block: *mut u8, _size_or_alignment: usize) {}

unsafe extern "C" fn new_aligned(size: usize, alignment: usize) -> *mut u8 {
    let mut block = core::ptr::null_mut();
    // SAFETY: as for `posix_memalign`, with a local place for the result.
    unsafe { posix_memalign(&mut block, alignment, size) };
    block
}

unsafe extern "C" fn usable_size(_block: *mut u8) -> usize {
    0
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    // SAFETY: as malloc. Nothing is zeroed: that is an allocator's work, and no kernel reads what
    // it has not written.
    unsafe { malloc(count.wrapping_mul(size)) }
}

unsafe extern "C" fn realloc(_block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: as malloc. Nothing is copied: the floor is the call, not the copy.
    unsafe { malloc(size) }
}

unsafe extern "C" fn posix_memalign(block: *mut *mut u8, alignment: usize, size: usize) -> i32 {
    // SAFETY: as malloc; the caller provides the place of the result.
    unsafe {
        *block = if alignment <= SLOT_ALIGNMENT {
            malloc(size)
        } else {
            aligned(alignment, size)
        };
    }
    0
}

/// Places a block whose alignment is above that of slots in a larger slot.
#[cold]
unsafe fn aligned(alignment: usize, size: usize) -> *mut u8 {
    // SAFETY: as malloc; the slot is large enough for the block at any alignment offset.
    unsafe {
        let start = malloc(size + alignment);
        start.add(start.align_offset(alignment))
    }
}

/// Whether the null allocator serves this process: then blocks overlap, and what is written into a
/// block does not stay.
pub fn serves() -> bool {
    SERVES.load(Relaxed)
}

/// Gives a worker its window before the clock starts: some workloads measure microseconds, and
/// mapping a window takes dozens.
pub fn prepare() {
    if serves() && END.get() == 0 {
        let start = SPARE.get(0);
        END.set(start + WINDOW_BYTES);
        NEXT.set(start);
    }
}

/// Switches between the main thread's own window and the window of the worker whose work it does:
/// some workloads take their tables from the allocator under test, and the worker's blocks would
/// overlap these tables.
pub fn change_window() {
    if serves() {
        let (next, end) = ASIDE.replace((NEXT.get(), END.get()));
        NEXT.set(next);
        END.set(end);
    }
}

/// Lets requests larger than a window overlap, too, up to this size: for workloads that only write
/// to their blocks, with this many threads at a time. All memory for them is mapped before the
/// clock starts: otherwise page faults would be part of the floor.
pub fn overlap(largest: usize, threads: usize) {
    if serves() {
        SPARE.provide(threads);
        if largest > WINDOW_BYTES {
            let bytes = slot(largest);
            LARGE.store(repeated(bytes), Relaxed);
            LARGE_BYTES.store(bytes, Relaxed);
        }
    }
}

/// Goes back to the window's start at its end, or gets a window at the thread's first call.
/// Requests that are larger than the window come from the kernel and stay: some workloads take
/// their tables from the allocator under test.
#[cold]
fn turn(size: usize) -> *mut u8 {
    let slot = slot(size);
    if slot > WINDOW_BYTES {
        let overlaps = slot <= LARGE_BYTES.load(Relaxed);
        return if overlaps {
            LARGE.load(Relaxed) as *mut u8
        } else {
            map(slot, size)
        };
    }
    let start = match END.get() {
        0 => SPARE.get(size),
        end => end - WINDOW_BYTES,
    };
    END.set(start + WINDOW_BYTES);
    NEXT.set(start + slot);
    start as *mut u8
}

/// Maps the same memory again and again, so that the region is as large as a block must be, but
/// stays in the cache like a window.
fn repeated(bytes: usize) -> usize {
    // The kernel allows some 65,000 mappings per process.
    let piece = (bytes >> 14).next_power_of_two().max(2 << 20);
    let bytes = bytes.next_multiple_of(piece);
    let (usable, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE,
    );
    // SAFETY: plain system calls; each fixed mapping lies within the region that was mapped just
    // before.
    unsafe {
        let file = libc::memfd_create(c"heapmark-null".as_ptr(), libc::MFD_CLOEXEC);
        let aside = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, aside, -1, 0);
        let is_there = libc::ftruncate(file, piece as i64) == 0
            && start != libc::MAP_FAILED
            && (0..bytes).step_by(piece).all(|at| {
                libc::mmap(start.byte_add(at), piece, usable, flags, file, 0) != libc::MAP_FAILED
            });
        libc::close(file);
        if !is_there {
            report::no_block("the null allocator", bytes);
        }
        start as usize
    }
}

/// Windows of threads that have ended, the last one on top: workloads that create a thread per
/// hundred operations would otherwise measure the mapping of windows.
struct Spare {
    locked: AtomicBool,
    count: Cell<usize>,
    windows: [Cell<usize>; 1024],
    key: Cell<Option<libc::pthread_key_t>>,
}

// SAFETY: the cells are used only under the lock.
unsafe impl Sync for Spare {}

static SPARE: Spare = Spare {
    locked: AtomicBool::new(false),
    count: Cell::new(0),
    windows: [const { Cell::new(0) }; 1024],
    key: Cell::new(None),
};

impl Spare {
    /// Maps windows for this many threads, as far as they can be kept.
    fn provide(&self, threads: usize) {
        (0..threads.min(self.windows.len())).for_each(|_| self.keep(map(WINDOW_BYTES, 0) as usize));
    }

    fn keep(&self, window: usize) {
        self.under_lock(|| {
            if let Some(place) = self.windows.get(self.count.get()) {
                place.set(window);
                self.count.set(self.count.get() + 1);
            }
        });
    }

    /// Gets a window for the calling thread; the window returns to this list when the thread ends.
    fn get(&self, size: usize) -> usize {
        let window = self.under_lock(|| {
            if self.key.get().is_none() {
                let mut key = 0;
                // SAFETY: made once; the destructor takes back the value passed to
                // `pthread_setspecific`.
                unsafe { libc::pthread_key_create(&mut key, Some(take_back)) };
                self.key.set(Some(key));
            }
            let rest = self.count.get().checked_sub(1)?;
            self.count.set(rest);
            Some(self.windows[rest].get())
        });
        let window = window.unwrap_or_else(|| map(WINDOW_BYTES, size) as usize);
        if let Some(key) = self.key.get() {
            // SAFETY: a key of ours.
            unsafe { libc::pthread_setspecific(key, window as *const c_void) };
        }
        window
    }

    fn under_lock<T>(&self, act: impl FnOnce() -> T) -> T {
        wait_until(|| !self.locked.swap(true, Acquire));
        let result = act();
        self.locked.store(false, Release);
        result
    }
}

unsafe extern "C" fn take_back(window: *mut c_void) {
    SPARE.keep(window as usize);
}

fn map(bytes: usize, size: usize) -> *mut u8 {
    match memory::anonymous(bytes, libc::MAP_PRIVATE | libc::MAP_POPULATE) {
        Some(address) => address.cast().as_ptr(),
        None => report::no_block("the null allocator", size),
    }
}
