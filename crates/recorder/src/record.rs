//! Notes a call: between the program and the next library, some ten million times a second. The
//! code for each call is inlined into the hooks and takes a few nanoseconds; all else is out of
//! line and cold.
//!
//! A free is noted before the next library gets the block, an allocation after it has returned one:
//! so, by their stamps, an address always dies before it is born again, whatever threads do.

use crate::chunk_space::stamp_slowly;
use crate::clock;
use crate::layout::{StreamState, WIPED};
use crate::local::state;
use crate::reentry::{note_elsewhere, note_streamless, take_over};
use crate::thread::{INTERRUPTING, enter, find_room, note_rarely, record_rare};
use crate::witness::Witness;
use core::ffi::c_void;
use core::hint::cold_path;
use core::sync::atomic::{Ordering, compiler_fence};
use heapmark_wire::capture::Event;

/// Runs an allocating call of the next library, then notes it, unless the next library itself made
/// it. The event of a failed call is separate: with one kind of event, noting needs no branches.
#[inline(always)]
pub fn record_after(
    call: impl FnOnce() -> *mut c_void,
    event: impl Fn(u64) -> Event<'static>,
    failed: impl Fn() -> Event<'static>,
) -> *mut c_void {
    let state = enter();
    if state <= INTERRUPTING {
        cold_path();
        if state == INTERRUPTING {
            let block = interrupt(call);
            record_rare(&if block.is_null() {
                failed()
            } else {
                event(block as u64)
            });
            return block;
        }
        let block = call();
        note_streamless(&if block.is_null() {
            failed()
        } else {
            event(block as u64)
        });
        return block;
    }
    let witness = Witness::new();
    let witness = witness.stand();
    // SAFETY: the state is this thread's.
    unsafe {
        (*state).calling = witness;
        let block = call();
        (*state).calling = 0;
        if block.is_null() {
            cold_path();
            note_rarely(state, &failed());
        } else {
            note(state, witness, event(block as u64));
        }
        block
    }
}

/// Notes a call, then runs it.
#[inline(always)]
pub fn record_before<R>(event: Event<'static>, call: impl FnOnce() -> R) -> R {
    let state = enter();
    if state <= INTERRUPTING {
        cold_path();
        let again = event;
        if state == INTERRUPTING {
            record_rare(&again);
            return interrupt(call);
        }
        note_streamless(&again);
        return call();
    }
    let witness = Witness::new();
    let witness = witness.stand();
    // SAFETY: the state is this thread's; after a fork noting moves it.
    unsafe {
        let state = note(state, witness, event);
        (*state).calling = witness;
        let result = call();
        (*state).calling = 0;
        result
    }
}

/// Runs a call of the next library while another one is interrupted, which goes on afterwards.
#[inline(always)]
fn interrupt<R>(call: impl FnOnce() -> R) -> R {
    let state = state();
    let witness = Witness::new();
    // SAFETY: the state is this thread's.
    unsafe {
        let interrupted = core::mem::replace(&mut (*state).calling, witness.stand());
        let result = call();
        (*state).calling = interrupted;
        result
    }
}

/// Notes an event that passes no call on.
#[inline(always)]
pub fn record(event: Event<'_>) {
    let state = enter();
    if state <= INTERRUPTING {
        cold_path();
        let again = event;
        return record_rare(&again);
    }
    let witness = Witness::new();
    // SAFETY: the state is this thread's.
    unsafe { note(state, witness.stand(), event) };
}

/// Returns the stamp of a call that begins now; any value if there is no clock. If the event will
/// need a new chunk, the chunk is started first: no event can be stamped earlier than its chunk.
#[inline(always)]
pub fn entered() -> Option<u64> {
    // SAFETY: the state is this thread's, if there is one.
    unsafe {
        let state = state();
        let clocked = if state.is_null() {
            clock::OFF
        } else {
            (*state).clocked.load(Ordering::Relaxed)
        };
        if clocked == clock::OFF {
            return None;
        }
        if (*state).writer.at() >= (*state).limit {
            cold_path();
            record_rare(&Event::Clock);
        }
        Some(match clocked {
            clock::CPU => clock::cpu(),
            _ => WIPED.process.stamp(),
        })
    }
}

/// Notes an event in the thread's own stream, unless the thread is in the middle of another event there; returns the
/// thread's present state.
#[inline(always)]
unsafe fn note(state: *mut StreamState, witness: usize, event: Event<'_>) -> *mut StreamState {
    // SAFETY: the state is this thread's. Signal handlers, which may run between any two
    // instructions, find the witness and leave the writer alone.
    unsafe {
        if StreamState::claim(state, 0, witness) != 0 {
            cold_path();
            if !take_over(state, witness) {
                // A copy: an event whose address is passed on would have to be in memory, and its
                // kind would be read from there.
                let again = event;
                note_elsewhere((*state).thread, &again);
                return state;
            }
        }
        compiler_fence(Ordering::SeqCst);
        let mut present_state = state;
        if (*present_state).writer.at() >= (*present_state).limit {
            cold_path();
            present_state = find_room(state, witness);
            if present_state.is_null() {
                (*state).writing = 0;
                return state;
            }
        }
        // Each arm has its own copy of the code that writes the event, with or without a stamp.
        match (*present_state).clocked.load(Ordering::Relaxed) {
            clock::OFF => (*present_state).writer.put(&event, None),
            clock::CPU => (*present_state).writer.put(&event, Some(clock::cpu())),
            _ => {
                cold_path();
                put_slowly(present_state, event);
            }
        }
        compiler_fence(Ordering::SeqCst);
        (*present_state).writing = 0;
        present_state
    }
}

/// Writes an event if the stream's first stamp is due, or if stamps come from memory.
#[cold]
#[inline(never)]
unsafe fn put_slowly(state: *mut StreamState, event: Event<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let stamp = stamp_slowly(state);
        (*state).writer.put(&event, Some(stamp));
    }
}
