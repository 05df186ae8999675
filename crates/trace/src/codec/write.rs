//! Writes events.

use super::*;
use crate::Event;

impl CodecState {
    /// Appends an event of a thread.
    #[inline]
    pub(crate) fn write(&mut self, pen: &mut Pen, thread: u32, event: &Event) -> Result<(), Fault> {
        if thread != self.thread || self.threads.is_empty() {
            self.switch(thread.into())?;
            pen.first(SWITCH, thread.into());
        }
        match *event {
            Event::Malloc { size, operator } if size < MOST_SIZE => {
                pen.first(if operator { NEW } else { MALLOC }, size);
                self.born()
            }
            Event::Malloc { size, .. } => Err(impossible(format!(
                "an allocation of {size} bytes that did not fail"
            ))),
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
            Event::Aligned {
                align,
                size,
                variant,
            } => pen.rare(rare::ALIGNED, &[align, size, variant as u64]),
            Event::FreeNull => pen.rare(rare::FREE_NULL, &[]),
            Event::Clock { ns } => {
                let Some(later) = ns.checked_sub(self.clock_ns) else {
                    return Err(impossible(format!(
                        "the clock goes back from {} to {ns} ns",
                        self.clock_ns
                    )));
                };
                self.clock_ns = ns;
                pen.rare(rare::CLOCK, &[later]);
            }
            Event::FreeAlignedSized { align, size, .. } => {
                pen.rare(rare::FREE_ALIGNED_SIZED, &[owner, object, align, size]);
            }
            Event::FreeAligned { align, .. } => {
                pen.rare(rare::FREE_ALIGNED, &[owner, object, align])
            }
            Event::ReallocFree { .. } => pen.rare(rare::REALLOC_FREE, &[owner, object]),
            Event::UsableSize { .. } => pen.rare(rare::USABLE_SIZE, &[owner, object]),
            Event::Failed { call, size } => pen.rare(rare::FAILED, &[call as u64, size]),
            Event::ThreadStart { child } => pen.rare(rare::THREAD_START, &[child.into()]),
            Event::ThreadExit => pen.rare(rare::THREAD_EXIT, &[]),
            Event::Fork { pid } => pen.rare(rare::FORK, &[pid.into()]),
            Event::Touch {
                resident_pages,
                pages,
                ..
            } => {
                pen.rare(rare::TOUCH, &[owner, object, resident_pages, pages]);
            }
            Event::Mark { ref text } => {
                pen.rare(rare::MARK, &[]);
                pen.text(text);
            }
            Event::Inherit { objects } => pen.rare(rare::INHERIT, &[objects]),
            Event::Dropped { count } => pen.rare(rare::DROPPED, &[count]),
            Event::End { peak_rss_bytes } => pen.rare(rare::END, &[peak_rss_bytes]),
            // `write` handles the others.
            Event::Malloc { .. }
            | Event::Free { .. }
            | Event::FreeSized { .. }
            | Event::Realloc { .. } => {}
        }
        if event.begins().is_some() {
            self.born()
        } else {
            Ok(())
        }
    }
}
