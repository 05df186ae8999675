//! Calls that ask which CPUs there are, answered by heapmark: a seccomp filter makes these calls, and every call that
//! opens a file for reading, wait for heapmark's answer. The filter applies to this process and to everything it
//! starts, and cannot be removed. For heapmark's side, see `execute/cpus_seen`.

use core::ffi::c_int;

/// An instruction of the filter: its code, how many instructions to skip if the test succeeds and if it fails, and its
/// operand.
const fn step(code: u32, yes: u8, no: u8, operand: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k: operand,
    }
}

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const ANSWER: u32 = libc::BPF_RET | libc::BPF_K;

/// Offsets in the kernel's `seccomp_data`: the call's number, its architecture, and its arguments, which have eight
/// bytes each, the lower half first.
const NUMBER: u32 = 0;
const MACHINE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const OWN_MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_MACHINE: u32 = 0xc000_00b7;

/// The number of the older call `open`, whose flags are one argument earlier than those of `openat`. On an architecture
/// without that call, a number that matches no call.
#[cfg(target_arch = "x86_64")]
const OPEN: u32 = libc::SYS_open as u32;
#[cfg(not(target_arch = "x86_64"))]
const OPEN: u32 = u32::MAX;

/// Flags of `open`: a file that is opened with any of them is not only read.
const NOT_READ: u32 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_PATH) as u32;

const FILTER: [libc::sock_filter; 13] = [
    step(LOAD, 0, 0, MACHINE),
    step(IS, 0, 10, OWN_MACHINE),
    step(LOAD, 0, 0, NUMBER),
    step(IS, 7, 0, libc::SYS_sched_getaffinity as u32),
    step(IS, 3, 0, OPEN),
    step(IS, 0, 6, libc::SYS_openat as u32),
    step(LOAD, 0, 0, ARGUMENTS + 2 * 8),
    step(libc::BPF_JMP | libc::BPF_JA, 0, 0, 1),
    step(LOAD, 0, 0, ARGUMENTS + 8),
    step(AND, 0, 0, NOT_READ),
    step(IS, 0, 1, 0),
    step(ANSWER, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
    step(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
];

/// Lets heapmark answer the filtered calls from here on, by sending it the listener's descriptor through this socket.
/// Returns whether that worked.
pub fn by(socket: c_int) -> bool {
    let listener = listen(&FILTER);
    listener >= 0 && send(socket, listener)
}

/// Sets a filter that notifies a listener. Returns the listener's descriptor, which an executed program does not
/// inherit, or -1 with errno set.
pub fn listen(filter: &[libc::sock_filter]) -> c_int {
    match set(filter) {
        // An unprivileged process may set a filter only after it has ruled out that it, or a program that it executes,
        // gains privileges.
        // SAFETY: reads this thread's errno.
        -1 if unsafe { *libc::__errno_location() } == libc::EACCES => {
            // SAFETY: a plain system call.
            unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            set(filter)
        }
        listener => listener,
    }
}

fn set(filter: &[libc::sock_filter]) -> c_int {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    let with = |flags: libc::c_ulong| {
        let (number, mode) = (libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER);
        // SAFETY: the kernel copies the local and the filter.
        unsafe { libc::syscall(number, mode, flags, &raw const program) as c_int }
    };
    // A signal that arrives while a call waits would restart the call, endlessly if a program gets many signals. Linux
    // before 5.19 lacks the flag that prevents this, and before 5.7 those for threads that are there already.
    let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let all_threads = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let mut set = -1;
    for more in [all_threads | killable, all_threads, 0] {
        set = with(listener | more);
        // SAFETY: reads this thread's errno.
        if set != -1 || unsafe { *libc::__errno_location() } != libc::EINVAL {
            break;
        }
    }
    set
}

/// Sends the descriptor as ancillary data of a one-byte message. Returns whether that worked.
fn send(socket: c_int, descriptor: c_int) -> bool {
    /// Words of 8 bytes: enough for the kernel's message header and one descriptor, and aligned like the header.
    const ROOM: usize = 4;
    let mut room = [0_u64; ROOM];
    let mut byte = 1_u8;
    let mut part = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: zeros are valid; the message refers only to locals, and the room is at least as long as CMSG_SPACE
    // requires.
    unsafe {
        let mut message: libc::msghdr = core::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as usize;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as usize;
        libc::CMSG_DATA(head)
            .cast::<c_int>()
            .write_unaligned(descriptor);
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) == 1
    }
}
