//! Counts the system calls that get memory from the kernel and return it, without a tracer: a
//! seccomp filter sends a notification of each call, and a thread of this process receives it,
//! counts the call and lets it continue. That costs some microseconds per call, so nothing is timed
//! meanwhile.

use crate::answered;
use crate::report;
use crate::threads;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// The counted calls: names and numbers.
pub const CALLS: [(&str, libc::c_long); 6] = [
    ("mmap", libc::SYS_mmap),
    ("munmap", libc::SYS_munmap),
    ("mremap", libc::SYS_mremap),
    ("madvise", libc::SYS_madvise),
    ("mprotect", libc::SYS_mprotect),
    ("brk", libc::SYS_brk),
];

static COUNTS: [AtomicU64; CALLS.len()] = [const { AtomicU64::new(0) }; CALLS.len()];
static COUNTING: AtomicBool = AtomicBool::new(false);
/// The descriptor that notifications are read from; 0 until it exists, and -1 once the counting thread waits for it.
static NOTIFICATIONS: AtomicI32 = AtomicI32::new(0);

pub(super) fn start() {
    // The filter applies to the counting thread, too, which makes none of these calls once it waits.
    // SAFETY: `count` takes no argument.
    unsafe { threads::detach(count, ptr::null_mut()) };
    threads::wait_until(|| NOTIFICATIONS.load(Acquire) < 0);
    match filter() {
        Ok(file) => NOTIFICATIONS.store(file, Release),
        Err(errno) => fail!(
            "unsupported",
            "the kernel's calls cannot be counted here: seccomp notifications are refused, errno {errno}"
        ),
    }
}

/// Installs the filter. From here on, each call in [`CALLS`] waits until it has been counted.
fn filter() -> Result<i32, i32> {
    const CALLS_AT: usize = 1;
    const LET_GO: usize = CALLS_AT + CALLS.len();
    const NOTIFY: usize = LET_GO + 1;
    let jump = |code: u32, jt: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let mut program =
        [jump(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF); NOTIFY + 1];
    // The call's number is the first field of a filter's input.
    program[0] = jump(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0);
    for (place, (_, number)) in CALLS.iter().enumerate() {
        let here = CALLS_AT + place;
        program[here] = jump(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            (NOTIFY - here - 1) as u8,
            *number as u32,
        );
    }
    program[LET_GO] = jump(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW);
    match answered::listen(&program) {
        // SAFETY: reads this thread's errno.
        -1 => Err(unsafe { *libc::__errno_location() }),
        file => Ok(file),
    }
}

/// Runs the counting thread, which ends with the process.
extern "C" fn count(_: *mut c_void) -> *mut c_void {
    NOTIFICATIONS.store(-1, Release);
    threads::wait_until(|| NOTIFICATIONS.load(Acquire) > 0);
    let file = NOTIFICATIONS.load(Acquire);
    loop {
        // SAFETY: the kernel requires a zeroed notification, fills it and reads the answer; both
        // outlive the calls.
        unsafe {
            let mut asked: libc::seccomp_notif = core::mem::zeroed();
            if libc::ioctl(file, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut asked) != 0 {
                continue;
            }
            note(asked.data.nr.into());
            let mut answer: libc::seccomp_notif_resp = core::mem::zeroed();
            answer.id = asked.id;
            answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
            libc::ioctl(file, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer);
        }
    }
}

fn note(number: libc::c_long) {
    let place = CALLS.iter().position(|(_, call)| *call == number);
    if let Some(place) = place.filter(|_| COUNTING.load(Acquire)) {
        COUNTS[place].fetch_add(1, Relaxed);
    }
}

pub(super) fn switch(on: bool) {
    COUNTING.store(on, Release);
}

pub(super) fn report() {
    for ((name, _), count) in CALLS.iter().zip(&COUNTS) {
        report::say("count", format_args!("{name} {}", count.load(Relaxed)));
    }
}
