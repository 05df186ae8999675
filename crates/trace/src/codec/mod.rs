//! Events as bytes. The first number of an event has its operation in the low three bits and its
//! most important field above; rare events share one operation. An object is named by its distance
//! from the last named object of the same thread: objects are freed in runs, forwards or backwards,
//! so the distance is mostly one.

mod bytes;
mod read;
mod write;

pub(super) use bytes::{Bytes, Pen};

use super::event::Token;
use super::fault::{Fault, impossible};
use super::layout::MOST_THREADS;
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

/// Rare events, by number.
mod rare {
    pub const CALLOC: u64 = 0;
    pub const FREE_NULL: u64 = 1;
    pub const CLOCK: u64 = 2;
    pub const ALIGNED: u64 = 3;
    pub const REALLOC_REMOTE: u64 = 4;
    pub const FREE_SIZED_REMOTE: u64 = 5;
    pub const FREE_ALIGNED_SIZED: u64 = 6;
    pub const REALLOC_FREE: u64 = 7;
    pub const USABLE_SIZE: u64 = 8;
    pub const FAILED: u64 = 9;
    pub const THREAD_START: u64 = 10;
    pub const THREAD_EXIT: u64 = 11;
    pub const FORK: u64 = 12;
    pub const TOUCH: u64 = 13;
    pub const MARK: u64 = 14;
    pub const INHERIT: u64 = 15;
    pub const DROPPED: u64 = 16;
    pub const END: u64 = 17;
    pub const FREE_ALIGNED: u64 = 18;
}

/// Sizes below this fit above an operation. No machine has so much memory, so no call that asked
/// for more succeeded.
const MOST_SIZE: u64 = 1 << (64 - OPERATION_BITS);
/// Longest mark in bytes; a longer one is cut.
const MOST_MARK: usize = 4096;
/// Allocations of a thread: limited by [`Token::packed`].
const MOST_INDEX: u64 = 1 << 48;
/// No event is longer than this, including the switch of threads before it.
pub(super) const MOST_EVENT: usize = MOST_MARK + 8 * varint::MOST_BYTES;

/// What each thread has done so far; writer and reader both keep it.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// Objects it has allocated.
    allocations: u64,
    /// The one of them that this thread named last.
    own: u64,
    /// The one of them that another thread named last.
    remote: u64,
}

/// What writer and reader both know of all earlier events.
#[derive(Default)]
pub(super) struct CodecState {
    thread: u32,
    threads: Vec<Thread>,
    clock_ns: u64,
}

impl CodecState {
    /// Threads that were named so far.
    pub(super) fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Objects that were allocated so far.
    pub(super) fn allocations(&self) -> u64 {
        self.threads.iter().map(|thread| thread.allocations).sum()
    }

    fn switch(&mut self, thread: u64) -> Result<(), Fault> {
        if thread >= u64::from(MOST_THREADS) {
            return Err(impossible(format!(
                "thread {thread}: a trace has {MOST_THREADS} threads at most"
            )));
        }
        self.thread = thread as u32;
        let needed = self.thread as usize + 1;
        if self.threads.len() < needed {
            self.threads.resize(needed, Thread::default());
        }
        Ok(())
    }

    fn current(&mut self) -> &mut Thread {
        &mut self.threads[self.thread as usize]
    }

    fn born(&mut self) -> Result<(), Fault> {
        let thread = self.current();
        if thread.allocations == MOST_INDEX {
            return Err(impossible(format!(
                "more than {MOST_INDEX} allocations of one thread"
            )));
        }
        thread.allocations += 1;
        Ok(())
    }

    /// The object of `owner` at this distance from the last one.
    fn token(&mut self, owner: u64, distance: u64) -> Result<Token, Fault> {
        let by_owner = owner == u64::from(self.thread);
        let Some(thread) = usize::try_from(owner)
            .ok()
            .and_then(|owner| self.threads.get_mut(owner))
        else {
            return Err(impossible(format!(
                "an object of thread {owner}, which has allocated nothing so far"
            )));
        };
        let last = if by_owner {
            &mut thread.own
        } else {
            &mut thread.remote
        };
        let index = last.wrapping_add(varint::unzigzag(distance) as u64);
        if index >= thread.allocations {
            let count = thread.allocations;
            return Err(impossible(format!(
                "object {index} of thread {owner}, which has allocated {count} so far"
            )));
        }
        *last = index;
        Ok(Token {
            thread: owner as u32,
            index,
        })
    }

    /// The distance of a token from the last one.
    fn distance(&mut self, token: Token) -> Result<u64, Fault> {
        let by_owner = token.thread == self.thread;
        match self.threads.get_mut(token.thread as usize) {
            Some(thread) if token.index < thread.allocations => {
                let last = if by_owner {
                    &mut thread.own
                } else {
                    &mut thread.remote
                };
                let distance = varint::zigzag(token.index.wrapping_sub(*last) as i64);
                *last = token.index;
                Ok(distance)
            }
            _ => Err(impossible(format!(
                "object {} of thread {}, which is not allocated yet",
                token.index, token.thread
            ))),
        }
    }
}
