//! A state holds what a thread needs to write its stream. One thread at a time owns it; when that
//! ends, the next new thread takes it over. Idle states form a lock-free stack.

use crate::chunk_space::{self, recover};
use crate::clock;
use crate::layout::{MOST_STATES, ProcessState, StreamState, StreamStates, WIPED};
use crate::local::Errno;
use core::sync::atomic::{Ordering, fence};
use heapmark_wire::capture::{Event, Writer};

/// How many states are checked for a vanished thread before a new state is used.
const ASKED: u32 = 4;

impl StreamState {
    /// Begins to write with this witness if the present one is `was`. Takes one instruction:
    /// between two, a signal handler could run, write too, and be left for another stack in the
    /// middle. Returns the witness found.
    ///
    /// # Safety
    /// The state is this thread's.
    #[inline(always)]
    pub unsafe fn claim(this: *mut StreamState, was: usize, witness: usize) -> usize {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as the caller guarantees. Other threads do not write there, so no lock prefix is
        // needed.
        unsafe {
            let found;
            core::arch::asm!(
                "cmpxchg qword ptr [{writing}], {witness}",
                writing = in(reg) &raw mut (*this).writing,
                witness = in(reg) witness,
                inout("rax") was => found,
                options(nostack),
            );
            found
        }
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: guaranteed by the caller.
        unsafe {
            let writing = core::sync::atomic::AtomicUsize::from_ptr(&raw mut (*this).writing);
            match writing.compare_exchange(was, witness, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(found) | Err(found) => found,
            }
        }
    }

    /// Gives the stream's events stamps from now on.
    pub fn want_clock(&self) {
        let _ = self.clocked.compare_exchange(
            clock::OFF,
            clock::WANTED,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }
}

impl StreamStates {
    fn get(&self, number: u32) -> *mut StreamState {
        self.all
            .get()
            .cast::<StreamState>()
            .wrapping_add(number as usize)
    }

    /// Gives the events of all streams stamps from now on. Before there is a second stream, the
    /// first is the only one.
    pub fn clock_all(&self, process: &ProcessState) {
        if !process.clocked.swap(true, Ordering::SeqCst) {
            // SAFETY: the flag is atomic, and the state exists.
            unsafe { (*self.get(0)).want_clock() };
            fence(Ordering::SeqCst);
        }
    }

    fn pop(&self) -> Option<*mut StreamState> {
        let mut top = self.idle.load(Ordering::Acquire);
        loop {
            let number = (top as u32).checked_sub(1)?;
            let state = self.get(number);
            // SAFETY: states stay; if another thread changes the value meanwhile, the exchange
            // fails and the value is dropped.
            let below = unsafe { (*state).below.load(Ordering::Relaxed) };
            match self.exchange(top, below) {
                Ok(()) => return Some(state),
                Err(now) => top = now,
            }
        }
    }

    /// Returns a state to the idle ones.
    ///
    /// # Safety
    /// The state is the caller's, and not used afterwards.
    pub unsafe fn give(&self, state: *mut StreamState) {
        let mut top = self.idle.load(Ordering::Acquire);
        // SAFETY: guaranteed by the caller.
        unsafe {
            (*state).task.store(0, Ordering::Relaxed);
            loop {
                (*state).below.store(top as u32, Ordering::Relaxed);
                match self.exchange(top, (*state).number_and_one) {
                    Ok(()) => return,
                    Err(now) => top = now,
                }
            }
        }
    }

    fn exchange(&self, top: u64, number_and_one: u32) -> Result<(), u64> {
        let new = ((top >> 32).wrapping_add(1) << 32) | u64::from(number_and_one);
        self.idle
            .compare_exchange_weak(top, new, Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
    }

    fn fresh(&self) -> Option<*mut StreamState> {
        let number = self.used.fetch_add(1, Ordering::AcqRel);
        if number as usize >= MOST_STATES {
            self.used.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let state = self.get(number);
        // SAFETY: no other thread has this state.
        unsafe { (*state).number_and_one = number + 1 };
        Some(state)
    }

    /// Returns a state whose thread has ended without notice, by a direct `exit` system call.
    #[inline(never)]
    fn left_behind(&self) -> Option<*mut StreamState> {
        let used = self.used.load(Ordering::Acquire).min(MOST_STATES as u32);
        for _ in 0..ASKED.min(used) {
            let state = self.get(self.asked.fetch_add(1, Ordering::Relaxed) % used);
            // SAFETY: the number is atomic; the thread that changes it to 0 has the state.
            unsafe {
                let task = (*state).task.load(Ordering::Acquire);
                let is_mine = || {
                    (*state)
                        .task
                        .compare_exchange(task, 0, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok()
                };
                if task != 0 && is_gone(task) && is_mine() {
                    if (*state).writing != 0 {
                        recover(state);
                    }
                    ((*state).writing, (*state).calling) = (0, 0);
                    return Some(state);
                }
            }
        }
        None
    }

    /// Returns a state for a thread, ready for its next event. `None` if there is none, or no space
    /// in the file.
    pub fn take(&self, thread: u32) -> Option<*mut StreamState> {
        let process = &WIPED.process;
        let idle = self.pop();
        let left = if idle.is_none() {
            self.left_behind()
        } else {
            None
        };
        let Some(state) = idle.or(left).or_else(|| self.fresh()) else {
            process.drop_events(1);
            return None;
        };
        // SAFETY: the state is ours.
        unsafe {
            if (*state).number_and_one > 1 {
                self.clock_all(process);
            }
            if process.clocked.load(Ordering::SeqCst) {
                (*state).want_clock();
            }
            if left.is_some() {
                chunk_space::put(state, &Event::ThreadExit);
            }
            let was = core::mem::replace(&mut (*state).thread, thread);
            let fresh = (*state).writer.at().is_null();
            let ready = if fresh || was == thread {
                !fresh || chunk_space::make_room(state)
            } else {
                chunk_space::put(state, &Event::Begin { thread })
            };
            if !ready {
                self.give(state);
                return None;
            }
            Some(state)
        }
    }

    /// Returns the number of events of each stream.
    pub fn events(&self) -> impl Iterator<Item = (u32, u64)> {
        let used = (self.used.load(Ordering::Acquire) as usize).min(MOST_STATES);
        (0..used as u32).map(|number| {
            // SAFETY: states stay.
            (number, unsafe {
                Writer::events(&raw const (*self.get(number)).writer)
            })
        })
    }

    /// Returns the number of calls that the next library made to itself, in all threads.
    pub fn inner(&self) -> u64 {
        let used = self.used.load(Ordering::Acquire).min(MOST_STATES as u32);
        // SAFETY: a number that its thread may be changing; it is only reported, and nothing
        // depends on it.
        (0..used)
            .map(|number| unsafe { (&raw const (*self.get(number)).inner).read_volatile() })
            .sum()
    }

    /// Seals the chunks of the idle states and keeps these states, because the process ends.
    pub fn seal_idle(&self) {
        while let Some(state) = self.pop() {
            // SAFETY: the state is ours.
            unsafe { chunk_space::seal(state) };
        }
    }
}

/// Returns whether the thread with this number no longer exists.
fn is_gone(task: u32) -> bool {
    let _errno = Errno::keep();
    // SAFETY: signal 0 sends nothing; only whether it could be sent is asked.
    unsafe {
        libc::syscall(libc::SYS_tkill, task, 0) == -1 && *libc::__errno_location() == libc::ESRCH
    }
}
