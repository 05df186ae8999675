//! Reads events. Any bytes give events or a fault.

use super::*;
use crate::Event;
use crate::fault::damaged;
use crate::layout::MOST_LIVE;
use heapmark_wire::capture::{Call, Variant};

impl CodecState {
    /// Reads the next event of a payload and its thread.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &mut Bytes) -> Result<(u32, Event), Fault> {
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
            MALLOC => Event::Malloc {
                size: field,
                operator: false,
            },
            NEW => Event::Malloc {
                size: field,
                operator: true,
            },
            FREE => Event::Free {
                token: self.token(self.thread.into(), field)?,
            },
            FREE_REMOTE => Event::Free {
                token: self.token(bytes.number()?, field)?,
            },
            FREE_SIZED => Event::FreeSized {
                token: self.token(self.thread.into(), field)?,
                size: bytes.number()?,
            },
            REALLOC => Event::Realloc {
                token: self.token(self.thread.into(), field)?,
                size: bytes.number()?,
            },
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
            rare::CALLOC => Event::Calloc {
                count: bytes.number()?,
                size: bytes.number()?,
            },
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
            rare::REALLOC_REMOTE => Event::Realloc {
                token: token(bytes)?,
                size: bytes.number()?,
            },
            rare::FREE_SIZED_REMOTE => Event::FreeSized {
                token: token(bytes)?,
                size: bytes.number()?,
            },
            rare::FREE_ALIGNED_SIZED => Event::FreeAlignedSized {
                token: token(bytes)?,
                align: bytes.number()?,
                size: bytes.number()?,
            },
            rare::FREE_ALIGNED => Event::FreeAligned {
                token: token(bytes)?,
                align: bytes.number()?,
            },
            rare::REALLOC_FREE => Event::ReallocFree {
                token: token(bytes)?,
            },
            rare::USABLE_SIZE => Event::UsableSize {
                token: token(bytes)?,
            },
            rare::FAILED => Event::Failed {
                call: one_of(&Call::ALL, bytes.number()?)?,
                size: bytes.number()?,
            },
            rare::THREAD_START => match bytes.number()? {
                child if child < MOST_THREADS.into() => Event::ThreadStart {
                    child: child as u32,
                },
                child => {
                    return Err(impossible(format!(
                        "thread {child}: a trace has {MOST_THREADS} threads at most"
                    )));
                }
            },
            rare::THREAD_EXIT => Event::ThreadExit,
            rare::FORK => match u32::try_from(bytes.number()?) {
                Ok(pid) => Event::Fork { pid },
                Err(_) => return Err(impossible("a process id of more than 32 bits")),
            },
            rare::TOUCH => Event::Touch {
                token: token(bytes)?,
                resident_pages: bytes.number()?,
                pages: bytes.number()?,
            },
            rare::MARK => Event::Mark {
                text: bytes.text()?,
            },
            rare::INHERIT => match bytes.number()? {
                objects if objects <= MOST_LIVE => Event::Inherit { objects },
                objects => {
                    let most = "more than 2^29 objects that live at once";
                    return Err(impossible(format!(
                        "{objects} objects from before the trace: {most}"
                    )));
                }
            },
            rare::DROPPED => Event::Dropped {
                count: bytes.number()?,
            },
            rare::END => Event::End {
                peak_rss_bytes: bytes.number()?,
            },
            other => return Err(damaged(format!("operation {other}, which there is not"))),
        })
    }
}

fn one_of<T: Copy>(all: &[T], number: u64) -> Result<T, Fault> {
    let found = usize::try_from(number)
        .ok()
        .and_then(|number| all.get(number));
    found.copied().ok_or_else(|| {
        damaged(format!(
            "a function with number {number}, which there is not"
        ))
    })
}
