//! A range of a trace as a trace of its own: objects that were alive before it are allocated first,
//! and marked as inherited.

use super::fault::{Fault, FaultKind};
use super::{Event, Live, Reader, Token, Totals, Writer};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::ops::Range;

/// Which events are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// By number, the first is 0.
    Events(Range<u64>),
    /// By nanoseconds since the start, with the resolution of the trace's clock.
    Time(Range<u64>),
}

impl Stretch {
    fn place(&self, event: u64, ns: u64) -> Position {
        let (range, at) = match self {
            Stretch::Events(range) => (range, event),
            Stretch::Time(range) => (range, ns),
        };
        match at {
            at if at < range.start => Position::Before,
            at if at < range.end => Position::Within,
            _ => Position::After,
        }
    }
}

#[derive(PartialEq)]
enum Position {
    Before,
    Within,
    After,
}

/// The result of a cut.
#[derive(Debug)]
pub struct Stretched {
    /// What was written.
    pub totals: Totals,
    /// Events within the range.
    pub within: u64,
    /// Events before the range, and the time by then in nanoseconds.
    pub before: (u64, u64),
    /// Where the trace is damaged.
    pub damage: Option<Fault>,
}

/// Reads up to the end of the range and writes the range; memory is that of the live objects at its
/// beginning. Of a damaged trace, everything before the damage is written, and the damage is
/// returned.
pub fn cut<R: Read, W: Write>(
    mut reader: Reader<R>,
    to: W,
    stretch: &Stretch,
) -> Result<Stretched, Fault> {
    let mut head = reader.head().clone();
    let mut before = Live::default();
    let (mut ns, mut inherited_left, mut number) = (0, 0, 0);
    let first = loop {
        let Some(next) = reader.next().transpose()? else {
            break None;
        };
        if let (_, Event::Clock { ns: now }) = next {
            ns = now;
        }
        // Inherited objects stay together, and the cut takes their place.
        if stretch.place(number, ns) != Position::Before
            && inherited_left == 0
            && !matches!(next.1, Event::Inherit { .. })
        {
            break Some(next);
        }
        let (thread, event) = &next;
        before.follow(*thread, event, |size, _| (number, birth(event, size)))?;
        match event {
            Event::Inherit { objects } => inherited_left = *objects,
            _ => inherited_left = inherited_left.saturating_sub(1),
        }
        number += 1;
    };
    let (start_ns, start) = (ns, number);
    let (name, range) = match stretch {
        Stretch::Events(range) => ("cut.events", range),
        Stretch::Time(range) => ("cut.ns", range),
    };
    let end = if range.end == u64::MAX {
        String::new()
    } else {
        range.end.to_string()
    };
    head.set(name, format!("{}..{end}", range.start));
    let mut writer = Writer::new(to, &head)?;
    let mut tokens = Tokens::write(before, &mut writer)?;
    let (mut next, mut damage) = (first, None);
    while let Some((thread, mut event)) = next {
        if let Event::Clock { ns: now } = &mut event {
            ns = *now;
            *now -= start_ns;
        }
        if stretch.place(number, ns) == Position::After {
            break;
        }
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
    Ok(Stretched {
        totals: writer.finish()?.1,
        within: number - start,
        before: (start, start_ns),
        damage,
    })
}

/// The call that makes an object of this kind without an earlier object.
pub(super) fn birth(event: &Event, size: u64) -> Event {
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
    /// Tokens of the objects that were alive before.
    inherited: HashMap<u64, u64, RandomState>,
    /// For each thread: its allocations before the range, and how many of them are live at its
    /// beginning.
    threads: Vec<(u64, u64)>,
}

impl Tokens {
    fn write<W: Write>(
        before: Live<(u64, Event)>,
        writer: &mut Writer<W>,
    ) -> Result<Tokens, Fault> {
        let threads = before.threads();
        let mut tokens = Tokens {
            inherited: HashMap::default(),
            threads: (0..threads).map(|it| (before.allocations(it), 0)).collect(),
        };
        let mut objects: Vec<(Token, (u64, Event))> = before.into_objects().collect();
        objects.sort_unstable_by_key(|(_, (number, _))| *number);
        if !objects.is_empty() {
            writer.write(
                0,
                &Event::Inherit {
                    objects: objects.len() as u64,
                },
            )?;
        }
        for (token, (_, birth)) in objects {
            let alive = &mut tokens.threads[token.thread as usize].1;
            tokens.inherited.insert(token.packed(), *alive);
            *alive += 1;
            writer.write(token.thread, &birth)?;
        }
        Ok(tokens)
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
            .unwrap_or((0, 0));
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
