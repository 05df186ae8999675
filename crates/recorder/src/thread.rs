//! Threads of the recorded program: each begins at its first event and ends with its destructors. Also the rare events,
//! which are noted out of line. Both stand together because each needs the other: a rare event may be the first one of its
//! thread, or of the process; whatever begins a process registers functions for the ends of threads and for forks; and
//! these note rare events.

use crate::chunk_space::{make_room, put, put_here};
use crate::layout::{StreamState, WIPED};
use crate::local::{Errno, depth, local, state};
use crate::next::NextFunctions;
use crate::reentry::{may_be_inner, note_elsewhere, note_streamless, take_over};
use crate::signals::{self, Quiet, is_handler};
use crate::witness::{Witness, stands};
use crate::{clock, interposers, next, process};
use core::ffi::c_void;
use core::hint::cold_path;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering, compiler_fence};
use heapmark_wire::capture::Event;

/// How many rounds of a thread's destructors POSIX guarantees.
const ROUNDS: u8 = 4;

const NOT_YET: u8 = 0;
const UNDER_WAY: u8 = 1;
const DONE: u8 = 2;
static SET_UP: AtomicU8 = AtomicU8::new(NOT_YET);

/// Finds the next definitions, and all else that is determined once per process. Returns false
/// while that is under way: the search itself may allocate. Not inlined, so that not every hook has
/// a copy.
#[inline(never)]
pub fn set_up() -> bool {
    match SET_UP.load(Ordering::Acquire) {
        DONE => return true,
        UNDER_WAY => return false,
        _ if !next::find() => return false,
        _ => SET_UP.store(UNDER_WAY, Ordering::Relaxed),
    }
    interposers::find();
    clock::find();
    signals::find();
    if process::configure() {
        // SAFETY: the functions stay loaded. If registering fails, children inherit no blocks from
        // their parents, which is reported for each.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), None) };
    }
    SET_UP.store(DONE, Ordering::Release);
    true
}

/// Returns the next definitions, for functions that may be called before all others: finds them if
/// necessary.
pub fn found() -> &'static NextFunctions {
    set_up();
    next::next()
}

/// Gives the calling thread a state in which this witness is writing. Returns null if nothing is
/// recorded, if the thread has ended, or while the process is still being set up.
pub fn begin_thread_of_caller(witness: usize) -> *mut StreamState {
    let _errno = Errno::keep();
    // SAFETY: the variable belongs to the calling thread.
    let local = unsafe { &mut *local() };
    let process = &WIPED.process;
    if !set_up() || local.ended || !process.start() {
        return ptr::null_mut();
    }
    if local.thread_and_one == 0 {
        local.thread_and_one = process.threads.fetch_add(1, Ordering::Relaxed) + 1;
    }
    let _quiet = Quiet::begin();
    match WIPED.states.take(local.thread_and_one - 1) {
        Some(state) => {
            // SAFETY: the state is ours.
            unsafe {
                (*state).writing = witness;
                own(state);
                if (*state).task.load(Ordering::Relaxed) == libc::getpid() as u32 {
                    put(state, &Event::Main);
                }
            }
            state
        }
        None => ptr::null_mut(),
    }
}

/// Begins the only thread of a forked child, whose state is wiped, as [`begin_thread_of_caller`]
/// does. The thread's number in the parent is forgotten.
pub fn begin_child(witness: usize) -> *mut StreamState {
    // SAFETY: the variable belongs to the calling thread.
    unsafe { ((*local()).state, (*local()).thread_and_one) = (ptr::null_mut(), 0) };
    begin_thread_of_caller(witness)
}

/// Makes the state the calling thread's until it ends.
pub fn own(state: *mut StreamState) -> *mut StreamState {
    // SAFETY: both are the thread's own.
    unsafe {
        (*local()).state = state;
        (*state).rounds = 0;
        (*state)
            .task
            .store(libc::syscall(libc::SYS_gettid) as u32, Ordering::Release);
        if let Some(key) = key() {
            libc::pthread_setspecific(key, state.cast());
        }
    }
    state
}

/// Returns the key whose destructor is called when a thread ends.
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

/// Ends a thread. The destructors of a thread run in rounds, as long as there is something to
/// destroy. Others may still allocate and free, so this one runs last.
extern "C" fn end_thread(state: *mut c_void) {
    let state = state.cast::<StreamState>();
    // SAFETY: the key's value is the thread's state, unless a fork has wiped it.
    unsafe {
        let local = local();
        if (*local).state != state {
            return;
        }
        (*state).rounds += 1;
        if (*state).rounds < ROUNDS {
            own_again(state);
            return;
        }
        record_rare(&Event::ThreadExit);
        // The state is read after the event is noted: after a fork, noting an event changes the state.
        let state = core::mem::replace(&mut (*local).state, ptr::null_mut());
        (*local).ended = true;
        if !state.is_null() && (*state).number_and_one != 0 {
            WIPED.states.give(state);
        }
    }
}

fn own_again(state: *mut StreamState) {
    if let Some(key) = key() {
        // SAFETY: a key of ours.
        unsafe { libc::pthread_setspecific(key, state.cast()) };
    }
}

/// Stores the moment of a fork: a child inherits the blocks that are live now. The moment
/// identifies the fork, since process numbers are reused. The C library calls this in all functions
/// that fork, after the program's own handlers.
extern "C" fn before_fork() {
    let moment = clock::now_ns();
    record_rare(&Event::Forking { moment });
    // SAFETY: the variable belongs to the calling thread.
    unsafe { (*local()).forking = moment };
}

/// Resets the moment. Forks without the C library have none.
extern "C" fn after_fork() {
    // SAFETY: the variable belongs to the calling thread.
    unsafe { (*local()).forking = 0 };
}

/// The stand-in for a thread's state if a signal handler makes the call, and has interrupted a call of the next
/// library.
pub const INTERRUPTING: *mut StreamState = ptr::without_provenance_mut(1);

/// Returns the thread's state; null if it has none, or if the next library made the call itself.
#[inline(always)]
pub fn enter() -> *mut StreamState {
    let state = state();
    // SAFETY: the state is this thread's.
    unsafe {
        if state.is_null() || (*state).calling != 0 {
            cold_path();
            return enter_slowly(state, depth());
        }
    }
    state
}

/// Returns the thread's state if it gets one now, or if the call that is marked as under way no
/// longer is. Returns null if the next library has called itself.
#[cold]
#[inline(never)]
fn enter_slowly(state: *mut StreamState, depth: usize) -> *mut StreamState {
    if state.is_null() {
        return begin_thread_of_caller(0);
    }
    // SAFETY: the state is this thread's.
    unsafe {
        let then = (*state).calling;
        if depth < then && stands(then, depth) {
            if is_handler(depth, then) {
                return INTERRUPTING;
            }
            if may_be_inner(&mut *state) {
                return ptr::null_mut();
            }
        }
        (*state).calling = 0;
    }
    state
}

/// Makes space for an event in the state; or, in a forked child, in another state, to which the
/// witness is passed. Returns null if recording is over.
#[cold]
#[inline(never)]
pub unsafe fn find_room(state: *mut StreamState, witness: usize) -> *mut StreamState {
    let _errno = Errno::keep();
    // SAFETY: the state is this thread's.
    unsafe {
        if (*state).number_and_one != 0 {
            return if make_room(state) {
                state
            } else {
                core::ptr::null_mut()
            };
        }
        (*state).writing = 0;
        begin_child(witness)
    }
}

/// Records a rare event as [`record`](crate::record::record) does, but out of line.
#[cold]
#[inline(never)]
pub fn record_rare(event: &Event<'_>) {
    let state = match enter() {
        INTERRUPTING => state(),
        other => other,
    };
    if state.is_null() {
        return note_streamless(event);
    }
    // SAFETY: the state is this thread's.
    unsafe { note_rarely(state, event) };
}

/// Notes an event as `note` of the module `record` does, but out of line.
#[cold]
#[inline(never)]
pub unsafe fn note_rarely(state: *mut StreamState, event: &Event<'_>) {
    let witness = Witness::new();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let witness = witness.stand();
        if StreamState::claim(state, 0, witness) != 0 && !take_over(state, witness) {
            return note_elsewhere((*state).thread, event);
        }
        let present_state = match (*state).writer.at() >= (*state).limit {
            true => find_room(state, witness),
            false => state,
        };
        if present_state.is_null() {
            (*state).writing = 0;
            return;
        }
        put_here(present_state, event);
        compiler_fence(Ordering::SeqCst);
        (*present_state).writing = 0;
    }
}
