//! Handlers of signals come between any two instructions.

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
