//! Events as bytes. The first number of an event has its operation in the low three bits and its most important field above;
//! rare events share one operation. An object is named by how far it is from the one of the same thread that was named last:
//! objects die in runs, forwards or backwards, so that the distance is mostly one.

use super::event::{Event, Token};
use super::fault::{Fault, damaged, impossible};
use super::layout::{MOST_LIVE, MOST_THREADS};
use heapmark_wire::capture::{Call, Variant};
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

/// Sizes below this fit above an operation. No machine has so much memory, so no call that asked for it succeeded.
const MOST_SIZE: u64 = 1 << (64 - OPERATION_BITS);
/// Bytes of a mark; a longer one is cut.
const MOST_MARK: usize = 4096;
/// Allocations of a thread: what [`Token::packed`] has room for.
const MOST_INDEX: u64 = 1 << 48;
/// No event is longer, with the switch of threads before it.
pub(super) const MOST_EVENT: usize = MOST_MARK + 8 * varint::MOST_BYTES;

/// What each thread has done so far, which both sides know.
#[derive(Clone, Copy, Default)]
struct Thread {
    /// Objects it has allocated.
    allocations: u64,
    /// The one of them that it named last itself.
    own: u64,
    /// The one of them that another thread named last.
    remote: u64,
}

/// What writer and reader both know of all that came before.
#[derive(Default)]
pub(super) struct State {
    thread: u32,
    threads: Vec<Thread>,
    clock_ns: u64,
}

impl State {
    /// Threads that have been heard of.
    pub(super) fn threads(&self) -> u64 {
        self.threads.len() as u64
    }

    /// Objects that have been allocated.
    pub(super) fn allocations(&self) -> u64 {
        self.threads.iter().map(|thread| thread.allocations).sum()
    }

    fn switch(&mut self, thread: u64) -> Result<(), Fault> {
        if thread >= u64::from(MOST_THREADS) {
            return Err(impossible(format!("thread {thread}: a trace has {MOST_THREADS} threads at most")));
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
            return Err(impossible(format!("more than {MOST_INDEX} allocations of one thread")));
        }
        thread.allocations += 1;
        Ok(())
    }

    /// The object of `owner` that lies so far from the last one.
    fn token(&mut self, owner: u64, distance: u64) -> Result<Token, Fault> {
        let by_owner = owner == u64::from(self.thread);
        let Some(thread) = usize::try_from(owner).ok().and_then(|owner| self.threads.get_mut(owner)) else {
            return Err(impossible(format!("an object of thread {owner}, which has allocated nothing so far")));
        };
        let last = if by_owner { &mut thread.own } else { &mut thread.remote };
        let index = last.wrapping_add(varint::unzigzag(distance) as u64);
        if index >= thread.allocations {
            let count = thread.allocations;
            return Err(impossible(format!("object {index} of thread {owner}, which has allocated {count} so far")));
        }
        *last = index;
        Ok(Token { thread: owner as u32, index })
    }

    /// How far a token lies from the last one.
    fn distance(&mut self, token: Token) -> Result<u64, Fault> {
        let by_owner = token.thread == self.thread;
        match self.threads.get_mut(token.thread as usize) {
            Some(thread) if token.index < thread.allocations => {
                let last = if by_owner { &mut thread.own } else { &mut thread.remote };
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

/// A buffer that events are written to.
pub(super) struct Pen {
    bytes: Box<[u8]>,
    used: usize,
}

impl Pen {
    pub(super) fn new(room: usize) -> Pen {
        Pen { bytes: vec![0; room].into(), used: 0 }
    }

    pub(super) fn written(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.used
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    #[inline(always)]
    pub(super) fn number(&mut self, number: u64) {
        let rest = &mut self.bytes[self.used..];
        assert!(rest.len() >= varint::MOST_BYTES, "the caller looks at `left`");
        let start = rest.as_mut_ptr();
        // SAFETY: it has room for the longest number, as was just seen, and both pointers are into it.
        self.used += unsafe { varint::put(start, number).offset_from_unsigned(start) };
    }

    #[inline(always)]
    fn first(&mut self, operation: u64, field: u64) {
        self.number(field << OPERATION_BITS | operation);
    }

    fn rare(&mut self, which: u64, fields: &[u64]) {
        self.first(RARE, which);
        fields.iter().for_each(|field| self.number(*field));
    }

    fn text(&mut self, text: &str) {
        let bytes = &text.as_bytes()[..text.floor_char_boundary(MOST_MARK)];
        self.number(bytes.len() as u64);
        self.bytes[self.used..][..bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }
}

impl State {
    /// Appends an event of a thread.
    #[inline]
    pub(super) fn write(&mut self, pen: &mut Pen, thread: u32, event: &Event) -> Result<(), Fault> {
        if thread != self.thread || self.threads.is_empty() {
            self.switch(thread.into())?;
            pen.first(SWITCH, thread.into());
        }
        match *event {
            Event::Malloc { size, operator } if size < MOST_SIZE => {
                pen.first(if operator { NEW } else { MALLOC }, size);
                self.born()
            }
            Event::Malloc { size, .. } => Err(impossible(format!("an allocation of {size} bytes that did not fail"))),
            Event::Free { token } if token.thread == self.thread => {
                let distance = self.distance(token)?;
                pen.first(FREE, distance);
                Ok(())
            }
            Event::Free { token } => {
                let distance = self.distance(token)?;
                pen.first(FREE_REMOTE, distance);
                pen.number(token.thread.into());
                Ok(())
            }
            Event::Realloc { token, size } => {
                let distance = self.distance(token)?;
                match token.thread == self.thread {
                    true => pen.first(REALLOC, distance),
                    false => pen.rare(rare::REALLOC_REMOTE, &[token.thread.into(), distance]),
                }
                pen.number(size);
                self.born()
            }
            Event::FreeSized { token, size } => {
                let distance = self.distance(token)?;
                match token.thread == self.thread {
                    true => pen.first(FREE_SIZED, distance),
                    false => pen.rare(rare::FREE_SIZED_REMOTE, &[token.thread.into(), distance]),
                }
                pen.number(size);
                Ok(())
            }
            _ => self.write_rare(pen, event),
        }
    }

    fn write_rare(&mut self, pen: &mut Pen, event: &Event) -> Result<(), Fault> {
        let object = event.names().map_or(Ok(0), |token| self.distance(token))?;
        let owner = event.names().map_or(0, |token| token.thread.into());
        match *event {
            Event::Calloc { count, size } => pen.rare(rare::CALLOC, &[count, size]),
            Event::Aligned { align, size, variant } => pen.rare(rare::ALIGNED, &[align, size, variant as u64]),
            Event::FreeNull => pen.rare(rare::FREE_NULL, &[]),
            Event::Clock { ns } => {
                let Some(later) = ns.checked_sub(self.clock_ns) else {
                    return Err(impossible(format!("the clock goes back from {} to {ns} ns", self.clock_ns)));
                };
                self.clock_ns = ns;
                pen.rare(rare::CLOCK, &[later]);
            }
            Event::FreeAlignedSized { align, size, .. } => {
                pen.rare(rare::FREE_ALIGNED_SIZED, &[owner, object, align, size]);
            }
            Event::FreeAligned { align, .. } => pen.rare(rare::FREE_ALIGNED, &[owner, object, align]),
            Event::ReallocFree { .. } => pen.rare(rare::REALLOC_FREE, &[owner, object]),
            Event::UsableSize { .. } => pen.rare(rare::USABLE_SIZE, &[owner, object]),
            Event::Failed { call, size } => pen.rare(rare::FAILED, &[call as u64, size]),
            Event::ThreadStart { child } => pen.rare(rare::THREAD_START, &[child.into()]),
            Event::ThreadExit => pen.rare(rare::THREAD_EXIT, &[]),
            Event::Fork { pid } => pen.rare(rare::FORK, &[pid.into()]),
            Event::Touch { resident_pages, pages, .. } => {
                pen.rare(rare::TOUCH, &[owner, object, resident_pages, pages]);
            }
            Event::Mark { ref text } => {
                pen.rare(rare::MARK, &[]);
                pen.text(text);
            }
            Event::Inherit { objects } => pen.rare(rare::INHERIT, &[objects]),
            Event::Dropped { count } => pen.rare(rare::DROPPED, &[count]),
            Event::End { peak_rss_bytes } => pen.rare(rare::END, &[peak_rss_bytes]),
            // The others are `write`'s own.
            Event::Malloc { .. } | Event::Free { .. } | Event::FreeSized { .. } | Event::Realloc { .. } => {}
        }
        if event.begins().is_some() { self.born() } else { Ok(()) }
    }

    /// The next event of a payload and its thread.
    #[inline]
    pub(super) fn read(&mut self, bytes: &mut Bytes) -> Result<(u32, Event), Fault> {
        let mut first = bytes.number()?;
        if first & 7 == SWITCH {
            self.switch(first >> OPERATION_BITS)?;
            first = bytes.number()?;
        }
        if self.threads.is_empty() {
            return Err(damaged("an event of no thread"));
        }
        let field = first >> OPERATION_BITS;
        let event = match first & 7 {
            MALLOC => Event::Malloc { size: field, operator: false },
            NEW => Event::Malloc { size: field, operator: true },
            FREE => Event::Free { token: self.token(self.thread.into(), field)? },
            FREE_REMOTE => Event::Free { token: self.token(bytes.number()?, field)? },
            FREE_SIZED => Event::FreeSized { token: self.token(self.thread.into(), field)?, size: bytes.number()? },
            REALLOC => Event::Realloc { token: self.token(self.thread.into(), field)?, size: bytes.number()? },
            RARE => self.read_rare(field, bytes)?,
            _ => return Err(damaged("two switches of threads in a row")),
        };
        if event.begins().is_some() {
            self.born()?;
        }
        Ok((self.thread, event))
    }

    fn read_rare(&mut self, which: u64, bytes: &mut Bytes) -> Result<Event, Fault> {
        let mut token = |bytes: &mut Bytes| {
            let (owner, distance) = (bytes.number()?, bytes.number()?);
            self.token(owner, distance)
        };
        Ok(match which {
            rare::CALLOC => Event::Calloc { count: bytes.number()?, size: bytes.number()? },
            rare::ALIGNED => Event::Aligned {
                align: bytes.number()?,
                size: bytes.number()?,
                variant: one_of(&Variant::ALL, bytes.number()?)?,
            },
            rare::FREE_NULL => Event::FreeNull,
            rare::CLOCK => {
                let Some(ns) = self.clock_ns.checked_add(bytes.number()?) else {
                    return Err(impossible("the clock goes beyond 584 years"));
                };
                self.clock_ns = ns;
                Event::Clock { ns }
            }
            rare::REALLOC_REMOTE => Event::Realloc { token: token(bytes)?, size: bytes.number()? },
            rare::FREE_SIZED_REMOTE => Event::FreeSized { token: token(bytes)?, size: bytes.number()? },
            rare::FREE_ALIGNED_SIZED => {
                Event::FreeAlignedSized { token: token(bytes)?, align: bytes.number()?, size: bytes.number()? }
            }
            rare::FREE_ALIGNED => Event::FreeAligned { token: token(bytes)?, align: bytes.number()? },
            rare::REALLOC_FREE => Event::ReallocFree { token: token(bytes)? },
            rare::USABLE_SIZE => Event::UsableSize { token: token(bytes)? },
            rare::FAILED => Event::Failed { call: one_of(&Call::ALL, bytes.number()?)?, size: bytes.number()? },
            rare::THREAD_START => match bytes.number()? {
                child if child < MOST_THREADS.into() => Event::ThreadStart { child: child as u32 },
                child => return Err(impossible(format!("thread {child}: a trace has {MOST_THREADS} threads at most"))),
            },
            rare::THREAD_EXIT => Event::ThreadExit,
            rare::FORK => match u32::try_from(bytes.number()?) {
                Ok(pid) => Event::Fork { pid },
                Err(_) => return Err(impossible("a process id of more than 32 bits")),
            },
            rare::TOUCH => {
                Event::Touch { token: token(bytes)?, resident_pages: bytes.number()?, pages: bytes.number()? }
            }
            rare::MARK => Event::Mark { text: bytes.text()? },
            rare::INHERIT => match bytes.number()? {
                objects if objects <= MOST_LIVE => Event::Inherit { objects },
                objects => {
                    let most = "more than 2^29 objects that live at once";
                    return Err(impossible(format!("{objects} objects from before the trace: {most}")));
                }
            },
            rare::DROPPED => Event::Dropped { count: bytes.number()? },
            rare::END => Event::End { peak_rss_bytes: bytes.number()? },
            other => return Err(damaged(format!("operation {other}, which there is not"))),
        })
    }
}

fn one_of<T: Copy>(all: &[T], number: u64) -> Result<T, Fault> {
    let found = usize::try_from(number).ok().and_then(|number| all.get(number));
    found.copied().ok_or_else(|| damaged(format!("a function with number {number}, which there is not")))
}

/// A payload, of which events are taken off the front.
pub(super) struct Bytes<'a> {
    pub(super) all: &'a [u8],
    pub(super) at: usize,
}

impl Bytes<'_> {
    #[inline(always)]
    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        let Some((number, length)) = varint::get(&self.all[self.at..]) else {
            return Err(damaged("the chunk ends within an event"));
        };
        self.at += length;
        Ok(number)
    }

    fn text(&mut self) -> Result<Box<str>, Fault> {
        let length = self.number()?;
        let rest = &self.all[self.at..];
        if length > MOST_MARK as u64 || length > rest.len() as u64 {
            return Err(damaged(format!("a mark of {length} bytes in a chunk that has {} left", rest.len())));
        }
        self.at += length as usize;
        Ok(String::from_utf8_lossy(&rest[..length as usize]).into())
    }
}
