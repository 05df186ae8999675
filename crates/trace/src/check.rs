//! Checks a trace for what cannot have happened.

use super::fault::{Fault, FaultKind, impossible};
use super::{Event, Live, Reader, Variant};
use std::collections::BTreeMap;
use std::io::Read;

/// No processor of today gives a process more addresses than this.
const MOST_SIZE: u64 = 1 << 47;
/// Alignments above this are unusual enough for a note.
const USUAL_ALIGN: u64 = 1 << 30;
/// At most this many faults are reported one by one.
const MOST_FAULTS: usize = 20;

/// What a check found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Events that were checked.
    pub events: u64,
    /// Objects that are live at the end.
    pub alive: u64,
    /// The first faults.
    pub faults: Vec<Fault>,
    /// How many events cannot have happened.
    pub impossible: u64,
    /// Notes on what is possible but unusual: how often, and the first event.
    pub notes: BTreeMap<&'static str, (u64, u64)>,
}

impl Checked {
    /// The kind of the worst fault; `None` if there is none.
    pub fn worst(&self) -> Option<FaultKind> {
        let worst = self
            .faults
            .iter()
            .map(Fault::kind)
            .find(|kind| *kind != FaultKind::Impossible);
        worst.or((self.impossible > 0).then_some(FaultKind::Impossible))
    }
}

/// Reads to the end, or to the first place that cannot be read.
pub fn check<R: Read>(mut reader: Reader<R>) -> Checked {
    let mut checked = Checked::default();
    let mut check = Check {
        live: Live::default(),
        inherited_left: 0,
    };
    while let Some(next) = reader.next() {
        let (chunk, event_number) = (reader.chunk_number(), checked.events);
        let found = match next {
            Ok((thread, event)) => {
                checked.events += 1;
                let note = |what| checked.notes.entry(what).or_insert((0, event_number)).0 += 1;
                check.event(thread, &event, event_number, note)
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = found {
            let is_last = fault.kind() != FaultKind::Impossible;
            checked.impossible += u64::from(!is_last);
            if checked.faults.len() < MOST_FAULTS || is_last {
                checked.faults.push(fault.at(chunk, event_number));
            }
            if is_last {
                break;
            }
        }
    }
    checked.alive = check.live.len();
    checked
}

/// Refuses what no event can be, independent of the events before it.
#[inline]
pub(super) fn alone(event: &Event) -> Result<(), Fault> {
    let cannot_be = match *event {
        Event::Aligned {
            align,
            variant: Variant::PosixMemalign,
            ..
        } if !align.is_power_of_two() || align < 8 => true,
        Event::Touch {
            resident_pages,
            pages,
            ..
        } => resident_pages > pages,
        _ => event.begins().is_some_and(|size| size > MOST_SIZE),
    };
    if cannot_be {
        Err(impossible(why_not(event)))
    } else {
        Ok(())
    }
}

#[cold]
fn why_not(event: &Event) -> String {
    match *event {
        Event::Touch {
            resident_pages,
            pages,
            ..
        } => format!("{resident_pages} of {pages} pages are in memory"),
        Event::Calloc { count, size } if count.checked_mul(size).is_none() => {
            format!("calloc({count}, {size}) did not fail, but its product is more than 64 bits")
        }
        Event::Aligned { align, size, .. } if size <= MOST_SIZE => {
            format!("posix_memalign with an alignment of {align} did not fail")
        }
        _ => {
            let size = event.begins().unwrap_or(0);
            format!("an allocation of {size} bytes did not fail: more than a process has addresses")
        }
    }
}

struct Check {
    /// Requested bytes of each object.
    live: Live<u64>,
    /// Allocations that must still follow an `Inherit`.
    inherited_left: u64,
}

impl Check {
    fn event(
        &mut self,
        thread: u32,
        event: &Event,
        number: u64,
        mut note: impl FnMut(&'static str),
    ) -> Result<(), Fault> {
        let left = std::mem::replace(&mut self.inherited_left, 0);
        if left > 0 {
            if event.begins().is_none() || event.ends().is_some() {
                return Err(impossible(format!(
                    "{left} more objects from before the trace must stand here"
                )));
            }
            self.inherited_left = left - 1;
        }
        let (_, ended) = self.live.follow(thread, event, |size, _| size)?;
        alone(event)?;
        if event.begins() == Some(0) {
            note("allocations of 0 bytes");
        }
        match *event {
            Event::Aligned { align, .. } if align > USUAL_ALIGN => note("alignments above 1 GiB"),
            Event::Aligned { align, .. } if !align.is_power_of_two() => {
                note("alignments that are no power of two")
            }
            Event::FreeSized { size, .. } | Event::FreeAlignedSized { size, .. }
                if ended != Some(size) =>
            {
                note("frees with another size than the allocation had");
            }
            Event::ReallocFree { .. } => note("realloc(object, 0) that freed"),
            Event::Failed { .. } => note("allocations that failed"),
            Event::Dropped { count } if count > 0 => note("places where the recorder lost events"),
            Event::Inherit { objects } if number > 0 => {
                return Err(impossible(format!(
                    "{objects} objects from before the trace, after event 0"
                )));
            }
            Event::Inherit { objects } => self.inherited_left = objects,
            _ => {}
        }
        Ok(())
    }
}
