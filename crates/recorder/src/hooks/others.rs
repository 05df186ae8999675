//! Calls that allocate nothing and matter: threads, processes, and what the program itself has to say.

use crate::local::local;
use crate::next::{find, found};
use crate::note::only;
use crate::process::WIPED;
use crate::state::State;
use crate::thread::own;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering;
use heapmark_wire::capture::Event;

type Argument = *mut c_void;
type Start = extern "C" fn(Argument) -> Argument;

/// The new thread gets its number and its state from the one that starts it: nothing has to be kept for it elsewhere.
///
/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: Argument,
) -> c_int {
    let Some(call) = found().pthread_create else { return libc::EAGAIN };
    let process = &WIPED.process;
    // A program may start threads before it allocates anything.
    let state = if find() && process.start() {
        WIPED.states.clock_all(process);
        let child = process.threads.fetch_add(1, Ordering::Relaxed);
        only(Event::ThreadStart { child });
        WIPED.states.take(child)
    } else {
        None
    };
    let Some(state) = state else {
        // SAFETY: as the program's call.
        return unsafe { call(thread, attributes, start, argument) };
    };
    // SAFETY: the state is ours until the thread has it.
    unsafe {
        ((*state).start, (*state).argument) = (Some(start), argument);
        let result = call(thread, attributes, run, state.cast());
        if result != 0 {
            WIPED.states.give(state);
        }
        result
    }
}

/// What a new thread is to do.
#[repr(C)]
struct Task {
    start: Option<Start>,
    argument: Argument,
}

extern "C" fn begin(state: Argument) -> Task {
    let state = state.cast::<State>();
    // SAFETY: whoever started this thread left the state to it.
    unsafe {
        (*local()).thread_and_one = (*state).thread + 1;
        let task = Task { start: (*state).start, argument: (*state).argument };
        own(state);
        task
    }
}

/// The first function of a new thread. It jumps to the program's own: `pthread_exit` unwinds the stack, and must find no frame of
/// ours on it.
#[unsafe(naked)]
extern "C" fn run(state: Argument) -> Argument {
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!(
        "sub rsp, 8",
        "call {begin}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        begin = sym begin,
    );
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {begin}",
        "ldp x29, x30, [sp], #16",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        begin = sym begin,
    );
}

/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> libc::pid_t {
    let Some(call) = found().fork else { return -1 };
    // SAFETY: as the program's call.
    let pid = unsafe { call() };
    if pid > 0 {
        only(Event::Fork { pid: pid as u32 });
    }
    pid
}

/// A program that looks for this name may leave a mark in its recording.
///
/// # Safety
/// `text` is a string of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapmark_mark(text: *const c_char) {
    // SAFETY: the caller's.
    only(Event::Mark { text: unsafe { CStr::from_ptr(text) }.to_bytes() });
}
