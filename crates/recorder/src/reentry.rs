//! Calls that cannot simply be noted in their thread's own stream: the thread has no stream yet or
//! any more, or it is in the middle of another call, or it was, when something jumped out of that
//! call.

use crate::chunk_space::put;
use crate::clock;
use crate::local::{Errno, local, state};
use crate::process::WIPED;
use crate::state::State;
use crate::thread::begin_thread_of_caller;
use crate::witness::stands;
use core::sync::atomic::Ordering;
use heapmark_wire::capture::{Event, Writer};

/// No allocator calls itself this often in one call. If it seems to, the program has jumped out of
/// that call, and the frame was not overwritten.
const MOST_INNER: u32 = 1000;

/// The thread's state, if it gets one now, or if the call marked as under way is not. Null if the
/// next library has called itself.
#[cold]
#[inline(never)]
pub fn enter_slowly(state: *mut State, depth: usize) -> *mut State {
    if state.is_null() {
        return begin_thread_of_caller(0);
    }
    // SAFETY: the state is this thread's.
    unsafe {
        let then = (*state).calling;
        if depth < then && stands(then, depth) && may_be_inner(&mut *state) {
            return core::ptr::null_mut();
        }
        (*state).calling = 0;
    }
    state
}

/// Counts the calls that the next library makes to itself.
fn may_be_inner(state: &mut State) -> bool {
    // SAFETY: the state's own.
    let events = unsafe { Writer::events(&raw const state.writer) };
    if state.inner_since.1 != events {
        state.inner_since = (0, events);
    }
    state.inner_since.0 += 1;
    state.inner += 1;
    if state.inner_since.0 <= MOST_INNER.into() {
        return true;
    }
    // All of them were the program's; this one will be noted.
    state.inner -= state.inner_since.0;
    WIPED.process.drop_events(MOST_INNER);
    false
}

/// Whether the caller may use the writer: true if the program has jumped away from the event that
/// was being written. False if this is a signal handler that interrupted the writing.
#[cold]
#[inline(never)]
pub unsafe fn take_over(state: *mut State, witness: usize) -> bool {
    // SAFETY: as the caller guarantees.
    unsafe {
        let then = (&raw const (*state).writing).read_volatile();
        if then != 0 && stands(then, witness) || State::claim(state, then, witness) != then {
            return false;
        }
        if then != 0 {
            recover(state);
        }
    }
    true
}

/// Repairs the writer after a possibly torn event. The end of the stream is where a reader would
/// find it.
///
/// # Safety
/// The state is the caller's, and nothing else writes to it.
pub unsafe fn recover(state: *mut State) {
    // SAFETY: as the caller guarantees.
    unsafe {
        if !(*state).writer.at().is_null() {
            let clocked = (*state).writer.recover();
            let process_clocked = WIPED.process.clocked.load(Ordering::SeqCst);
            let kind = if clocked {
                clock::kind()
            } else if process_clocked {
                clock::WANTED
            } else {
                clock::OFF
            };
            (*state).clocked.store(kind, Ordering::Relaxed);
        }
        (*state).limit = core::ptr::null_mut();
    }
}

/// Notes a call for which [`enter_slowly`] had no state: frees of the C library after the thread's
/// destructors. Calls that the next library makes to itself are not noted.
#[cold]
#[inline(never)]
pub fn note_streamless(event: &Event<'_>) {
    // SAFETY: the calling thread's own variable.
    let local = unsafe { &*local() };
    if state().is_null() && local.ended {
        note_elsewhere(local.thread_and_one.saturating_sub(1), event);
    }
}

/// Notes an event in an idle stream, and leaves it.
#[cold]
#[inline(never)]
pub fn note_elsewhere(thread: u32, event: &Event<'_>) {
    let _errno = Errno::keep();
    if !WIPED.process.is_on() {
        return;
    }
    if let Some(state) = WIPED.states.take(thread) {
        // SAFETY: the state is ours until it is given back.
        unsafe {
            put(state, event);
            WIPED.states.give(state);
        }
    }
}
