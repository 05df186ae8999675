//! Notes a call: between the program and the next library, some ten million times a second. What runs each time is inlined into
//! the hooks and takes a few nanoseconds; all else is out of line and cold.
//!
//! A free is noted before the next library gets the block, an allocation after it has given one: so, by their stamps, an address
//! always dies before it is born again, whatever threads do.

use crate::clock;
use crate::local::{depth, local};
use crate::process::WIPED;
use crate::signals::{Quiet, has_interrupted};
use crate::state::State;
use crate::{about, file, large, next};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};
use heapmark_wire::capture::{Event, Start};

/// Bytes of events between two looks at the time, without and with stamps. Some 64 events, and a thousand.
const PAUSE_BYTES: [usize; 2] = [256, 4096];
/// How often POSIX promises to run the destructors of a thread.
const ROUNDS: u8 = 4;
/// Room that such a look needs besides the event that caused it.
const LOOK_BYTES: usize = 64;

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
        note_late(|| event);
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
        return note_late(|| event);
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

/// Notes for a state that the caller keeps to itself. False where there is no room.
///
/// # Safety
/// The state is the caller's, and `encoding` is set.
#[cold]
#[inline(never)]
pub unsafe fn put(state: *mut State, event: &Event<'_>) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if (*state).writer.at() >= (*state).limit && !make_room(state) {
            return false;
        }
        let clocked = (*state).clocked.load(Ordering::Relaxed) != clock::OFF;
        let stamp = clocked.then(|| stamp_slowly(state));
        (*state).writer.put(event, stamp);
        (*state).writer.commit();
    }
    true
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

/// The first stamp of a stream, which says that it has stamps from now on; or one of the counter in memory.
#[cold]
#[inline(never)]
unsafe fn stamp_slowly(state: *mut State) -> u64 {
    let process = &WIPED.process;
    // SAFETY: the state is the caller's, and room for an event is room for this one, too: none takes half of it.
    unsafe {
        if (*state).clocked.load(Ordering::Relaxed) == clock::WANTED {
            (*state).writer.put(&Event::ClockedOn, Some(process.stamp()));
            (*state).clocked.store(clock::kind(), Ordering::Relaxed);
        }
    }
    process.stamp()
}

/// Room for an event in the state, or, in a child that a fork has made, in another. Null where nothing is recorded any more.
#[cold]
#[inline(never)]
unsafe fn find_room(state: *mut State) -> *mut State {
    let _errno = Errno::keep();
    // SAFETY: the state is this thread's.
    unsafe {
        if (*state).number_and_one != 0 {
            return if make_room(state) { state } else { core::ptr::null_mut() };
        }
        // Wiped: this is a child, and its only thread. It forgets whose child it is.
        let local = &mut *local();
        (local.state, local.thread_and_one) = (core::ptr::null_mut(), 0);
        let own = begin_thread_of_caller();
        if !own.is_null() {
            (*own).encoding = depth();
        }
        own
    }
}

/// Looks at the time; at the end of a chunk goes on in the next. False where recording is over.
///
/// # Safety
/// The state is the caller's, and `encoding` is set.
pub unsafe fn make_room(state: *mut State) -> bool {
    let process = &WIPED.process;
    if process.is_due() {
        process.stop("duration");
    }
    // SAFETY: the caller's.
    unsafe {
        (*state).limit = core::ptr::null_mut();
        if !process.is_on() {
            return false;
        }
        let clocked = (*state).clocked.load(Ordering::Relaxed) != clock::OFF;
        let writer = &mut (*state).writer;
        if writer.at().is_null() || writer.at().wrapping_add(LOOK_BYTES) >= writer.last_place() {
            let _quiet = Quiet::begin();
            let Some(chunk) = process.chunk() else { return false };
            if !writer.at().is_null() {
                writer.seal();
                file::unmap(writer.chunk());
            }
            // Where the stream is to be clocked, a fresh chunk says so itself.
            if clocked {
                (*state).clocked.store(clock::kind(), Ordering::Relaxed);
            }
            let start = Start {
                thread: (*state).thread,
                stream: (*state).number_and_one - 1,
                number: (*state).chunks,
                stamp: process.stamp(),
                ns: process.ns(),
                clocked,
                first_event: 0,
            };
            writer.begin(chunk, &start);
            (*state).chunks += 1;
        } else if !clocked && clock::kind() == clock::CPU {
            writer.put(&Event::Clock, Some(process.stamp()));
            writer.commit();
        } else if clock::kind() == clock::MEMORY {
            writer.put(&Event::Time { ns: process.ns() }, clocked.then(|| stamp_slowly(state)));
            writer.commit();
        }
        let writer = &(*state).writer;
        let pause = writer.at().wrapping_add(PAUSE_BYTES[usize::from(clocked)]);
        (*state).limit = pause.min(writer.last_place());
    }
    true
}

/// Seals the state's chunk; nothing is put into it any more.
///
/// # Safety
/// The state is the caller's.
pub unsafe fn seal(state: *mut State) {
    // SAFETY: the caller's.
    unsafe {
        (*state).limit = core::ptr::null_mut();
        if !(*state).writer.at().is_null() {
            (*state).writer.seal();
        }
    }
}

/// Gives the calling thread a state. Null where nothing is recorded, where it has ended, or while the process is still being set up.
pub fn begin_thread_of_caller() -> *mut State {
    let _errno = Errno::keep();
    // SAFETY: the thread's own.
    let local = unsafe { &mut *local() };
    let process = &WIPED.process;
    if !next::find() || local.ended || !process.start() {
        return core::ptr::null_mut();
    }
    if local.thread_and_one == 0 {
        local.thread_and_one = process.threads.fetch_add(1, Ordering::Relaxed) + 1;
    }
    let _quiet = Quiet::begin();
    match WIPED.states.take(local.thread_and_one - 1) {
        Some(state) => own(state),
        None => core::ptr::null_mut(),
    }
}

/// The state is the calling thread's until it ends.
pub fn own(state: *mut State) -> *mut State {
    // SAFETY: both are the thread's own.
    unsafe {
        (*local()).state = state;
        (*state).rounds = 0;
        if let Some(key) = key() {
            libc::pthread_setspecific(key, state.cast());
        }
    }
    state
}

/// The key whose destructor tells us that a thread ends.
fn key() -> Option<libc::pthread_key_t> {
    static KEY_AND_ONE: AtomicU32 = AtomicU32::new(0);
    if KEY_AND_ONE.load(Ordering::Relaxed) == 0 {
        let mut key = 0;
        // SAFETY: the first thread comes here before there is a second.
        if unsafe { libc::pthread_key_create(&mut key, Some(end_thread)) } == 0 {
            KEY_AND_ONE.store(key + 1, Ordering::Relaxed);
        }
    }
    KEY_AND_ONE.load(Ordering::Relaxed).checked_sub(1)
}

/// The destructors of a thread run in rounds, as long as there is something to destroy. Others may still allocate and free: we
/// go last.
extern "C" fn end_thread(state: *mut c_void) {
    let state = state.cast::<State>();
    // SAFETY: the key's value is the thread's state, unless a fork has wiped it.
    unsafe {
        let local = &mut *local();
        if local.state != state {
            return;
        }
        (*state).rounds += 1;
        if (*state).rounds < ROUNDS {
            own_again(state);
            return;
        }
        let state = note_rarely(state, Event::ThreadExit);
        (local.state, local.ended) = (core::ptr::null_mut(), true);
        if (*state).number_and_one != 0 {
            WIPED.states.give(state);
        }
    }
}

fn own_again(state: *mut State) {
    if let Some(key) = key() {
        // SAFETY: a key of ours.
        unsafe { libc::pthread_setspecific(key, state.cast()) };
    }
}

/// The process ends as it should: what is known now is written down, and the chunks that nobody writes to are sealed.
pub fn end_process() {
    let _errno = Errno::keep();
    let process = &WIPED.process;
    if !process.is_on() {
        return;
    }
    large::tell_of_all(&WIPED.large);
    process.tell(about::peak);
    process.stop("exit");
    // SAFETY: the thread's own.
    unsafe {
        let state = (*local()).state;
        if !state.is_null() {
            seal(state);
        }
    }
    WIPED.states.seal_idle();
}

/// `errno` as it was: a program does not expect that `free` changes it.
pub struct Errno(i32);

impl Errno {
    pub fn keep() -> Errno {
        // SAFETY: the thread's own.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: the thread's own.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
