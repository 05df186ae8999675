//! Calls that allocate nothing but matter: threads, processes, and the program's own marks.

use crate::chunk_space::put;
use crate::layout::{StreamState, WIPED};
use crate::local::{Errno, local, state};
use crate::next::{BlockPointer, StartRoutine};
use crate::signals::Quiet;
use crate::thread::{begin_child, begin_thread_of_caller, found, own, record_rare};
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering;
use heapmark_wire::capture::Event;

/// Creates a thread and prepares its state. The new thread itself notes its start, in the creator's
/// name: a thread that could not be created leaves no event.
///
/// # Safety
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: StartRoutine,
    argument: BlockPointer,
) -> c_int {
    let Some(call) = found().pthread_create else {
        return libc::EAGAIN;
    };
    let process = &WIPED.process;
    // A program may start threads before it allocates anything, and so may a child.
    // SAFETY: the state is this thread's.
    match unsafe { state().as_ref() } {
        None => drop(begin_thread_of_caller(0)),
        Some(state) if state.number_and_one == 0 => drop(begin_child(0)),
        Some(_) => {}
    }
    let state = if process.is_on() {
        WIPED.states.clock_all(process);
        // SAFETY: the variable belongs to the calling thread.
        WIPED
            .states
            .take(unsafe { (*local()).thread_and_one }.saturating_sub(1))
    } else {
        None
    };
    let Some(state) = state else {
        // SAFETY: valid if the program's own call is.
        return unsafe { call(thread, attributes, start, argument) };
    };
    // SAFETY: the state is ours until the thread gets it.
    unsafe {
        ((*state).start, (*state).argument) = (Some(start), argument);
        let result = call(thread, attributes, run, state.cast());
        if result != 0 {
            WIPED.states.give(state);
        }
        result
    }
}

/// The work of a new thread.
#[repr(C)]
struct ThreadTask {
    start: Option<StartRoutine>,
    argument: BlockPointer,
}

extern "C" fn begin(state: BlockPointer) -> ThreadTask {
    let (_errno, _quiet) = (Errno::keep(), Quiet::begin());
    let (state, own_number) = (
        state.cast::<StreamState>(),
        WIPED.process.threads.fetch_add(1, Ordering::Relaxed),
    );
    // SAFETY: the thread's creator handed the state to it.
    unsafe {
        (*local()).thread_and_one = own_number + 1;
        let task = ThreadTask {
            start: (*state).start,
            argument: (*state).argument,
        };
        put(state, &Event::ThreadStart { child: own_number });
        (*state).thread = own_number;
        put(state, &Event::Begin { thread: own_number });
        own(state);
        task
    }
}

/// Runs first in a new thread, and jumps to the program's own function: `pthread_exit` unwinds the
/// stack, and must find no frame of the recorder on it.
#[unsafe(naked)]
extern "C" fn run(state: BlockPointer) -> BlockPointer {
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
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fork() -> libc::pid_t {
    let Some(call) = found().fork else { return -1 };
    // SAFETY: valid if the program's own call is.
    let pid = unsafe { call() };
    if pid > 0 {
        record_rare(&Event::Fork { pid: pid as u32 });
    }
    pid
}

/// Leaves a mark in the recording; programs find this function by looking up its name.
///
/// # Safety
/// `text` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heapmark_mark(text: *const c_char) {
    record_rare(&Event::Mark {
        // SAFETY: guaranteed by the caller.
        text: unsafe { CStr::from_ptr(text) }.to_bytes(),
    });
}
