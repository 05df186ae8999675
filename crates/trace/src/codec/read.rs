//! Reads events. Any sequence of bytes yields events or a fault.

use super::bytes::take_text;
use super::*;
use crate::Event::{self, *};
use crate::fault::damaged;
use crate::layout::MOST_LIVE;
use heapmark_wire::capture::{Call, Variant};

impl CodecState {
    /// Reads the next event of a payload and its thread.
    #[inline]
    pub fn read(&mut self, payload: &mut &[u8]) -> Result<(u32, Event)> {
        let mut first = take_number(payload)?;
        if first & 7 == SWITCH {
            self.switch(first >> OPERATION_BITS)?;
            first = take_number(payload)?;
        }
        if self.threads.is_empty() {
            return damaged("an event of no thread");
        }
        let field = first >> OPERATION_BITS;
        let thread = self.thread.into();
        let event = match first & 7 {
            function @ (MALLOC | NEW) => Malloc {
                size: field,
                operator: function == NEW,
            },
            FREE => Free {
                token: self.token(thread, field)?,
            },
            FREE_REMOTE => Free {
                token: self.token(take_number(payload)?, field)?,
            },
            FREE_SIZED => FreeSized {
                token: self.token(thread, field)?,
                size: take_number(payload)?,
            },
            REALLOC => Realloc {
                token: self.token(thread, field)?,
                size: take_number(payload)?,
            },
            RARE => self.read_rare(field, payload)?,
            _ => return damaged("two switches of threads in a row"),
        };
        if event.begins().is_some() {
            self.born()?;
        }
        Ok((self.thread, event))
    }

    fn read_rare(&mut self, which: u64, payload: &mut &[u8]) -> Result<Event> {
        // Events that name an object begin with its token.
        let token = match which {
            REALLOC_REMOTE..=USABLE_SIZE | TOUCH | TOUCH_SPREAD | FREE_ALIGNED => {
                self.token(take_number(payload)?, take_number(payload)?)?
            }
            _ => Token::default(),
        };
        let mut number = || take_number(payload);
        Ok(match which {
            CALLOC => Calloc {
                count: number()?,
                size: number()?,
            },
            ALIGNED => Aligned {
                align: number()?,
                size: number()?,
                variant: one_of(&Variant::ALL, number()?)?,
            },
            FREE_NULL => FreeNull,
            CLOCK => {
                let Some(ns) = self.clock_ns.checked_add(number()?) else {
                    return impossible("the clock goes beyond 584 years");
                };
                self.clock_ns = ns;
                Clock { ns }
            }
            REALLOC_REMOTE => Realloc {
                token,
                size: number()?,
            },
            FREE_SIZED_REMOTE => FreeSized {
                token,
                size: number()?,
            },
            FREE_ALIGNED_SIZED => FreeAlignedSized {
                token,
                align: number()?,
                size: number()?,
            },
            FREE_ALIGNED => FreeAligned {
                token,
                align: number()?,
            },
            REALLOC_FREE => ReallocFree { token },
            USABLE_SIZE => UsableSize { token },
            FAILED => Failed {
                call: one_of(&Call::ALL, number()?)?,
                size: number()?,
            },
            THREAD_START => ThreadStart {
                child: checked_thread(number()?)?,
            },
            THREAD_EXIT => ThreadExit,
            FORK => Fork {
                pid: u32::try_from(number()?)
                    .or_else(|_| impossible("a process id of more than 32 bits"))?,
            },
            TOUCH => {
                let resident_pages = number()?;
                Touch {
                    token,
                    resident_pages,
                    extent_pages: resident_pages,
                    pages: number()?,
                }
            }
            TOUCH_SPREAD => Touch {
                token,
                resident_pages: number()?,
                extent_pages: number()?,
                pages: number()?,
            },
            MARK => Mark {
                text: take_text(payload)?,
            },
            INHERIT => {
                let objects = number()?;
                if objects > MOST_LIVE {
                    return impossible(format!(
                        "{objects} objects from before the trace: more than 2^29 objects that live at once"
                    ));
                }
                Inherit { objects }
            }
            MAIN => Main,
            MALLOPT => Mallopt {
                parameter: whole(number()?)?,
                value: whole(number()?)?,
            },
            TRIM => Trim { pad: number()? },
            INFO => Info,
            DROPPED => Dropped { count: number()? },
            END => End {
                peak_rss_bytes: number()?,
            },
            other => return damaged(format!("operation {other}, which there is not")),
        })
    }
}

/// Converts a stored number to an argument of `mallopt`.
fn whole(number: u64) -> Result<i32> {
    i32::try_from(varint::unzigzag(number)).or_else(|_| impossible("an int of more than 32 bits"))
}

fn one_of<T: Copy>(all: &[T], number: u64) -> Result<T> {
    match all.get(number as usize) {
        Some(one) => Ok(*one),
        None => damaged(format!(
            "a function with number {number}, which there is not"
        )),
    }
}
