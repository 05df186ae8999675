//! Events as bytes. The first number of an event has its operation in the low three bits and its
//! most important field above; rare events share one operation. An object is named by its distance
//! from the last named object of the same thread: objects are freed in runs, forwards or backwards,
//! so the distance is mostly one.

mod bytes;
mod read;
mod write;

pub use bytes::{put_number, take_number};

use super::event::Token;
use super::fault::{Result, impossible};
use super::grown::grown;
use super::layout::checked_thread;
use heapmark_wire::varint;

const OPERATION_BITS: u32 = 3;
const MALLOC: u64 = 0;
const FREE: u64 = 1;
const SWITCH: u64 = 2;
const NEW: u64 = 3;
const REALLOC: u64 = 4;
const FREE_SIZED: u64 = 5;
const FREE_REMOTE: u64 = 6;
const RARE: u64 = 7;

// The numbers of rare events.
const CALLOC: u64 = 0;
const FREE_NULL: u64 = 1;
const CLOCK: u64 = 2;
const ALIGNED: u64 = 3;
const REALLOC_REMOTE: u64 = 4;
const FREE_SIZED_REMOTE: u64 = 5;
const FREE_ALIGNED_SIZED: u64 = 6;
const REALLOC_FREE: u64 = 7;
const USABLE_SIZE: u64 = 8;
const FAILED: u64 = 9;
const THREAD_START: u64 = 10;
const THREAD_EXIT: u64 = 11;
const FORK: u64 = 12;
const TOUCH: u64 = 13;
const MARK: u64 = 14;
const INHERIT: u64 = 15;
const DROPPED: u64 = 16;
const END: u64 = 17;
const FREE_ALIGNED: u64 = 18;
// Events added in version 2 of the format.
const MAIN: u64 = 19;
const MALLOPT: u64 = 20;
const TRIM: u64 = 21;
const INFO: u64 = 22;
const TOUCH_SPREAD: u64 = 23;

/// Sizes below this fit above an operation. No machine has so much memory, so no call that asked
/// for more succeeded.
const MOST_SIZE: u64 = 1 << (64 - OPERATION_BITS);
/// Longest mark in bytes; a longer one is cut.
const MOST_MARK: usize = 4096;
/// The most allocations of a thread: limited by [`Token::packed`].
const MOST_INDEX: u64 = 1 << 48;
/// The most bytes of an event, including the switch of threads before it.
pub const MOST_EVENT: usize = MOST_MARK + 8 * varint::MOST_BYTES;

/// The state of a thread after the events so far; writer and reader both keep track of it.
#[derive(Default)]
struct Thread {
    /// The number of objects that the thread has allocated.
    allocations: u64,
    /// The thread's object that another thread named last, and the one that the thread itself named last.
    last: [u64; 2],
}

/// The state after all earlier events, which writer and reader both keep.
#[derive(Default)]
pub struct CodecState {
    thread: u32,
    threads: Vec<Thread>,
    clock_ns: u64,
}

impl CodecState {
    /// Returns the number of threads that have been named so far.
    pub fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Returns the number of objects that have been allocated so far.
    pub fn allocations(&self) -> u64 {
        self.threads.iter().map(|thread| thread.allocations).sum()
    }

    fn switch(&mut self, thread: u64) -> Result<()> {
        self.thread = checked_thread(thread)?;
        grown(&mut self.threads, self.thread as usize);
        Ok(())
    }

    fn born(&mut self) -> Result<()> {
        let thread = &mut self.threads[self.thread as usize];
        if thread.allocations == MOST_INDEX {
            return impossible(format!("more than {MOST_INDEX} allocations of one thread"));
        }
        thread.allocations += 1;
        Ok(())
    }

    /// Returns the object of `owner` at this distance from the owner's object that was named last.
    fn token(&mut self, owner: u64, distance: u64) -> Result<Token> {
        let by_owner = usize::from(owner == self.thread.into());
        let Some(thread) = self.threads.get_mut(owner as usize) else {
            return impossible(format!(
                "an object of thread {owner}, which has allocated nothing so far"
            ));
        };
        let count = thread.allocations;
        let last = &mut thread.last[by_owner];
        let index = last.wrapping_add(varint::unzigzag(distance) as u64);
        if index >= count {
            return impossible(format!(
                "object {index} of thread {owner}, which has allocated {count} so far"
            ));
        }
        *last = index;
        Ok(Token {
            thread: owner as u32,
            index,
        })
    }

    /// Returns the distance of a token from the last named token of the same owner.
    fn distance(&mut self, token: Token) -> Result<u64> {
        let Token { thread, index } = token;
        let Some(owner) = self
            .threads
            .get_mut(thread as usize)
            .filter(|owner| index < owner.allocations)
        else {
            return impossible(format!(
                "object {index} of thread {thread}, which is not allocated yet"
            ));
        };
        let last = &mut owner.last[usize::from(thread == self.thread)];
        let distance = index.wrapping_sub(*last) as i64;
        *last = index;
        Ok(varint::zigzag(distance))
    }
}
