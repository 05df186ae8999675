//! Writes events as bytes.

use super::bytes::put_first;
use super::*;
use crate::Event::{self, *};

impl CodecState {
    /// Appends an event of a thread.
    #[inline]
    pub fn write(&mut self, payload: &mut Vec<u8>, thread: u32, event: &Event) -> Result<()> {
        if thread != self.thread || self.threads.is_empty() {
            self.switch(thread.into())?;
            put_first(payload, SWITCH, thread.into());
        }
        let object = event.names().map_or(Ok(0), |token| self.distance(token))?;
        match *event {
            Malloc { size, .. } if size >= MOST_SIZE => {
                return impossible(format!("an allocation of {size} bytes that did not fail"));
            }
            Malloc { size, operator } => {
                put_first(payload, if operator { NEW } else { MALLOC }, size);
            }
            Free { token } if token.thread == thread => put_first(payload, FREE, object),
            Free { token } => {
                put_first(payload, FREE_REMOTE, object);
                put_number(payload, token.thread.into());
            }
            Realloc { token, size } if token.thread == thread => {
                put_first(payload, REALLOC, object);
                put_number(payload, size);
            }
            FreeSized { token, size } if token.thread == thread => {
                put_first(payload, FREE_SIZED, object);
                put_number(payload, size);
            }
            _ => self.write_rare(payload, event, object)?,
        }
        if event.begins().is_some() {
            self.born()?;
        }
        Ok(())
    }

    fn write_rare(&mut self, payload: &mut Vec<u8>, event: &Event, object: u64) -> Result<()> {
        let owner = event.names().map_or(0, |token| token.thread.into());
        let (which, fields): (u64, &[u64]) = match *event {
            Calloc { count, size } => (CALLOC, &[count, size]),
            Aligned {
                align,
                size,
                variant,
            } => (ALIGNED, &[align, size, variant as u64]),
            FreeNull => (FREE_NULL, &[]),
            Clock { ns } => {
                let before = self.clock_ns;
                if ns < before {
                    return impossible(format!("the clock goes back from {before} to {ns} ns"));
                }
                self.clock_ns = ns;
                (CLOCK, &[ns - before])
            }
            Realloc { size, .. } => (REALLOC_REMOTE, &[owner, object, size]),
            FreeSized { size, .. } => (FREE_SIZED_REMOTE, &[owner, object, size]),
            FreeAlignedSized { align, size, .. } => {
                (FREE_ALIGNED_SIZED, &[owner, object, align, size])
            }
            FreeAligned { align, .. } => (FREE_ALIGNED, &[owner, object, align]),
            ReallocFree { .. } => (REALLOC_FREE, &[owner, object]),
            UsableSize { .. } => (USABLE_SIZE, &[owner, object]),
            Failed { call, size } => (FAILED, &[call as u64, size]),
            ThreadStart { child } => (THREAD_START, &[child.into()]),
            ThreadExit => (THREAD_EXIT, &[]),
            Fork { pid } => (FORK, &[pid.into()]),
            Touch {
                resident_pages,
                extent_pages,
                pages,
                ..
            } if extent_pages == resident_pages => (TOUCH, &[owner, object, resident_pages, pages]),
            Touch {
                resident_pages,
                extent_pages,
                pages,
                ..
            } => (
                TOUCH_SPREAD,
                &[owner, object, resident_pages, extent_pages, pages],
            ),
            Mark { .. } => (MARK, &[]),
            Main => (MAIN, &[]),
            Mallopt { parameter, value } => (
                MALLOPT,
                &[parameter, value].map(|argument| varint::zigzag(argument.into())),
            ),
            Trim { pad } => (TRIM, &[pad]),
            Info => (INFO, &[]),
            Inherit { objects } => (INHERIT, &[objects]),
            Dropped { count } => (DROPPED, &[count]),
            End { peak_rss_bytes } => (END, &[peak_rss_bytes]),
            // `write` handles these two events itself.
            Malloc { .. } | Free { .. } => return Ok(()),
        };
        put_first(payload, RARE, which);
        for field in fields {
            put_number(payload, *field);
        }
        if let Mark { text } = event {
            let text = &text.as_bytes()[..text.floor_char_boundary(MOST_MARK)];
            put_number(payload, text.len() as u64);
            payload.extend_from_slice(text);
        }
        Ok(())
    }
}
