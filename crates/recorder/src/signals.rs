//! Handlers of signals come between any two instructions. Some return, some jump away and leave what they interrupted half done.

use core::mem::MaybeUninit;

/// More than the frames of our own functions differ by, and less than the kernel puts below what it interrupts.
const FRAME_BYTES: usize = 512;

/// Who runs at this depth of the stack has interrupted what ran at that one. Otherwise that is gone: a handler has jumped away
/// from it.
pub fn has_interrupted(now: usize, then: usize) -> bool {
    let mut other = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: fills what is ours.
    let other = unsafe {
        if libc::sigaltstack(core::ptr::null(), other.as_mut_ptr()) != 0 {
            return true;
        }
        other.assume_init()
    };
    let on_it = |depth: usize| depth.wrapping_sub(other.ss_sp as usize) < other.ss_size;
    // A handler may have a stack of its own, and that lie anywhere.
    if other.ss_flags & libc::SS_ONSTACK != 0 && !on_it(then) {
        return true;
    }
    now < then && then - now > FRAME_BYTES
}

/// While this lives, the thread gets no signals: what is done meanwhile must not be left in the middle.
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

/// The kernel's own call: the library's keeps some signals back for itself, which jump as well.
fn mask(how: i32, signals: u64) -> u64 {
    let mut before = 0_u64;
    // SAFETY: eight bytes are the kernel's set of signals.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const signals, &raw mut before, 8_usize) };
    before
}
