//! Reads the events of a chunk. Any bytes give events or an error.

use super::chunk::{Chunk, Start};
use super::event::{Call, Event, MOST_MARK_BYTES, Variant, further, op};
use crate::varint;
use core::fmt;

/// An event and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The event's number in its stream, from 0.
    pub number: u64,
    /// The thread of the event.
    pub thread: u32,
    /// The event's time; `None` if the stream had no clock. For a call that allocates, the time of its return; for one
    /// that frees, that of its start.
    pub stamp: Option<u64>,
    /// The event itself.
    pub event: Event<'a>,
}

/// An error in a chunk's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The byte of the payload at which the unreadable event begins.
    pub offset: usize,
    /// The fault in words.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {} of the chunk", self.what, self.offset)
    }
}

impl core::error::Error for Damage {}

/// The events of a chunk, up to the first damage.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    payload: &'a [u8],
    at: usize,
    word: u64,
    stamp: u64,
    number: u64,
    thread: u32,
    clocked: bool,
    /// Whether the last event may be torn.
    open: bool,
    done: bool,
}

/// The state that the next event is encoded relative to.
pub(super) struct EncodingState {
    pub at: usize,
    pub word: u64,
    pub stamp: u64,
    pub number: u64,
    pub clocked: bool,
}

const TORN: &str = "an event is cut off";

impl<'a> Chunk<'a> {
    /// The chunk's events.
    pub fn records(&self) -> Records<'a> {
        Records::new(self.payload, &self.start, self.sealed)
    }
}

impl<'a> Records<'a> {
    pub(super) fn new(payload: &'a [u8], start: &Start, sealed: bool) -> Records<'a> {
        let Start {
            thread,
            first_event,
            stamp,
            clocked,
            ..
        } = *start;
        Records {
            payload,
            at: 0,
            word: 0,
            stamp,
            number: first_event,
            thread,
            clocked,
            open: !sealed,
            done: false,
        }
    }

    /// The state in which a writer would continue.
    pub(super) fn end(&self) -> EncodingState {
        let Records {
            at,
            word,
            stamp,
            number,
            clocked,
            ..
        } = *self;
        EncodingState {
            at,
            word,
            stamp,
            number,
            clocked,
        }
    }

    /// The number that the next event has, if there is one.
    pub fn next_number(&self) -> u64 {
        self.number
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let (value, length) = varint::get(&self.payload[self.at..]).ok_or(TORN)?;
        // Only zeros in place of an event are read like this: a writer makes no number longer than necessary.
        if length == varint::MOST_BYTES && value >> 56 == 0 {
            return Err("zeros stand where an event was");
        }
        self.at += length;
        Ok(value)
    }

    fn half(&mut self) -> Result<u32, &'static str> {
        self.number()?
            .try_into()
            .map_err(|_| "a number is too large")
    }

    fn time(&mut self) -> Result<u64, &'static str> {
        self.stamp = self
            .number()?
            .checked_add(self.stamp)
            .ok_or("the clock runs over")?;
        Ok(self.stamp)
    }

    fn address(&mut self, distance: u64, low: u64) -> u64 {
        self.word = self.word.wrapping_add(varint::unzigzag(distance) as u64);
        self.word << 3 | low
    }

    fn next_record(&mut self) -> Result<Record<'a>, &'static str> {
        let mut first = self.number()?;
        let mut low = 0;
        if first & 15 == op::LOW_BITS {
            low = first >> 4;
            if low > 63 {
                return Err("the low bits of an address are too many");
            }
            first = self.number()?;
        }
        let was_clocked = self.clocked;
        let event = match (first & 15, first >> 4) {
            (op::LOW_BITS, _) => return Err("the low bits of an address come twice"),
            (op::FURTHER, _) if low != 0 => {
                return Err("low bits of an address without an address");
            }
            (op::FURTHER, code) => self.further(code)?,
            (op, distance) => self.call(op, distance, low)?,
        };
        let timed = was_clocked || matches!(event, Event::Clock | Event::ClockedOn);
        let stamp = if timed { Some(self.time()?) } else { None };
        self.number += 1;
        Ok(Record {
            number: self.number - 1,
            thread: self.thread,
            stamp,
            event,
        })
    }

    fn call(&mut self, op: u64, distance: u64, low: u64) -> Result<Event<'a>, &'static str> {
        if op == op::REALLOC {
            let old = self.address(distance, low & 7);
            let distance = self.number()?;
            let new = self.address(distance, low >> 3);
            return self.realloc(old, new);
        }
        if op == op::REALLOC_NULL {
            let new = self.address(distance, low >> 3);
            return self.realloc(0, new);
        }
        let address = self.address(distance, low & 7);
        Ok(match op {
            op::MALLOC => Event::Malloc {
                address,
                size: self.number()?,
                operator: false,
            },
            op::NEW => Event::Malloc {
                address,
                size: self.number()?,
                operator: true,
            },
            op::CALLOC => Event::Calloc {
                address,
                count: self.number()?,
                size: self.number()?,
            },
            op::ALIGNED => {
                let variant = self.number()?;
                let variant = Variant::ALL
                    .get(variant as usize)
                    .ok_or("an unknown function")?;
                Event::Aligned {
                    address,
                    variant: *variant,
                    align: self.number()?,
                    size: self.number()?,
                }
            }
            op::FREE => Event::Free {
                address,
                operator: false,
            },
            op::DELETE => Event::Free {
                address,
                operator: true,
            },
            op::FREE_SIZED => Event::FreeSized {
                address,
                size: self.number()?,
                operator: false,
            },
            op::DELETE_SIZED => Event::FreeSized {
                address,
                size: self.number()?,
                operator: true,
            },
            op::FREE_ALIGNED_SIZED | op::DELETE_ALIGNED_SIZED => {
                let (align, size) = (self.number()?, self.number()?);
                Event::FreeAlignedSized {
                    address,
                    align,
                    size,
                    operator: op == op::DELETE_ALIGNED_SIZED,
                }
            }
            op::DELETE_ALIGNED => Event::FreeAligned {
                address,
                align: self.number()?,
            },
            _ => Event::UsableSize { address },
        })
    }

    fn realloc(&mut self, old: u64, new: u64) -> Result<Event<'a>, &'static str> {
        let size = self.number()?;
        let entered = if self.clocked {
            Some(self.time()?)
        } else {
            None
        };
        Ok(Event::Realloc {
            old,
            new,
            size,
            entered,
        })
    }

    fn further(&mut self, code: u64) -> Result<Event<'a>, &'static str> {
        Ok(match code {
            further::FREE_NULL => Event::FreeNull,
            further::CLOCK => Event::Clock,
            further::THREAD_EXIT => Event::ThreadExit,
            further::CLOCKED_ON => {
                self.clocked = true;
                Event::ClockedOn
            }
            further::BEGIN => {
                self.thread = self.half()?;
                Event::Begin {
                    thread: self.thread,
                }
            }
            further::THREAD_START => Event::ThreadStart {
                child: self.half()?,
            },
            further::FORKING => Event::Forking {
                moment: self.number()?,
            },
            further::FORK => Event::Fork { pid: self.half()? },
            further::TIME => Event::Time { ns: self.number()? },
            further::FAILED => {
                let call = Call::ALL
                    .get(self.number()? as usize)
                    .ok_or("an unknown call")?;
                Event::Failed {
                    call: *call,
                    size: self.number()?,
                }
            }
            further::MAIN => Event::Main,
            further::INFO => Event::Info,
            further::MALLOPT => Event::Mallopt {
                parameter: self.half()? as i32,
                value: self.half()? as i32,
            },
            further::TRIM => Event::Trim {
                pad: self.number()?,
            },
            further::TOUCH => Event::Touch {
                address: self.number()?,
                resident: self.number()?,
                extent: self.number()?,
                pages: self.number()?,
            },
            further::MARK => {
                let length = self.number()?;
                if length > MOST_MARK_BYTES as u64 {
                    return Err("a mark is too long");
                }
                let text = self.payload[self.at..].get(..length as usize).ok_or(TORN)?;
                self.at += text.len();
                Event::Mark { text }
            }
            _ => return Err("an unknown event"),
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Damage>;

    // Inlined across crates, too: the reader of a capture calls this millions of times a second.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.done || self.at >= self.payload.len() {
            return None;
        }
        let offset = self.at;
        let read = self.next_record();
        self.done = read.is_err();
        if self.open && read == Err(TORN) {
            self.at = offset;
            return None;
        }
        Some(read.map_err(|what| Damage { offset, what }))
    }
}
