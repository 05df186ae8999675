//! Notes a call: between the program and the next library, some ten million times a second. What runs each time is inlined into
//! the hooks and takes a few nanoseconds; all else is out of line and cold.
//!
//! A free is noted before the next library gets the block, an allocation after it has given one: so, by their stamps, an address
//! always dies before it is born again, whatever threads do.

use crate::aside::{Aside, enter_slowly};
use crate::clock;
use crate::local::{depth, state};
use crate::process::WIPED;
use crate::room::{find_room, stamp_slowly};
use crate::state::{CALLING, State};
use core::ffi::c_void;
use core::hint::cold_path;
use core::sync::atomic::{Ordering, compiler_fence};
use heapmark_wire::capture::Event;

/// Runs a call of the next library that allocates, then notes it, unless it is not the program's: made by the next library
/// itself. What a call that fails amounts to is kept apart: with one kind of event, noting it is straight.
#[inline(always)]
pub fn after(
    call: impl FnOnce() -> *mut c_void,
    event: impl Fn(u64) -> Event<'static>,
    failed: impl Fn() -> Event<'static>,
) -> *mut c_void {
    let state = enter();
    if state.is_null() {
        cold_path();
        let aside = Aside::of_caller();
        let block = aside.run(call);
        aside.note(move || if block.is_null() { failed() } else { event(block as u64) });
        return block;
    }
    // SAFETY: the state is this thread's.
    unsafe {
        (*state).busy = depth() | CALLING;
        let block = call();
        if block.is_null() {
            cold_path();
            note_rarely(state, failed());
        } else {
            note(state, event(block as u64));
        }
        block
    }
}

/// Notes a call, then runs it.
#[inline(always)]
pub fn before<R>(event: Event<'static>, call: impl FnOnce() -> R) -> R {
    let state = enter();
    if state.is_null() {
        cold_path();
        let aside = Aside::of_caller();
        aside.note(move || event);
        return aside.run(call);
    }
    // SAFETY: the state is this thread's; after a fork noting moves it.
    unsafe {
        let state = note(state, event);
        (*state).busy = depth() | CALLING;
        let result = call();
        (*state).busy = 0;
        result
    }
}

/// Notes what calls nothing.
#[inline(always)]
pub fn only(event: Event<'_>) {
    let state = enter();
    if state.is_null() {
        cold_path();
        return Aside::of_caller().note(move || event);
    }
    // SAFETY: the state is this thread's.
    unsafe { note(state, event) };
}

/// The stamp of a call that begins now; nothing that counts where there is no clock.
#[inline(always)]
pub fn entered() -> Option<u64> {
    // SAFETY: the state is this thread's, if there is one.
    unsafe {
        let state = state();
        match if state.is_null() { clock::OFF } else { (*state).clocked.load(Ordering::Relaxed) } {
            clock::OFF => None,
            clock::CPU => Some(clock::cpu()),
            _ => Some(WIPED.process.stamp()),
        }
    }
}

/// The thread's state, where nothing is under way in it. Otherwise null: the call is noted elsewhere, if at all.
#[inline(always)]
fn enter() -> *mut State {
    let state = state();
    // SAFETY: the state is this thread's.
    unsafe {
        if state.is_null() || (*state).busy != 0 {
            cold_path();
            return enter_slowly(state, depth());
        }
    }
    state
}

/// Notes for a state in which nothing else is under way, and leaves it so.
#[inline(always)]
unsafe fn note(state: *mut State, event: Event<'_>) -> *mut State {
    // SAFETY: the state is this thread's. Handlers of signals, which may come between any two instructions, find that it is busy
    // and leave the writer alone.
    unsafe {
        (*state).busy = depth();
        compiler_fence(Ordering::SeqCst);
        let mut own = state;
        if (*own).writer.at() >= (*own).limit {
            cold_path();
            own = find_room(state);
            if own.is_null() {
                (*state).busy = 0;
                return state;
            }
        }
        // Each arm has its own copy of what writes the event, with or without a stamp.
        match (*own).clocked.load(Ordering::Relaxed) {
            clock::OFF => (*own).writer.put(&event, None),
            clock::CPU => (*own).writer.put(&event, Some(clock::cpu())),
            _ => {
                cold_path();
                put_slowly(own, event);
            }
        }
        compiler_fence(Ordering::SeqCst);
        (*own).busy = 0;
        own
    }
}

/// As [`note`], for what happens so rarely that it is out of line.
#[cold]
#[inline(never)]
unsafe fn note_rarely(state: *mut State, event: Event<'_>) -> *mut State {
    // SAFETY: the caller's.
    unsafe { note(state, event) }
}

/// Where the stream's first stamp is due, or stamps come from memory.
#[cold]
#[inline(never)]
unsafe fn put_slowly(state: *mut State, event: Event<'_>) {
    // SAFETY: the caller's.
    unsafe {
        let stamp = stamp_slowly(state);
        (*state).writer.put(&event, Some(stamp));
    }
}
