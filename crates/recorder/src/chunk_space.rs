//! Makes space for the next event: in the rest of a chunk after a time check, or in the next chunk.
//! Neither happens often.

use crate::clock;
use crate::file;
use crate::layout::{StreamState, WIPED};
use crate::signals::Quiet;
use core::sync::atomic::Ordering;
use heapmark_wire::capture::{
    CHUNK_BYTES, Event, FIRST_BYTES, MOST_EVENT_BYTES, MOST_OPEN_BYTES, Start,
};

/// Bytes of events between two time checks: without stamps for some 128 events, with stamps for a
/// thousand.
const PAUSE_BYTES: [usize; 2] = [512, 4096];
/// Bytes that a time check needs besides the event that caused it.
const LOOK_BYTES: usize = 64;

/// Each time check seals the events written so far.
const _: () = assert!(LOOK_BYTES + PAUSE_BYTES[1] + MOST_EVENT_BYTES <= MOST_OPEN_BYTES);

/// Notes an event in a state that only the caller uses. Returns false if there is no space.
///
/// # Safety
/// The state is the caller's, and its witness is set if another call could find the state.
#[cold]
pub unsafe fn put(state: *mut StreamState, event: &Event<'_>) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let has_room = (*state).writer.at() < (*state).limit || make_room(state);
        if has_room {
            put_here(state, event);
        }
        has_room
    }
}

/// Notes an event as [`put`] does, given that there is space.
///
/// # Safety
/// As for [`put`].
#[cold]
#[inline(never)]
pub unsafe fn put_here(state: *mut StreamState, event: &Event<'_>) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let clocked = (*state).clocked.load(Ordering::Relaxed) != clock::OFF;
        let stamp = clocked.then(|| stamp_slowly(state));
        (*state).writer.put(event, stamp);
    }
}

/// Returns the first stamp of a stream, after marking that stamps follow from now on; or a stamp from the
/// counter in memory.
#[cold]
#[inline(never)]
pub unsafe fn stamp_slowly(state: *mut StreamState) -> u64 {
    let process = &WIPED.process;
    // SAFETY: the state is the caller's, and space for an event suffices for this one, too: none
    // takes half of it.
    unsafe {
        if (*state).clocked.load(Ordering::Relaxed) == clock::WANTED {
            (*state)
                .writer
                .put(&Event::ClockedOn, Some(process.stamp()));
            (*state).clocked.store(clock::kind(), Ordering::Relaxed);
        }
    }
    process.stamp()
}

/// Checks the time; at the end of a chunk, continues in the next. Returns false if recording is
/// over.
///
/// # Safety
/// As for [`put`].
pub unsafe fn make_room(state: *mut StreamState) -> bool {
    let process = &WIPED.process;
    if process.is_due() {
        process.stop("duration");
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        (*state).limit = core::ptr::null_mut();
        if !process.is_on() {
            return false;
        }
        let clocked = (*state).clocked.load(Ordering::Relaxed) != clock::OFF;
        let writer = &mut (*state).writer;
        let begun = !writer.at().is_null();
        if begun {
            writer.seal(false);
        }
        if !begun || writer.at().wrapping_add(LOOK_BYTES) >= writer.last_place() {
            let _quiet = Quiet::begin();
            // A stream's first chunk is small: most streams belong to short-lived threads and small processes.
            let Some(chunk) = process.chunk(if begun { CHUNK_BYTES } else { FIRST_BYTES }) else {
                return false;
            };
            if begun {
                writer.seal(true);
                file::unmap(writer.chunk().cast());
            }
            // If the stream is to be clocked, a fresh chunk's header marks it.
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
                place: chunk.place,
                bytes: chunk.bytes,
            };
            writer.begin(chunk.at, &start);
            process.begun_chunk();
            (*state).chunks += 1;
        } else if !clocked && clock::kind() == clock::CPU {
            writer.put(&Event::Clock, Some(process.stamp()));
        } else if clock::kind() == clock::MEMORY {
            writer.put(
                &Event::Time { ns: process.ns() },
                clocked.then(|| stamp_slowly(state)),
            );
        }
        let writer = &(*state).writer;
        let pause = writer.at().wrapping_add(PAUSE_BYTES[usize::from(clocked)]);
        (*state).limit = pause.min(writer.last_place());
    }
    true
}

/// Seals the state's chunk; nothing more is written to it. If a signal handler ends the process in
/// the middle of an event, the chunk stays open, so that a reader leaves out the torn event.
///
/// # Safety
/// The state is the caller's.
pub unsafe fn seal(state: *mut StreamState) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        (*state).limit = core::ptr::null_mut();
        if (*state).writing == 0 && !(*state).writer.at().is_null() {
            (*state).writer.seal(true);
        }
    }
}

/// Repairs the writer after a possibly torn event. The stream then ends at the place where a reader
/// would find its end.
///
/// # Safety
/// The state is the caller's, and nothing else writes to it.
pub unsafe fn recover(state: *mut StreamState) {
    // SAFETY: guaranteed by the caller.
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
