//! `heapmark-guest pairs COUNT`: the cost of a pair of malloc and free in this process, in
//! nanoseconds of CPU time per call: before the process has had a second thread, after that, and
//! with a read of the CPU's counter at each call. Run with and without the recorder, this program
//! shows the cost of recording on this machine; without the recorder, also the cost of the counter
//! alone.

use crate::api::Api;
use crate::clock::thread_cpu_ns;
use crate::launch::OutputFile;
use crate::report;
use crate::rng::SplitMix;
use crate::text::number;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::Write;

/// Number of blocks that are live at a time.
const ALIVE: usize = 64;

/// Measures and prints the three costs.
///
/// # Safety
/// `argv` must be what the C runtime passed to `main`, with an argument after `pairs`.
pub unsafe fn main(argv: *const *const c_char) -> c_int {
    // SAFETY: the C runtime passed valid strings.
    let count = unsafe { CStr::from_ptr(*argv.add(2)) };
    let Some(count) = number(count).filter(|count| *count > 0) else {
        return report::usage();
    };
    let alone = time(count, || {});
    // SAFETY: the thread does nothing and is waited for.
    let started = unsafe {
        let mut thread = core::mem::zeroed();
        libc::pthread_create(
            &mut thread,
            core::ptr::null(),
            nothing,
            core::ptr::null_mut(),
        ) == 0
            && libc::pthread_join(thread, core::ptr::null_mut()) == 0
    };
    let threaded = time(count, || {});
    let stamped = time(count, read_counter);
    c_int::from(!started || write!(OutputFile(1), "{alone:.3} {threaded:.3} {stamped:.3}").is_err())
}

extern "C" fn nothing(_: *mut c_void) -> *mut c_void {
    core::ptr::null_mut()
}

/// Reads the CPU's counter as the recorder does.
#[inline(always)]
fn read_counter() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every CPU of this architecture has these instructions.
    core::hint::black_box(unsafe {
        core::arch::x86_64::_mm_lfence();
        core::arch::x86_64::_rdtsc()
    });
}

fn time(count: u64, at_each: impl Fn()) -> f64 {
    let api = Api::resolve();
    let mut random = SplitMix::new(1, 0);
    let mut blocks = [core::ptr::null_mut(); ALIVE];
    let mut round = |count: u64| {
        for _ in 0..count {
            let place = &mut blocks[random.below(ALIVE as u32) as usize];
            // SAFETY: the place holds NULL or a block of ours.
            unsafe {
                at_each();
                (api.free)(*place);
                *place = (api.malloc)(16 + random.below(256) as usize);
                at_each();
            }
        }
    };
    round(count / 8);
    let start = thread_cpu_ns();
    round(count);
    let passed = thread_cpu_ns() - start;
    // SAFETY: as above.
    blocks
        .iter()
        .for_each(|block| unsafe { (api.free)(*block) });
    passed as f64 / (2 * count) as f64
}
