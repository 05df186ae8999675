//! Calls that cannot simply be noted in their thread's own stream: the thread has no stream yet or
//! no longer has one, or it is in the middle of another call, or it was until something jumped out
//! of that call.

use crate::chunk_space::{put, recover};
use crate::layout::{StreamState, WIPED};
use crate::local::{Errno, local, state};
use crate::witness::stands;
use heapmark_wire::capture::{Event, Writer};

/// No allocator calls itself this often in one call. If it seems to, the program has jumped out of
/// that call, and the frame was not overwritten.
const MOST_INNER: u32 = 1000;

/// Counts a call that the next library seems to make to itself; returns false if there are too many
/// of these.
pub fn may_be_inner(state: &mut StreamState) -> bool {
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
    // All these calls were the program's own; the present one will be noted.
    state.inner -= state.inner_since.0;
    WIPED.process.drop_events(MOST_INNER);
    false
}

/// Returns whether the caller may use the writer: true if the program has jumped away from the
/// event that was being written. False if this is a signal handler that interrupted the writing.
#[cold]
#[inline(never)]
pub unsafe fn take_over(state: *mut StreamState, witness: usize) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let then = (&raw const (*state).writing).read_volatile();
        if then != 0 && stands(then, witness) || StreamState::claim(state, then, witness) != then {
            return false;
        }
        if then != 0 {
            recover(state);
        }
    }
    true
}

/// Notes a call for which there was no state: frees of the C library after the thread's
/// destructors. Calls that the next library makes to itself are not noted.
#[cold]
#[inline(never)]
pub fn note_streamless(event: &Event<'_>) {
    // SAFETY: the variable belongs to the calling thread.
    let local = unsafe { &*local() };
    if state().is_null() && local.ended {
        note_elsewhere(local.thread_and_one.saturating_sub(1), event);
    }
}

/// Notes an event in an idle stream, and gives the stream back.
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
