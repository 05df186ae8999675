//! The null allocator: the cost of the harness loop itself. malloc hands out the next slot of a 256 KiB window of the
//! calling thread, which stays in the second-level cache; free does nothing. Blocks overlap after one turn of the window,
//! so nothing that it holds means anything.
//!
//! A bump allocator that never frees would be no floor: it measures page faults.

extern crate std;

use crate::api::{AlignedOperators, Api};
use crate::fail;
use crate::threads::wait_until;
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The null allocator's functions, once it serves this process.
pub fn serve() -> Api {
    SERVES.store(true, Ordering::Relaxed);
    let aligned = AlignedOperators { new: new_aligned, delete: free_told, delete_sized: Some(free_sized) };
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
/// Where all blocks lie that are larger than a window, if they may overlap, and how large they may be.
static LARGE: AtomicUsize = AtomicUsize::new(0);
static LARGE_BYTES: AtomicUsize = AtomicUsize::new(0);

const WINDOW_BYTES: usize = 256 << 10;
/// Slots begin at multiples of it, as blocks of malloc must.
const SLOT_ALIGNMENT: usize = 16;

std::thread_local! {
    // Const and without a destructor: an access is one load from the thread pointer.
    static NEXT: Cell<usize> = const { Cell::new(0) };
    static END: Cell<usize> = const { Cell::new(0) };
}

unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // The thread's variable first: whatever is computed before it has to be saved across it.
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
    // SAFETY: as there, with a place of our own.
    unsafe { posix_memalign(&mut block, alignment, size) };
    block
}

unsafe extern "C" fn usable_size(_block: *mut u8) -> usize {
    0
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    // SAFETY: as malloc. Nothing is zeroed: that is an allocator's work, and no kernel reads what it has not written.
    unsafe { malloc(count.wrapping_mul(size)) }
}

unsafe extern "C" fn realloc(_block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: as malloc. Nothing is copied: the floor is the call, not the copy.
    unsafe { malloc(size) }
}

unsafe extern "C" fn posix_memalign(block: *mut *mut u8, alignment: usize, size: usize) -> i32 {
    // SAFETY: as malloc; the caller lends the place of the result.
    unsafe {
        *block = if alignment <= SLOT_ALIGNMENT { malloc(size) } else { aligned(alignment, size) };
    }
    0
}

/// An alignment that slots do not have finds its place in a larger slot.
#[cold]
unsafe fn aligned(alignment: usize, size: usize) -> *mut u8 {
    // SAFETY: as malloc; the slot has room for the block wherever the alignment puts it.
    unsafe {
        let start = malloc(size + alignment);
        start.add(start.align_offset(alignment))
    }
}

/// Whether it serves this process: then blocks overlap, and what is written into one is not there any more later.
pub fn serves() -> bool {
    SERVES.load(Ordering::Relaxed)
}

/// Gives a worker its window before the clock: some workloads measure microseconds, and mapping one takes dozens.
pub fn prepare() {
    if serves() && END.get() == 0 {
        let start = SPARE.get(0);
        END.set(start + WINDOW_BYTES);
        NEXT.set(start);
    }
}

/// From now on requests overlap, too, where they are larger than a window, up to this size: for workloads that only write into what
/// they get, with so many threads at a time. All that they will need is there before the clock: otherwise the floor is one of page faults.
pub fn overlap(largest: usize, threads: usize) {
    if serves() {
        SPARE.provide(threads);
        if largest > WINDOW_BYTES {
            let bytes = slot(largest);
            LARGE.store(repeated(bytes), Ordering::Relaxed);
            LARGE_BYTES.store(bytes, Ordering::Relaxed);
        }
    }
}

/// The end of the window: go back to its start, or get one at the thread's first call. Requests that are larger than the
/// window come from the kernel and stay: some workloads take their tables from the allocator under test.
#[cold]
fn turn(size: usize) -> *mut u8 {
    let slot = slot(size);
    if slot > WINDOW_BYTES {
        let overlaps = slot <= LARGE_BYTES.load(Ordering::Relaxed);
        return if overlaps { LARGE.load(Ordering::Relaxed) as *mut u8 } else { map(slot, size) };
    }
    let start = match END.get() {
        0 => SPARE.get(size),
        end => end - WINDOW_BYTES,
    };
    END.set(start + WINDOW_BYTES);
    NEXT.set(start + slot);
    start as *mut u8
}

/// Address space of which all pieces are the same memory: as large as a block must be, and in the cache as a window is.
fn repeated(bytes: usize) -> usize {
    // The kernel has room for some 65,000 mappings of a process.
    let piece = (bytes >> 14).next_power_of_two().max(2 << 20);
    let bytes = bytes.next_multiple_of(piece);
    let (usable, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE);
    // SAFETY: plain system calls; what is mapped at a fixed place lies within what was mapped just before.
    unsafe {
        let file = libc::memfd_create(c"heapmark-null".as_ptr(), libc::MFD_CLOEXEC);
        let aside = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let start = libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, aside, -1, 0);
        let is_there = libc::ftruncate(file, piece as i64) == 0
            && start != libc::MAP_FAILED
            && (0..bytes)
                .step_by(piece)
                .all(|at| libc::mmap(start.byte_add(at), piece, usable, flags, file, 0) != libc::MAP_FAILED);
        libc::close(file);
        if !is_there {
            fail::null("the null allocator", bytes);
        }
        start as usize
    }
}

/// Windows of threads that have ended, the last one on top: workloads that create a thread per hundred operations would
/// otherwise measure the mapping of windows.
struct Spare {
    locked: AtomicBool,
    count: Cell<usize>,
    windows: [Cell<usize>; 1024],
    key: Cell<Option<libc::pthread_key_t>>,
}

// SAFETY: the cells are used under the lock only.
unsafe impl Sync for Spare {}

static SPARE: Spare = Spare {
    locked: AtomicBool::new(false),
    count: Cell::new(0),
    windows: [const { Cell::new(0) }; 1024],
    key: Cell::new(None),
};

impl Spare {
    /// Windows for so many threads, as far as there is room to keep them.
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

    /// A window for the calling thread, which comes back here when the thread ends.
    fn get(&self, size: usize) -> usize {
        let window = self.under_lock(|| {
            if self.key.get().is_none() {
                let mut key = 0;
                // SAFETY: made once; the destructor takes back what `pthread_setspecific` was given.
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
        wait_until(|| !self.locked.swap(true, Ordering::Acquire));
        let result = act();
        self.locked.store(false, Ordering::Release);
        result
    }
}

unsafe extern "C" fn take_back(window: *mut c_void) {
    SPARE.keep(window as usize);
}

fn map(bytes: usize, size: usize) -> *mut u8 {
    // SAFETY: a fresh private mapping.
    let address = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        fail::null("the null allocator", size);
    }
    address.cast()
}
