//! Notes a call: between the program and the next library, some ten million times a second. What runs each time is inlined into
//! the hooks and takes a few nanoseconds; all else is out of line and cold.
//!
//! A free is noted before the next library gets the block, an allocation after it has given one: so, by their stamps, an address
//! always dies before it is born again, whatever threads do.

use crate::clock;
use crate::local::{Errno, depth, local};
use crate::process::WIPED;
use crate::room::{find_room, put, stamp_slowly};
use crate::signals::has_interrupted;
use crate::state::State;
use crate::thread::begin_thread_of_caller;
use core::ffi::c_void;
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
        let block = call();
        note_late(|| if block.is_null() { failed() } else { event(block as u64) });
        return block;
    }
    // SAFETY: the state is this thread's.
    unsafe {
        (*state).calling = depth();
        let block = call();
        (*state).calling = 0;
        if block.is_null() {
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
        note_late(move || event);
        return call();
    }
    // SAFETY: the state is this thread's; after a fork noting moves it.
    unsafe {
        let state = note(state, event);
        (*state).calling = depth();
        let result = call();
        (*state).calling = 0;
        result
    }
}

/// Notes what calls nothing.
#[inline(always)]
pub fn only(event: Event<'_>) {
    let state = enter();
    if state.is_null() {
        return note_late(move || event);
    }
    // SAFETY: the state is this thread's.
    unsafe { note(state, event) };
}

/// The stamp of a call that begins now; nothing that counts where there is no clock.
#[inline(always)]
pub fn entered() -> Option<u64> {
    // SAFETY: the state is this thread's, if there is one.
    unsafe {
        let state = (*local()).state;
        match if state.is_null() { clock::OFF } else { (*state).clocked.load(Ordering::Relaxed) } {
            clock::OFF => None,
            clock::CPU => Some(clock::cpu()),
            _ => Some(WIPED.process.stamp()),
        }
    }
}

/// The thread's state; null where its call goes unnoticed, or is noted elsewhere.
#[inline(always)]
fn enter() -> *mut State {
    // SAFETY: the state is this thread's.
    unsafe {
        let state = (*local()).state;
        if state.is_null() || (*state).calling != 0 { enter_slowly(state, depth()) } else { state }
    }
}

#[cold]
#[inline(never)]
fn enter_slowly(state: *mut State, now: usize) -> *mut State {
    if state.is_null() {
        return begin_thread_of_caller();
    }
    // SAFETY: the state is this thread's.
    unsafe {
        // Deeper than the call that is under way: the next library has called itself. Otherwise a jump has left it behind.
        if now < (*state).calling {
            return core::ptr::null_mut();
        }
        (*state).calling = 0;
    }
    state
}

#[inline(always)]
unsafe fn note(state: *mut State, event: Event<'_>) -> *mut State {
    // SAFETY: the state is this thread's. Handlers of signals, which may come between any two instructions, find `encoding` set
    // and leave the writer alone.
    unsafe {
        if (*state).encoding != 0 && note_nested(state, event, depth()) {
            return state;
        }
        (*state).encoding = depth();
        compiler_fence(Ordering::SeqCst);
        let mut own = state;
        if (*own).writer.at() >= (*own).limit {
            own = find_room(state);
            if own.is_null() {
                (*state).encoding = 0;
                return state;
            }
        }
        // Each arm has its own copy of what writes the event, with or without a stamp.
        match (*own).clocked.load(Ordering::Relaxed) {
            clock::OFF => (*own).writer.put(&event, None),
            clock::CPU => (*own).writer.put(&event, Some(clock::cpu())),
            _ => put_slowly(own, event),
        }
        (*own).writer.commit();
        compiler_fence(Ordering::SeqCst);
        (*own).encoding = 0;
        own
    }
}

/// As [`note`], for what happens so rarely that it is out of line.
#[cold]
#[inline(never)]
pub unsafe fn note_rarely(state: *mut State, event: Event<'_>) -> *mut State {
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

/// A signal's handler has interrupted the writing of an event: its own goes into another stream. False where a handler has jumped
/// away and nobody writes any more.
#[cold]
#[inline(never)]
unsafe fn note_nested(state: *mut State, event: Event<'_>, now: usize) -> bool {
    // SAFETY: the state is this thread's.
    unsafe {
        if has_interrupted(now, (*state).encoding) {
            note_elsewhere((*state).thread, &event);
            return true;
        }
        // What was being written was never committed. Where the stream stands is what a reader would find.
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
    false
}

/// After a thread's destructors, its C library may still free something.
#[cold]
#[inline(never)]
fn note_late<'a>(event: impl FnOnce() -> Event<'a>) {
    // SAFETY: the thread's own.
    let local = unsafe { &*local() };
    if local.ended && WIPED.process.is_on() {
        note_elsewhere(local.thread_and_one.saturating_sub(1), &event());
    }
}

/// Notes an event in a stream that is nobody's, and leaves it.
fn note_elsewhere(thread: u32, event: &Event<'_>) {
    let errno = Errno::keep();
    if !WIPED.process.is_on() {
        return;
    }
    if let Some(state) = WIPED.states.take(thread) {
        // SAFETY: the state is ours until it is given back.
        unsafe {
            (*state).encoding = depth();
            put(state, event);
            (*state).encoding = 0;
            WIPED.states.give(state);
        }
    }
    drop(errno);
}
