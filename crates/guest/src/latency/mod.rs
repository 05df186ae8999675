//! Measures how long single calls take. Wrappers of the functions under test read a clock before
//! and after one call in K of each thread, and count the times in a histogram. A process with these
//! wrappers measures nothing else.
//!
//! The histogram holds the clock's readings, which include the clock's own cost; that cost is
//! reported with them.

mod cycle_counter;
mod histogram;
mod thread_slots;

extern crate std;

use crate::api::Api;
use crate::job::Job;
use crate::memory::{self, HarnessTable};
use crate::report;
use crate::wrapped::{FUNCTIONS, Function, Look, Request, wrap};
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use cycle_counter::Ticks;
pub use histogram::CallTimes;
use histogram::{Counts, LongestCall};
use thread_slots::{ThreadSlot, ThreadSlots};

/// Everything that the wrappers need, written before the wrappers are handed out, and never
/// changed.
struct WrapperState {
    real: Api,
    every: u32,
    seed: u64,
    ticks: Ticks,
    began: u64,
    seats: ThreadSlots,
    /// The key whose destructor frees the seat of a thread that ends.
    key: libc::pthread_key_t,
}

static MODE: AtomicPtr<WrapperState> = AtomicPtr::new(ptr::null_mut());

std::thread_local! {
    // Const and without a destructor, so that an access is one load relative to the thread pointer.
    /// Calls until the next timed one, including that call; 0 if this thread has no seat yet.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    static SEAT: Cell<*const ThreadSlot> = const { Cell::new(ptr::null()) };
}

/// Returns functions that call `real` and time one call in `every` of each thread.
pub fn watch(real: Api, every: u64, seed: u64) -> Api {
    let every = u32::try_from(every)
        .ok()
        .filter(|every| (1..=1 << 30).contains(every));
    let every = every.unwrap_or_else(|| fail!("error", "`latency` is no usable number"));
    let mut key = 0;
    // SAFETY: made once; the destructor takes back the value passed to `pthread_setspecific`.
    if unsafe { libc::pthread_key_create(&mut key, Some(leave)) } != 0 {
        fail!("error", "no key for the threads' seats");
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
    MODE.store(mode, Release);
    wrap::<WrapperState>(&real)
}

/// Gives a worker its seat before the clock starts, if seats are in use.
pub fn prepare() {
    // SAFETY: null, or set by `watch` permanently.
    if let Some(mode) = unsafe { MODE.load(Acquire).as_ref() }
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
            fail!(
                "unsupported",
                "more threads at a time than single calls can be timed of"
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
    // SAFETY: set by `sit_down`; this thread no longer uses it.
    unsafe { &*seat.cast::<ThreadSlot>() }.leave();
}

/// Makes a call, and times it if its turn has come.
#[inline(always)]
fn call<R>(function: Function, bytes: usize, make: impl FnOnce(&Api) -> R) -> R {
    // SAFETY: set by `watch` before these functions were handed out, never changed.
    let mode = unsafe { &*MODE.load(Relaxed) };
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

impl Look for WrapperState {
    #[inline(always)]
    fn allocate<R>(
        request: Request,
        make: impl FnOnce(&Api) -> R,
        _block: impl FnOnce(&R) -> *mut u8,
    ) -> R {
        call(request.function, request.bytes(), make)
    }

    #[inline(always)]
    fn resize(_block: *mut u8, size: usize, make: impl FnOnce(&Api) -> *mut u8) -> *mut u8 {
        call(Function::Realloc, size, make)
    }

    #[inline(always)]
    fn free(block: *mut u8, make: impl FnOnce(&Api)) {
        // A free of NULL does no work and is not an operation, so kernels do not count it, either.
        if block.is_null() {
            // SAFETY: as in `call`.
            return make(unsafe { &(*MODE.load(Relaxed)).real });
        }
        call(Function::Free, 0, make);
    }
}

/// Reports the counts of all threads, and the cost of the clock; called after the last timed call.
pub fn report(job: &Job<'_>) {
    // SAFETY: null, or set by `watch` permanently.
    let Some(mode) = (unsafe { MODE.load(Acquire).as_ref() }) else {
        return;
    };
    let (least, middle) = cost(&mode.ticks);
    report::say("latency.every", job.word("latency"));
    let clock = mode.ticks.name();
    report::say("latency.clock", format_args!("{clock} {least} {middle}"));
    let sums = HarnessTable::<CallTimes>::zeroed(FUNCTIONS.len());
    for seat in mode.seats.used() {
        sums.iter()
            .zip(&seat.tallies)
            .for_each(|(sum, tally)| sum.add(tally));
    }
    for (name, sum) in FUNCTIONS.iter().zip(sums.iter()) {
        let LongestCall { ns, bytes, at_ns } = sum.longest.get();
        let counts = &sum.counts;
        report::say(
            "latency",
            format_args!("{name} {ns} {bytes} {at_ns}{counts}"),
        );
    }
}

/// Returns the cost of the clock: the minimum and the median of many differences of two reads with
/// nothing in between.
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
