//! A range of a trace as a trace of its own: objects that were alive before it are allocated first,
//! and marked as inherited.

use super::fault::{Fault, FaultKind, Result};
use super::head::{MAIN, UNKNOWN};
use super::live::Allocations;
use super::{Event, Head, Live, Reader, Totals, Writer};
use foldhash::fast::RandomState;
use heapmark_wire::compiled::PAGES_FROM_BYTES;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::ops::Range;

/// The range of events that are kept.
pub enum Stretch {
    /// A range of event numbers, counted from 0.
    Events(Range<u64>),
    /// A range of nanoseconds since the start, with the resolution of the trace's clock.
    Time(Range<u64>),
}

impl Stretch {
    /// Returns the metadata of a trace, with a note that it was cut.
    pub fn noted(&self, head: &Head) -> Head {
        let (key, range) = match self {
            Stretch::Events(range) => ("cut.events", range),
            Stretch::Time(range) => ("cut.ns", range),
        };
        let end = match range.end {
            u64::MAX => String::new(),
            end => end.to_string(),
        };
        let mut head = head.clone();
        head.set(key, format!("{}..{end}", range.start));
        head
    }
}

/// The result of a cut.
pub struct Stretched {
    /// The totals of the trace that was written.
    pub totals: Totals,
    /// The number of events within the range.
    pub within: u64,
    /// The number of events before the range, and the time by then in nanoseconds.
    pub before: (u64, u64),
    /// The damage in the trace that was read, if there is any.
    pub damage: Option<Fault>,
}

/// Reads up to the end of the range and writes the range with this metadata. Reads on while a large
/// object of the range is alive, since the touched pages of an object are recorded only just before
/// its end. Takes memory for the live objects at the beginning of the range, and for large live ones.
/// If the trace is damaged within the range, everything before the damage is written, and the damage
/// is returned.
pub fn cut(
    mut reader: Reader,
    to: &mut dyn Write,
    stretch: &Stretch,
    head: &Head,
) -> Result<Stretched> {
    let (range, is_time) = match stretch {
        Stretch::Events(range) => (range, false),
        Stretch::Time(range) => (range, true),
    };
    let mut before = Live::default();
    let mut ended = Vec::new();
    let mut main = None;
    let mut ns = 0;
    let mut number = 0;
    let mut next = reader.next().transpose()?;
    while let Some((thread, event)) = &next {
        if let Event::Clock { ns: now } = event {
            ns = *now;
        }
        // Inherited objects stay together: the range begins behind them, and its own inherited
        // objects take their place.
        let is_before = range.start > if is_time { ns } else { number };
        if !is_before && !reader.is_inherited() && !matches!(event, Event::Inherit { .. }) {
            break;
        }
        before.follow(*thread, event, |size, _| (number, birth(event, size)))?;
        match event {
            Event::ThreadExit => ended.push(*thread),
            Event::Main => main = Some(*thread),
            _ => {}
        }
        number += 1;
        next = reader.next().transpose()?;
    }
    let start_ns = ns;
    let start = number;
    let mut head = head.clone();
    if !reader.tells_main() {
        head.set(MAIN, UNKNOWN);
    }
    let mut writer = Writer::new(to, &head)?;
    let mut tokens = Tokens::write(before, &mut writer)?;
    if let Some(main) = main {
        writer.write(main, &Event::Main)?;
    }
    // Threads that had ended before the range end again, after their inherited objects.
    for thread in ended
        .into_iter()
        .filter(|thread| tokens.has_inherited_of(*thread))
    {
        writer.write(thread, &Event::ThreadExit)?;
    }
    let mut damage = None;
    while let Some((thread, mut event)) = next.take() {
        if let Event::Clock { ns: now } = &mut event {
            ns = *now;
            *now -= start_ns;
        }
        if range.end <= if is_time { ns } else { number } {
            next = Some((thread, event));
            break;
        }
        tokens.follow(thread, &event);
        tokens.rename(&mut event);
        writer.write(thread, &event)?;
        number += 1;
        next = match reader.next().transpose() {
            Err(fault) if fault.kind() == FaultKind::Damaged => {
                damage = Some(fault);
                None
            }
            other => other?,
        };
    }
    while !tokens.large.is_empty()
        && let Some((_, mut event)) = next.take()
    {
        if let Event::Touch { token, .. } = event
            && tokens.large.remove(&token.packed())
        {
            tokens.rename(&mut event);
            // Written for the owner: another thread that touches the object may have no event in
            // the range.
            writer.write(token.thread, &event)?;
        } else if let Some(token) = event.ends() {
            tokens.large.remove(&token.packed());
        }
        // Damage behind the range does not matter.
        next = reader.next().and_then(Result::ok);
    }
    Ok(Stretched {
        totals: writer.finish()?,
        within: number - start,
        before: (start, start_ns),
        damage,
    })
}

/// Returns the call that makes an object of this kind without replacing an earlier one.
pub fn birth(event: &Event, size: u64) -> Event {
    match event {
        Event::Realloc { .. } => Event::Malloc {
            size,
            operator: false,
        },
        other => other.clone(),
    }
}

/// The tokens that objects of the whole trace get in the range.
struct Tokens {
    /// The index in the range of each object that was alive before it, by the object's packed
    /// token.
    inherited: HashMap<u64, u64, RandomState>,
    /// For each thread: its allocations before the range, and how many of them are live at its
    /// beginning.
    threads: Vec<(u64, u64)>,
    /// The number of allocations of each thread so far.
    allocations: Allocations,
    /// Live large objects, by their packed tokens: without a `Touch` event, a replay touches all of
    /// their pages.
    large: HashSet<u64, RandomState>,
}

impl Tokens {
    fn write(before: Live<(u64, Event)>, writer: &mut Writer) -> Result<Tokens> {
        let allocations = Allocations(before.allocations.0.clone());
        let mut tokens = Tokens {
            inherited: HashMap::default(),
            threads: allocations.0.iter().map(|count| (*count, 0)).collect(),
            allocations,
            large: HashSet::default(),
        };
        let mut objects: Vec<_> = before.into_objects().collect();
        objects.sort_unstable_by_key(|(_, (number, _))| *number);
        if !objects.is_empty() {
            let objects = objects.len() as u64;
            writer.write(0, &Event::Inherit { objects })?;
        }
        for (token, (_, birth)) in objects {
            let alive = &mut tokens.threads[token.thread as usize].1;
            tokens.inherited.insert(token.packed(), *alive);
            *alive += 1;
            if birth.begins() >= Some(PAGES_FROM_BYTES) {
                tokens.large.insert(token.packed());
            }
            writer.write(token.thread, &birth)?;
        }
        Ok(tokens)
    }

    /// Returns whether the thread has objects that were alive before the range.
    fn has_inherited_of(&self, thread: u32) -> bool {
        let of_thread = self.threads.get(thread as usize);
        of_thread.is_some_and(|(_, alive)| *alive > 0)
    }

    /// Notes which large objects an event ends and begins.
    fn follow(&mut self, thread: u32, event: &Event) {
        if let Some(token) = event.ends() {
            self.large.remove(&token.packed());
        }
        if let Some(size) = event.begins() {
            let token = self.allocations.next(thread);
            if size >= PAGES_FROM_BYTES {
                self.large.insert(token.packed());
            }
        }
    }

    fn rename(&mut self, event: &mut Event) {
        let ends = event.ends().is_some();
        let Some(token) = event.names_mut() else {
            return;
        };
        let (allocated, alive) = self
            .threads
            .get(token.thread as usize)
            .copied()
            .unwrap_or_default();
        let packed = token.packed();
        token.index = match self.inherited.get(&packed) {
            Some(index) => *index,
            None => token.index.wrapping_sub(allocated).wrapping_add(alive),
        };
        if ends {
            self.inherited.remove(&packed);
        }
    }
}
