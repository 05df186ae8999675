//! The clocks of a measured phase, read where no library can interpose: through the kernel's own
//! page of code (the vDSO), found and called without the C library, and through system calls.

use crate::elf::Image;
use crate::sys;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Returns the monotonic wall time.
pub fn now_ns() -> u64 {
    let function = match READ.load(Relaxed) {
        unknown if unknown.is_null() => find(),
        known => known,
    };
    let mut time = ZERO;
    // SAFETY: a function kept by `find` has this signature; it writes into a local.
    unsafe { transmute::<*mut c_void, Read>(function)(libc::CLOCK_MONOTONIC, &mut time) };
    ns(time)
}

/// Two clocks of one kernel may differ by this much if the kernel is emulated; on a native kernel
/// they do not differ at all.
const SLACK_NS: u64 = 100_000;

/// Ends the process unless the clock and the kernel's own call agree. A library may have
/// overwritten the kernel's page of code, but it cannot overwrite the kernel. The time from the
/// call must lie between two readings of the clock, which holds however long this thread waits for
/// a CPU.
pub fn must_agree() {
    let before = now_ns();
    let mut time = ZERO;
    // SAFETY: writes into a local.
    let error = unsafe { by_call(libc::CLOCK_MONOTONIC, &mut time) };
    let after = now_ns();
    if error == 0 && !lies_between(ns(time), before, after) {
        let s = |ns: u64| ns as f64 / 1e9;
        fail!(
            "wrong-result",
            "its clocks contradict each other: the kernel's call says {:.6} s, and its code in this process, which the library can write over, {:.6} s before and {:.6} s after it",
            s(ns(time)),
            s(before),
            s(after)
        );
    }
}

fn lies_between(call: u64, before: u64, after: u64) -> bool {
    (before.saturating_sub(SLACK_NS)..=after.saturating_add(SLACK_NS)).contains(&call)
}

/// CPU time of the calling thread.
pub fn thread_cpu_ns() -> u64 {
    let mut time = ZERO;
    // SAFETY: writes into a local.
    unsafe { by_call(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    ns(time)
}

const ZERO: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

fn ns(time: libc::timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The signature of `clock_gettime`.
type Read = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int;

/// The kernel's `clock_gettime`; null until it has been looked up.
static READ: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

#[cfg(target_arch = "x86_64")]
const NAME: &CStr = c"__vdso_clock_gettime";
#[cfg(target_arch = "aarch64")]
const NAME: &CStr = c"__kernel_clock_gettime";

/// Looks up the function that the kernel maps into each process; if there is none, a system call is
/// used.
#[cold]
fn find() -> *mut c_void {
    let function = kernels_own().unwrap_or(by_call as Read as *mut c_void);
    READ.store(function, Relaxed);
    function
}

fn kernels_own() -> Option<*mut c_void> {
    // The auxiliary vector from the start of this process: pairs of words, a key and its value.
    let mut vector = [0u8; 1024];
    let len = sys::RawFile::open(c"/proc/self/auxv")?.read(&mut vector);
    let (words, _) = vector[..len].as_chunks::<8>();
    let (pairs, _) = words.as_chunks::<2>();
    let place = pairs
        .iter()
        .find(|[key, _]| u64::from_ne_bytes(*key) == libc::AT_SYSINFO_EHDR)?[1];
    // SAFETY: the kernel has loaded an object there.
    unsafe { Image::at(usize::from_ne_bytes(place) as *const u8) }?.find(NAME)
}

unsafe extern "C" fn by_call(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    // SAFETY: the caller provides the place of the result.
    unsafe { sys::call(libc::SYS_clock_gettime, [clock as usize, time.addr()]) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_kernels_own_and_goes_with_the_c_librarys() {
        let libc_ns = || {
            let mut time = ZERO;
            // SAFETY: writes into a local.
            unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
            ns(time)
        };
        let (before, now, after) = (libc_ns(), now_ns(), libc_ns());
        assert!((before..=after).contains(&now), "{before} {now} {after}");
        assert!(kernels_own().is_some_and(|function| function == READ.load(Relaxed)));
    }

    #[test]
    fn a_wait_for_a_cpu_is_no_contradiction_and_a_clock_of_another_speed_is_one() {
        const S: u64 = 1_000_000_000;
        for (call, before, after, agree) in [
            (100 * S, 100 * S, 100 * S, true),
            (100 * S, 40 * S, 130 * S, true),
            (100 * S, 50 * S, 50 * S + 100, false),
            (100 * S, 100 * S + 1_000_000, 100 * S + 1_000_100, false),
        ] {
            assert_eq!(lies_between(call, before, after), agree, "{call} {before}");
        }
        must_agree();
    }

    #[test]
    fn without_the_kernels_code_its_call_tells_the_same_time() {
        let mut time = ZERO;
        let before = now_ns();
        // SAFETY: writes into a local.
        assert_eq!(unsafe { by_call(libc::CLOCK_MONOTONIC, &mut time) }, 0);
        assert!((before..=now_ns()).contains(&ns(time)));
    }
}
