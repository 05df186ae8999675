//! How long single calls take. Wrappers of the functions under test read a clock before and after
//! one call in K of each thread, and count the times in a histogram. This runs in processes of its
//! own: nothing else is measured in them.
//!
//! The histogram holds what the clock showed, including its own cost; that cost is reported with
//! it.

mod cycle_counter;
mod function;
mod histogram;
mod thread_slots;

extern crate std;

use crate::api::{AlignedOperators, Api};
use crate::fail;
use crate::job::Job;
use crate::memory::{self, HarnessTable};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use cycle_counter::Ticks;
use function::{FUNCTIONS, Function};
use heapmark_wire::Page;
pub use histogram::CallTimes;
use histogram::{Counts, LongestCall};
use thread_slots::{ThreadSlot, ThreadSlots};

/// All that the wrappers need. Written before they are handed out, never changed.
struct WrapperState {
    real: Api,
    every: u32,
    seed: u64,
    ticks: Ticks,
    began: u64,
    seats: ThreadSlots,
    /// Its destructor frees the seat of a thread that ends.
    key: libc::pthread_key_t,
}

static MODE: AtomicPtr<WrapperState> = AtomicPtr::new(ptr::null_mut());

std::thread_local! {
    // Const and without a destructor: an access is one load from the thread pointer.
    /// Calls until the next timed one, including that one; 0 = this thread has no seat yet.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static SEAT: Cell<*const ThreadSlot> = const { Cell::new(ptr::null()) };
}

/// Functions that call `real` and time one call in `every` of each thread.
pub fn watch(real: Api, every: u64, seed: u64) -> Api {
    let every = u32::try_from(every)
        .ok()
        .filter(|every| (1..=1 << 30).contains(every));
    let every = every
        .unwrap_or_else(|| fail::give_up("error", format_args!("`latency` is no usable number")));
    let mut key = 0;
    // SAFETY: made once; the destructor takes back the value passed to `pthread_setspecific`.
    if unsafe { libc::pthread_key_create(&mut key, Some(leave)) } != 0 {
        fail::give_up("error", format_args!("no key for the threads' seats"));
    }
    let ticks = Ticks::find();
    let mode = memory::keep(WrapperState {
        real,
        every,
        seed,
        ticks,
        began: ticks.begin(),
        seats: ThreadSlots::new(),
        key,
    });
    MODE.store(mode, Ordering::Release);
    let aligned = real.aligned.map(|real| AlignedOperators {
        new: new_aligned,
        delete: delete_aligned,
        delete_sized: real.delete_sized.map(|_| delete_aligned_sized as _),
    });
    Api {
        malloc,
        free,
        calloc,
        realloc,
        posix_memalign,
        free_sized,
        new,
        delete,
        delete_sized,
        aligned,
        usable_size: real.usable_size,
    }
}

/// Gives a worker its seat before the clock starts, if seats are in use.
pub fn prepare() {
    // SAFETY: null, or set by `watch` permanently.
    if let Some(mode) = unsafe { MODE.load(Ordering::Acquire).as_ref() }
        && LEFT.get() == 0
    {
        mode.sit_down();
    }
}

impl WrapperState {
    /// Takes a seat for the calling thread, and draws the first gap.
    #[cold]
    fn sit_down(&self) {
        let Some(seat) = self.seats.take(self.seed) else {
            fail::give_up(
                "unsupported",
                format_args!("more threads at a time than single calls can be timed of"),
            );
        };
        SEAT.set(seat);
        LEFT.set(seat.gap(self.every));
        // SAFETY: a key of ours; the seat is never unmapped.
        unsafe { libc::pthread_setspecific(self.key, ptr::from_ref(seat).cast()) };
    }
}

unsafe extern "C" fn leave(seat: *mut c_void) {
    LEFT.set(0);
    // SAFETY: set by `sit_down`; this thread uses it no longer.
    unsafe { &*seat.cast::<ThreadSlot>() }.leave();
}

/// Makes a call, and times it if its turn has come.
#[inline(always)]
fn call<R>(function: Function, bytes: usize, make: impl Fn(&Api) -> R) -> R {
    // SAFETY: set by `watch` before these functions were handed out, never changed.
    let mode = unsafe { &*MODE.load(Ordering::Relaxed) };
    if LEFT.get() == 0 {
        mode.sit_down();
    }
    let left = LEFT.get() - 1;
    LEFT.set(left);
    if left > 0 {
        return make(&mode.real);
    }
    // SAFETY: `sit_down` has set it.
    let seat = unsafe { &*SEAT.get() };
    let begin = mode.ticks.begin();
    let result = make(&mode.real);
    let end = mode.ticks.end();
    let ns = mode.ticks.ns(begin, end);
    seat.tallies[function as usize].note(ns, bytes as u64, || mode.ticks.ns(mode.began, end));
    LEFT.set(seat.gap(mode.every));
    result
}

unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    call(Function::Malloc, size, |real| unsafe {
        (real.malloc)(size)
    })
}

unsafe extern "C" fn free(block: *mut u8) {
    // SAFETY: the allocator's own function with a block of its own.
    let free = |real: &Api| unsafe { (real.free)(block) };
    // Without a block there is no work and no operation: kernels do not count it either.
    if block.is_null() {
        // SAFETY: as in `call`.
        return free(unsafe { &(*MODE.load(Ordering::Relaxed)).real });
    }
    call(Function::Free, 0, free)
}

unsafe extern "C" fn free_sized(block: *mut u8, size: usize, flags: usize) {
    // SAFETY: the allocator's own function with a block of its own.
    call(Function::Free, 0, |real| unsafe {
        (real.free_sized)(block, size, flags)
    })
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    call(
        Function::Calloc,
        count.saturating_mul(size),
        |real| unsafe { (real.calloc)(count, size) },
    )
}

unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function with a block of its own.
    call(Function::Realloc, size, |real| unsafe {
        (real.realloc)(block, size)
    })
}

unsafe extern "C" fn posix_memalign(block: *mut *mut u8, alignment: usize, size: usize) -> i32 {
    // SAFETY: the allocator's own function, and the caller's place for the result.
    call(Function::PosixMemalign, size, |real| unsafe {
        (real.posix_memalign)(block, alignment, size)
    })
}

unsafe extern "C" fn new(size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function, as in all of these.
    call(Function::Malloc, size, |real| unsafe { (real.new)(size) })
}

unsafe extern "C" fn delete(block: *mut u8) {
    // SAFETY: a block of its own `new`.
    call(Function::Free, 0, |real| unsafe { (real.delete)(block) })
}

unsafe extern "C" fn delete_sized(block: *mut u8, size: usize) {
    // SAFETY: a block of its own `new`.
    call(Function::Free, 0, |real| unsafe {
        (real.delete_sized)(block, size)
    })
}

unsafe extern "C" fn new_aligned(size: usize, alignment: usize) -> *mut u8 {
    let new = |real: &Api| {
        // SAFETY: as in `new`; handed out only if it exists.
        real.aligned.map_or(ptr::null_mut(), |real| unsafe {
            (real.new)(size, alignment)
        })
    };
    call(Function::PosixMemalign, size, new)
}

unsafe extern "C" fn delete_aligned(block: *mut u8, alignment: usize) {
    let delete = |real: &Api| {
        real.aligned
            .iter()
            // SAFETY: a block of `new_aligned`.
            .for_each(|real| unsafe { (real.delete)(block, alignment) })
    };
    call(Function::Free, 0, delete)
}

unsafe extern "C" fn delete_aligned_sized(block: *mut u8, size: usize, alignment: usize) {
    let delete = |real: &Api| {
        let delete = real.aligned.and_then(|real| real.delete_sized);
        // SAFETY: a block of `new_aligned`.
        delete
            .iter()
            .for_each(|delete| unsafe { delete(block, size, alignment) });
    };
    call(Function::Free, 0, delete)
}

/// Called after the last call: reports the counts of all threads, and the cost of the clock.
pub fn report(page: &Page, job: &Job<'_>) {
    // SAFETY: null, or set by `watch` permanently.
    let Some(mode) = (unsafe { MODE.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let (least, middle) = cost(&mode.ticks);
    let mut full = page
        .say(format_args!("latency.every={}", job.word("latency")))
        .is_err();
    full |= page
        .say(format_args!(
            "latency.clock={} {least} {middle}",
            mode.ticks.name()
        ))
        .is_err();
    let sums = HarnessTable::<CallTimes>::zeroed(FUNCTIONS.len());
    for seat in mode.seats.used() {
        sums.iter()
            .zip(&seat.tallies)
            .for_each(|(sum, tally)| sum.add(tally));
    }
    for (name, sum) in FUNCTIONS.iter().zip(sums.iter()) {
        let LongestCall { ns, bytes, at_ns } = sum.longest.get();
        full |= page
            .say(format_args!(
                "latency={name} {ns} {bytes} {at_ns}{}",
                sum.counts
            ))
            .is_err();
    }
    if full {
        fail::give_up("error", format_args!("the report is full"));
    }
}

/// The difference of two reads with nothing in between: the minimum and the median of many.
fn cost(ticks: &Ticks) -> (u64, u64) {
    const PAIRS: usize = 10_000;
    let counts = HarnessTable::<Counts>::zeroed(1);
    for _ in 0..PAIRS {
        let begin = ticks.begin();
        let end = ticks.end();
        counts[0].note(ticks.ns(begin, end));
    }
    counts[0].least_and_middle()
}
