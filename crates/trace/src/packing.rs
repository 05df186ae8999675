//! Packings of a trace's objects: how little memory would suffice if each object's lifetime were
//! known when it begins, and nothing were spent on headers or size classes.

use super::Event::{self, Aligned};
use super::check::alone;
use super::fault::{Fault, Result, foreign};
use super::{Live, Reader, room};
use std::collections::{BTreeMap, BTreeSet};

/// Objects lie at multiples of this many bytes, as C requires of malloc.
const GRAIN: u64 = 16;
/// No address space is larger: with this limit, the sum of a few objects of impossible size does not overflow.
const MOST_BYTES: u64 = 1 << 47;
/// Objects during whose life more than this was allocated lie in an arena of their own. One packing
/// is tried for each of these limits, and one with a single arena.
const LONG_LIVES: [u64; 4] = [1 << 16, 1 << 20, 1 << 24, 1 << 28];
/// The number of objects for which there is room at first.
const FIRST_OBJECTS: usize = 1024;

/// Returns the bytes of a packing of a trace's objects, which is possible, but not always the best: the
/// smallest of several tries, each best fit in the order of the trace; objects never move. Takes memory
/// for all events; refuses if there is too little.
pub fn packed_bytes(mut reader: Reader) -> Result<u64> {
    let mut objects = Objects::new(room::refusal);
    let mut events = 0;
    while let Some(next) = reader.next() {
        let followed = next.and_then(|(thread, event)| objects.event(thread, &event));
        followed.map_err(|fault: Fault| fault.at(reader.chunk_number(), events))?;
        events += 1;
    }
    let longest = objects.all.iter().map(|object| object.lifetime_bytes).max();
    let thresholds = LONG_LIVES
        .into_iter()
        .filter(|bytes| longest.is_some_and(|longest| longest > *bytes));
    let packed = thresholds.map(|long| objects.pack(long));
    Ok(packed.fold(objects.pack(u64::MAX), u64::min))
}

/// What is known of an object, after the whole trace has been read.
struct Object {
    bytes: u64,
    align: u64,
    /// Bytes that were allocated during the object's life; the largest number if it never ends.
    lifetime_bytes: u64,
}

enum Step {
    Begin(usize),
    End(usize),
}

struct Objects {
    /// The function that returns why a table of so many bytes does not fit.
    refusal: fn(u64) -> Option<String>,
    all: Vec<Object>,
    steps: Vec<Step>,
    /// For each live object, its place in `all`, and the bytes that had been allocated in total when it began.
    live: Live<(usize, u64)>,
    allocated_bytes: u64,
}

impl Objects {
    fn new(refusal: fn(u64) -> Option<String>) -> Objects {
        Objects {
            refusal,
            all: Vec::new(),
            steps: Vec::new(),
            live: Live::default(),
            allocated_bytes: 0,
        }
    }

    /// Makes room for twice as many objects, or returns why there is none.
    #[cold]
    fn grow(&mut self) -> Result<()> {
        let objects = self.all.len();
        let most = (2 * objects).max(FIRST_OBJECTS);
        // Each object has two steps, and a place in a packing.
        let each = size_of::<Object>() + 2 * size_of::<Step>() + size_of::<u64>();
        let steps = 2 * most - self.steps.len();
        let why = match (self.refusal)((most * each) as u64) {
            Some(why) => why,
            None if self.all.try_reserve_exact(most - objects).is_ok()
                && self.steps.try_reserve_exact(steps).is_ok() =>
            {
                return Ok(());
            }
            None => "the system gives no more memory".into(),
        };
        foreign(format!(
            "a packing takes memory for each object, and there are more than {objects}: {why}; leave out --packing, or take a machine with more memory"
        ))
    }

    fn event(&mut self, thread: u32, event: &Event) -> Result<()> {
        alone(event)?;
        let next = self.all.len();
        let about = (next, self.allocated_bytes);
        // The object that a realloc ends and the one that it begins may overlap: no packing needs both at a time.
        if let Some((ended, began_bytes)) = self.live.follow(thread, event, |_, _| about)? {
            let object = &mut self.all[ended];
            object.lifetime_bytes = self.allocated_bytes - began_bytes;
            self.steps.push(Step::End(ended));
        }
        if let Some(bytes) = event.begins() {
            if next == self.all.capacity() {
                self.grow()?;
            }
            let bytes = bytes.min(MOST_BYTES);
            let align = match *event {
                Aligned { align, .. } => align.clamp(GRAIN, MOST_BYTES).next_power_of_two(),
                _ => GRAIN,
            };
            self.all.push(Object {
                bytes,
                align,
                lifetime_bytes: u64::MAX,
            });
            self.steps.push(Step::Begin(next));
            self.allocated_bytes = self.allocated_bytes.saturating_add(bytes);
        }
        Ok(())
    }

    /// Returns the size of a packing in which objects with a longer life than `long` lie apart.
    fn pack(&self, long: u64) -> u64 {
        let mut arenas = [Arena::default(), Arena::default()];
        let mut places = vec![0; self.all.len()];
        for step in &self.steps {
            let (Step::Begin(which) | Step::End(which)) = *step;
            let object = &self.all[which];
            let arena = &mut arenas[usize::from(object.lifetime_bytes > long)];
            let bytes = object.bytes.max(1).next_multiple_of(GRAIN);
            match step {
                Step::Begin(_) => places[which] = arena.take(bytes, object.align),
                Step::End(_) => arena.give(places[which], bytes),
            }
        }
        arenas.iter().map(|arena| arena.end).sum()
    }
}

/// A range of memory that grows at its end, and never shrinks.
#[derive(Default)]
struct Arena {
    end: u64,
    /// Free ranges by their starts, with their lengths; no two of them are adjacent.
    free: BTreeMap<u64, u64>,
    /// The free ranges by length: length and start.
    by_length: BTreeSet<(u64, u64)>,
}

impl Arena {
    /// Returns the start of a new object: in the shortest free range that certainly fits it, or
    /// else at the end.
    fn take(&mut self, bytes: u64, align: u64) -> u64 {
        let surely = bytes + align - GRAIN;
        let (length, start) = match self.by_length.range((surely, 0)..).next() {
            Some(range) => *range,
            None => match self.free.last_key_value() {
                Some((start, length)) if start + length == self.end => (*length, *start),
                _ => (0, self.end),
            },
        };
        self.remove(start, length);
        let place = start.next_multiple_of(align);
        self.insert(start, place - start);
        self.insert(
            place + bytes,
            (start + length).saturating_sub(place + bytes),
        );
        self.end = self.end.max(place + bytes);
        place
    }

    /// Frees an object, and joins its range with the free ranges beside it.
    fn give(&mut self, mut start: u64, mut length: u64) {
        if let Some((&before, &size)) = self.free.range(..start).next_back()
            && before + size == start
        {
            self.remove(before, size);
            (start, length) = (before, size + length);
        }
        if let Some(&size) = self.free.get(&(start + length)) {
            self.remove(start + length, size);
            length += size;
        }
        self.insert(start, length);
    }

    fn insert(&mut self, start: u64, length: u64) {
        if length > 0 {
            self.free.insert(start, length);
            self.by_length.insert((length, start));
        }
    }

    fn remove(&mut self, start: u64, length: u64) {
        self.free.remove(&start);
        self.by_length.remove(&(length, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Objects with their sizes and alignments, each ending some objects later.
    fn packed(lives: &[(u64, u64, usize)]) -> Objects {
        let mut objects = Objects::new(room::refusal);
        let mut due: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (index, &(size, align, life)) in lives.iter().enumerate() {
            for index in due.remove(&index).unwrap_or_default() {
                let token = crate::Token { thread: 0, index };
                objects.event(0, &Event::Free { token }).unwrap();
            }
            let variant = crate::Variant::ALL[0];
            let begin = Event::Aligned {
                align,
                size,
                variant,
            };
            objects.event(0, &begin).unwrap();
            due.entry(index + life).or_default().push(index as u64);
        }
        objects
    }

    #[test]
    fn more_objects_than_memory_has_room_for_are_refused_in_one_line() {
        let mut objects = Objects::new(|bytes| (bytes > 1 << 20).then(|| "too many".into()));
        let begin = Event::Malloc {
            size: 1,
            operator: false,
        };
        let refused = (0..20_000).find_map(|_| objects.event(0, &begin).err());
        assert_eq!(
            refused.unwrap().to_string(),
            "a packing takes memory for each object, and there are more than 16384: too many; \
             leave out --packing, or take a machine with more memory"
        );
    }

    #[test]
    fn a_hole_is_used_again_and_the_smallest_that_fits_is_taken() {
        // 64, 32, 16; the first two end; 32 fits the second hole, 64 the first.
        let lives = [
            (64, 16, 4),
            (16, 16, 9),
            (32, 16, 2),
            (16, 16, 9),
            (32, 16, 9),
            (64, 16, 9),
        ];
        assert_eq!(packed(&lives).pack(u64::MAX), 128);
    }

    #[test]
    fn long_lives_apart_leave_no_holes_between_short_ones() {
        // Every other one of the first 200 objects stays. All later objects are larger than the holes between these.
        let first = (0..200).map(|n| (64, 16, if n % 2 == 0 { 200 - n } else { 1000 }));
        let second = (200..250).map(|n| (128, 16, 250 - n));
        let lives: Vec<_> = first.chain(second).chain([(16, 16, 1)]).collect();
        let objects = packed(&lives);
        assert_eq!(objects.pack(u64::MAX), 200 * 64 + 50 * 128);
        assert_eq!(objects.pack(1 << 14), 100 * 64 + 16 + 50 * 128);
    }

    proptest! {
        #[test]
        fn live_objects_never_overlap_and_lie_at_their_alignments(
            lives in prop::collection::vec((0..5000u64, (4..13u32).prop_map(|shift| 1u64 << shift), 1..40usize), 1..300),
        ) {
            let (mut arena, mut live) = (Arena::default(), BTreeMap::new());
            for (number, (bytes, align, life)) in lives.iter().enumerate() {
                let bytes = (*bytes).max(1).next_multiple_of(GRAIN);
                let ended: Vec<_> = live.extract_if(.., |_, (_, last)| *last <= number).collect();
                for (start, (bytes, _)) in ended {
                    arena.give(start, bytes);
                }
                let start = arena.take(bytes, *align);
                prop_assert!(start.is_multiple_of(*align) && start + bytes <= arena.end);
                let before = live.range(..=start).next_back();
                prop_assert!(before.is_none_or(|(place, (length, _))| place + length <= start));
                let after = live.range(start..).next();
                prop_assert!(after.is_none_or(|(place, _)| start + bytes <= *place));
                live.insert(start, (bytes, number + life));
                let held: u64 = live.values().map(|(length, _)| length).sum();
                let free: u64 = arena.free.values().sum();
                prop_assert_eq!(held + free, arena.end);
            }
        }
    }
}
