//! Signal handlers run between any two instructions.

/// While this lives, the thread gets no signals: work done meanwhile must not be abandoned in the
/// middle.
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

/// A direct system call: the library's function leaves some signals of its own unblocked, and their
/// handlers may jump as well.
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
