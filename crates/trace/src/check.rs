//! Checks a trace for events that cannot have happened.

use super::Event::{self, *};
use super::fault::{Fault, FaultKind, Result, impossible};
use super::{Live, Reader, Variant};
use std::collections::BTreeMap;

/// No current processor gives a process more addresses than this.
const MOST_SIZE: u64 = 1 << 47;
/// Alignments above this are unusual enough for a note.
const USUAL_ALIGN: u64 = 1 << 30;
/// At most this many faults are reported one by one.
const MOST_FAULTS: usize = 20;

/// The result of a check.
#[derive(Debug, Default)]
pub struct Checked {
    /// Events that were checked.
    pub events: u64,
    /// Objects that are live at the end.
    pub alive: u64,
    /// The first faults; later ones are only counted.
    pub faults: Vec<Fault>,
    /// How many events cannot have happened.
    pub impossible: u64,
    /// Notes on events that are possible but unusual: how often each occurred, and its first event.
    pub notes: BTreeMap<&'static str, (u64, u64)>,
}

impl Checked {
    /// Returns the kind of the worst fault; `None` if there is none.
    pub fn worst(&self) -> Option<FaultKind> {
        self.faults
            .iter()
            .map(Fault::kind)
            .find(|kind| *kind != FaultKind::Impossible)
            .or((self.impossible > 0).then_some(FaultKind::Impossible))
    }
}

/// Checks a trace up to its end, or up to the first place that cannot be read.
pub fn check(mut reader: Reader) -> Checked {
    let mut check = Checker::default();
    while let Some(next) = reader.next() {
        let chunk = reader.chunk_number();
        let number = check.found.events;
        let followed = next.and_then(|(thread, event)| check.event(thread, &event));
        if let Err(fault) = followed {
            let found = &mut check.found;
            let is_last = fault.kind() != FaultKind::Impossible;
            found.impossible += u64::from(!is_last);
            if found.faults.len() < MOST_FAULTS || is_last {
                found.faults.push(fault.at(chunk, number));
            }
            if is_last {
                break;
            }
        }
    }
    check.found.alive = check.live.len();
    check.found
}

/// Refuses an event that is impossible by itself, whatever the events before it.
#[inline]
pub fn alone(event: &Event) -> Result<()> {
    match *event {
        Touch {
            resident_pages,
            extent_pages,
            pages,
            ..
        } if resident_pages > extent_pages || extent_pages > pages => impossible(format!(
            "{resident_pages} of the first {extent_pages} of {pages} pages are in memory"
        )),
        Calloc { count, size } if count.checked_mul(size).is_none() => impossible(format!(
            "calloc({count}, {size}) did not fail, but its product is more than 64 bits"
        )),
        Aligned {
            align,
            size: ..=MOST_SIZE,
            variant: Variant::PosixMemalign,
        } if !align.is_power_of_two() || align < 8 => impossible(format!(
            "posix_memalign with an alignment of {align} did not fail"
        )),
        _ => match event.begins() {
            Some(size) if size > MOST_SIZE => impossible(format!(
                "an allocation of {size} bytes did not fail: more than a process has addresses"
            )),
            _ => Ok(()),
        },
    }
}

#[derive(Default)]
struct Checker {
    found: Checked,
    /// Requested bytes of each object.
    live: Live<u64>,
}

impl Checker {
    fn event(&mut self, thread: u32, event: &Event) -> Result<()> {
        let number = self.found.events;
        self.found.events += 1;
        let ended = self.live.follow(thread, event, |size, _| size)?;
        alone(event)?;
        let notes = &mut self.found.notes;
        let mut note = |what| notes.entry(what).or_insert((0, number)).0 += 1;
        if event.begins() == Some(0) {
            note("allocations of 0 bytes");
        }
        match *event {
            Aligned { align, .. } if align > USUAL_ALIGN => note("alignments above 1 GiB"),
            Aligned { align, .. } if !align.is_power_of_two() => {
                note("alignments that are no power of two")
            }
            FreeSized { size, .. } | FreeAlignedSized { size, .. } if ended != Some(size) => {
                note("frees with another size than the allocation had");
            }
            ReallocFree { .. } => note("realloc(object, 0) that freed"),
            Failed { .. } => note("allocations that failed"),
            Dropped { count } if count > 0 => note("places where the recorder lost events"),
            _ => {}
        }
        Ok(())
    }
}
