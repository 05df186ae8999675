//! A state is what a thread writes with, and what its stream is made of. One thread at a time owns it; when that ends, the next
//! one that comes takes it up. The idle ones lie on a stack without a lock.

use crate::chunk_space;
use crate::clock;
use crate::local::Errno;
use crate::process::{Process, WIPED};
use crate::reentry::recover;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use heapmark_wire::capture::{Event, Writer};

/// Threads that can live at a time. What nobody uses is address space only.
const MOST_STATES: usize = 1 << 16;

/// Of so many states it is asked whether their threads are still there, before there is a further one.
const ASKED: u32 = 4;

/// Zeros are a state that nobody has, with no chunk; and what a child finds after a fork.
#[repr(C, align(128))]
pub struct State {
    pub writer: Writer,
    /// From here on the next event needs room made for it.
    pub limit: *mut u8,
    /// The witness of the call that is writing an event; 0 if none is.
    pub writing: usize,
    /// The witness of the call of the next library that is under way; 0 where none is.
    pub calling: usize,
    /// One of `clock`'s kinds. Others may set it to `WANTED`.
    pub clocked: AtomicU8,
    /// How often the thread's destructors have run.
    pub rounds: u8,
    /// Whose events come now.
    pub thread: u32,
    /// Its number and one.
    pub number_and_one: u32,
    /// Chunks so far.
    pub chunks: u32,
    /// The kernel's number for its thread; 0 where it has none.
    pub task: AtomicU32,
    /// Calls that the next library made of itself.
    pub inner: u64,
    /// Of these, those since so many events.
    pub inner_since: (u64, u64),
    /// The idle state below it and one.
    below: AtomicU32,
    /// What a new thread is to run.
    pub start: Option<extern "C" fn(*mut c_void) -> *mut c_void>,
    pub argument: *mut c_void,
}

impl State {
    /// Begins to write, with that witness, if what is under way is what it was: in one instruction, since a handler may come between
    /// two, write too, and be left for another stack in the middle of it. Gives what was under way.
    ///
    /// # Safety
    /// The state is this thread's.
    #[inline(always)]
    pub unsafe fn claim(this: *mut State, was: usize, witness: usize) -> usize {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the caller's. Other threads write nothing there, so nothing has to be locked.
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
        // SAFETY: the caller's.
        unsafe {
            let writing = core::sync::atomic::AtomicUsize::from_ptr(&raw mut (*this).writing);
            match writing.compare_exchange(was, witness, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(found) | Err(found) => found,
            }
        }
    }

    /// Its events have stamps from now on.
    pub fn want_clock(&self) {
        let _ = self.clocked.compare_exchange(clock::OFF, clock::WANTED, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// All states.
#[repr(C)]
pub struct States {
    /// How many somebody ever had.
    used: AtomicU32,
    /// The top idle state and one; above it a count of changes, so that nobody takes one stack for another.
    idle: AtomicU64,
    /// Whose thread is asked for next.
    asked: AtomicU32,
    all: core::cell::UnsafeCell<[State; MOST_STATES]>,
}

impl States {
    /// Zeros.
    pub const fn none() -> States {
        States {
            used: AtomicU32::new(0),
            idle: AtomicU64::new(0),
            asked: AtomicU32::new(0),
            // SAFETY: zeros are a valid state.
            all: core::cell::UnsafeCell::new(unsafe { core::mem::zeroed() }),
        }
    }

    fn get(&self, number: u32) -> *mut State {
        self.all.get().cast::<State>().wrapping_add(number as usize)
    }

    /// From now on events of all streams have stamps. Before there is a second stream, the first is the only one.
    pub fn clock_all(&self, process: &Process) {
        if !process.clocked.swap(true, Ordering::SeqCst) {
            // SAFETY: the flag is atomic, and the state is there.
            unsafe { (*self.get(0)).want_clock() };
            fence(Ordering::SeqCst);
        }
    }

    fn pop(&self) -> Option<*mut State> {
        let mut top = self.idle.load(Ordering::Acquire);
        loop {
            let number = (top as u32).checked_sub(1)?;
            let state = self.get(number);
            // SAFETY: states stay; a value that somebody changes meanwhile is thrown away with the exchange.
            let below = unsafe { (*state).below.load(Ordering::Relaxed) };
            match self.exchange(top, below) {
                Ok(()) => return Some(state),
                Err(now) => top = now,
            }
        }
    }

    /// Gives a state back.
    ///
    /// # Safety
    /// It is the caller's, and not used afterwards.
    pub unsafe fn give(&self, state: *mut State) {
        let mut top = self.idle.load(Ordering::Acquire);
        // SAFETY: the caller's.
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
        self.idle.compare_exchange_weak(top, new, Ordering::AcqRel, Ordering::Acquire).map(drop)
    }

    fn fresh(&self) -> Option<*mut State> {
        let number = self.used.fetch_add(1, Ordering::AcqRel);
        if number as usize >= MOST_STATES {
            self.used.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        let state = self.get(number);
        // SAFETY: nobody else has it.
        unsafe { (*state).number_and_one = number + 1 };
        Some(state)
    }

    /// A state whose thread has gone without a word, by the kernel's own `exit`.
    #[inline(never)]
    fn left_behind(&self) -> Option<*mut State> {
        let used = self.used.load(Ordering::Acquire).min(MOST_STATES as u32);
        for _ in 0..ASKED.min(used) {
            let state = self.get(self.asked.fetch_add(1, Ordering::Relaxed) % used);
            // SAFETY: the number is atomic; who changes it to 0 has the state.
            unsafe {
                let task = (*state).task.load(Ordering::Acquire);
                let is_mine = || (*state).task.compare_exchange(task, 0, Ordering::Acquire, Ordering::Relaxed).is_ok();
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

    /// A state for a thread, ready for its next event. `None` where there is none, or no room in the file.
    pub fn take(&self, thread: u32) -> Option<*mut State> {
        let process = &WIPED.process;
        let idle = self.pop();
        let left = if idle.is_none() { self.left_behind() } else { None };
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

    /// The events of each stream.
    pub fn events(&self) -> impl Iterator<Item = (u32, u64)> {
        let used = (self.used.load(Ordering::Acquire) as usize).min(MOST_STATES);
        // SAFETY: states stay.
        (0..used as u32).map(|number| (number, unsafe { Writer::events(&raw const (*self.get(number)).writer) }))
    }

    /// Calls that the next library made of itself, in all threads.
    pub fn inner(&self) -> u64 {
        let used = self.used.load(Ordering::Acquire).min(MOST_STATES as u32);
        // SAFETY: a number that its thread may be changing; it is told of, and nothing depends on it.
        (0..used).map(|number| unsafe { (&raw const (*self.get(number)).inner).read_volatile() }).sum()
    }

    /// Seals the chunks of the idle ones, which stay with us: the process ends.
    pub fn seal_idle(&self) {
        while let Some(state) = self.pop() {
            // SAFETY: the state is ours.
            unsafe { chunk_space::seal(state) };
        }
    }
}

/// There is no thread of this number any more.
fn is_gone(task: u32) -> bool {
    let _errno = Errno::keep();
    // SAFETY: signal 0 is none; only whether it could be sent is asked.
    unsafe { libc::syscall(libc::SYS_tkill, task, 0) == -1 && *libc::__errno_location() == libc::ESRCH }
}
