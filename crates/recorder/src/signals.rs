//! Detects signal handlers, which run between any two instructions, and blocks signals.

use crate::local::Errno;
use crate::witness::{PAGE_BYTES, is_readable};
use core::mem::zeroed;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address to which handlers return: that of a function of the C library, which the kernel puts on the handler's stack.
/// 0 if it is not known.
static RESTORER: AtomicUsize = AtomicUsize::new(0);

/// The most stack that a call of an allocator takes.
const MOST_STACK_BYTES: usize = 1 << 20;

/// The offset, from the place of the restorer, at which the kernel saves the stack pointer: behind
/// the restorer's address come five words of the `ucontext`, then the registers.
const SAVED_DEPTH: usize = (1 + 5 + 15) * 8;
/// The offset of the blocked signals, which come behind the 32 words of the registers.
const SAVED_MASK: usize = (1 + 5 + 32) * 8;

/// The least size of a handler's frame: registers, mask and information of the signal, then the
/// state of the floating-point unit.
const FRAME_BYTES: usize = 440 + 512;

/// The kernel's `struct sigaction` on architectures with a restorer.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Finds out to which address handlers return; called once, before anything is recorded.
pub fn find() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    extern "C" fn handler(_: i32) {}
    let _errno = Errno::keep();
    let _quiet = Quiet::begin();
    // A signal that has no effect unless the program handles it.
    let signal = libc::SIGURG;
    // SAFETY: the structures are ours, zeros are valid values of them; no signal is delivered
    // meanwhile, and the program's own action is put back.
    unsafe {
        let (mut ours, mut before): (libc::sigaction, libc::sigaction) = (zeroed(), zeroed());
        ours.sa_sigaction = handler as *const () as usize;
        if libc::sigaction(signal, &ours, &mut before) != 0 {
            return;
        }
        let mut known: KernelAction = zeroed();
        let none = null_mut::<KernelAction>();
        let number = libc::SYS_rt_sigaction;
        if libc::syscall(number, signal, none, &raw mut known, size_of::<u64>()) == 0 {
            RESTORER.store(known.restorer, Ordering::Relaxed);
        }
        libc::sigaction(signal, &before, null_mut());
    }
}

/// Returns whether the handler whose frame lies at this place still runs: frames of later calls leave gaps in which old
/// frames remain. While a handler runs, more signals are blocked than before it; a handler that blocks none cannot be told
/// apart from one that has returned.
#[cold]
fn is_under_way(place: usize, then: usize) -> bool {
    let saved = |from: usize| {
        let word = place + from;
        // SAFETY: aligned, and on a page that can be read.
        is_readable(word).then(|| unsafe { (word as *const u64).read_volatile() })
    };
    let is_between = |depth: u64| (place + FRAME_BYTES) as u64 <= depth && depth <= then as u64;
    saved(SAVED_DEPTH).is_some_and(is_between)
        && saved(SAVED_MASK).is_some_and(|before| mask(libc::SIG_BLOCK, 0) & !before != 0)
}

/// Returns whether a signal handler has begun between the frames at `depth` and at `then`, which
/// lies above: then the place to which it returns lies between them, or they are on other stacks.
pub fn is_handler(depth: usize, then: usize) -> bool {
    if then - depth > MOST_STACK_BYTES {
        return true;
    }
    let restorer = RESTORER.load(Ordering::Relaxed);
    let mut place = depth.next_multiple_of(size_of::<usize>());
    while restorer != 0 && place < then {
        if place.is_multiple_of(PAGE_BYTES) && !is_readable(place) {
            // No unreadable page lies between two frames of one stack.
            return true;
        }
        // SAFETY: aligned, and on a page that can be read.
        let word = unsafe { (place as *const usize).read_volatile() };
        if word == restorer && is_under_way(place, then) {
            return true;
        }
        place += size_of::<usize>();
    }
    false
}

/// A guard: while it exists, the thread gets no signals, because work done meanwhile must not be
/// abandoned in the middle.
pub struct Quiet(u64);

impl Quiet {
    pub fn begin() -> Quiet {
        Quiet(mask(libc::SIG_BLOCK, u64::MAX))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        mask(libc::SIG_SETMASK, self.0);
    }
}

/// Changes the blocked signals; returns the previous ones. A direct system call: the library's
/// function leaves some signals of its own unblocked, and their handlers may jump as well.
fn mask(how: i32, signals: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: the kernel's signal set has eight bytes.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const signals,
            &raw mut before,
            8_usize,
        )
    };
    before
}
