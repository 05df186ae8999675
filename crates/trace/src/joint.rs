//! Sizes together with lifetimes, and how many objects another thread frees: the model of a heap.

use super::check::alone;
use super::fault::{Fault, Result};
use super::{Event, Live, Reader};
use heapmark_wire::bucket_of;
use std::collections::BTreeMap;

/// The most rows that a table may have: a workload can read this many.
const MOST_ROWS: usize = 4096;

/// Objects of about one size that live about equally long: lifetimes of a row lie between two powers
/// of two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JointRow {
    /// The number of objects.
    pub count: u64,
    /// Bytes requested by all of these objects.
    pub size_sum: u128,
    /// Bytes that were allocated during the lives of the objects, their own bytes included. The life of an object that
    /// is alive at the end of the trace ends there, so that mean live bytes are those of the trace.
    pub lifetime_sum: u128,
    /// How many objects were freed by a thread other than the one that allocated them.
    pub freed_remotely: u64,
}

impl JointRow {
    fn add(&mut self, more: &JointRow) {
        self.count += more.count;
        self.size_sum += more.size_sum;
        self.lifetime_sum += more.lifetime_sum;
        self.freed_remotely += more.freed_remotely;
    }
}

/// The bucket of the sizes, and the power of two of the lifetimes.
type Key = (usize, u32);

#[derive(Default)]
struct Count {
    live: Live<Option<(u64, u64)>>,
    rows: BTreeMap<Key, JointRow>,
    allocated_bytes: u64,
    events: u64,
}

/// Counts the objects of a trace by size and lifetime. Everything before any damage counts; the
/// damage is returned with the result. Objects from before the trace are left out: their lifetimes
/// are not known.
pub fn joint(mut reader: Reader) -> (Vec<JointRow>, Option<Fault>) {
    let mut count = Count::default();
    let mut damage = None;
    while let Some(next) = reader.next() {
        let followed =
            next.and_then(|(thread, event)| count.event(thread, &event, reader.is_inherited()));
        if let Err(fault) = followed {
            damage = Some(fault.at(reader.chunk_number(), count.events));
            break;
        }
    }
    let Count {
        live,
        mut rows,
        allocated_bytes,
        ..
    } = count;
    for object in live.into_objects().filter_map(|(_, object)| object) {
        end(&mut rows, object, allocated_bytes, false);
    }
    (coarsened(rows).into_values().collect(), damage)
}

impl Count {
    fn event(&mut self, thread: u32, event: &Event, is_inherited: bool) -> Result<()> {
        alone(event)?;
        let before = self.allocated_bytes;
        let about = |size, _: Option<&_>| (!is_inherited).then_some((size, before));
        let ended = self.live.follow(thread, event, about)?;
        if let Some((Some(object), token)) = ended.zip(event.ends()) {
            end(&mut self.rows, object, before, token.thread != thread);
        }
        if let Some(size) = event.begins().filter(|_| !is_inherited) {
            self.allocated_bytes = self.allocated_bytes.saturating_add(size);
        }
        self.events += 1;
        Ok(())
    }
}

/// Counts an object that ends, given its size and the bytes that had been allocated when it began.
fn end(rows: &mut BTreeMap<Key, JointRow>, object: (u64, u64), now: u64, is_remote: bool) {
    let (size, before) = object;
    let lifetime = now - before;
    let key = (bucket_of(size), lifetime.max(1).ilog2());
    rows.entry(key).or_default().add(&JointRow {
        count: 1,
        size_sum: size.into(),
        lifetime_sum: lifetime.into(),
        freed_remotely: is_remote.into(),
    });
}

/// Merges neighbouring sizes until the table is short enough.
fn coarsened(rows: BTreeMap<Key, JointRow>) -> BTreeMap<Key, JointRow> {
    let mut coarse = rows;
    while coarse.len() > MOST_ROWS {
        let mut halved = BTreeMap::<Key, JointRow>::new();
        for ((bucket, power), more) in coarse {
            halved.entry((bucket / 2, power)).or_default().add(&more);
        }
        coarse = halved;
    }
    coarse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_table_becomes_short_and_loses_no_object() {
        let mut rows = BTreeMap::new();
        for size in 1..=10_000 {
            end(&mut rows, (size, 0), size, size % 2 == 0);
            end(&mut rows, (size, 0), size << 20, false);
        }
        // 20,000 pairs of a bucket of sizes and a power of two, or as many as there are buckets.
        let before = rows.len();
        for more in 0..20u64 {
            (1..128).for_each(|size| end(&mut rows, (size, 0), size << more, false));
        }
        assert!(rows.len() > before);
        for size in 1..128 {
            (20..60).for_each(|power| end(&mut rows, (size, 0), 1 << power, false));
        }
        assert!(rows.len() > MOST_ROWS, "{}", rows.len());
        let all = |rows: &BTreeMap<Key, JointRow>, of: fn(&JointRow) -> u128| {
            rows.values().map(of).sum::<u128>()
        };
        let sums = |rows: &BTreeMap<Key, JointRow>| {
            [
                all(rows, |row| row.count.into()),
                all(rows, |row| row.size_sum),
                all(rows, |row| row.lifetime_sum),
                all(rows, |row| row.freed_remotely.into()),
            ]
        };
        let expected = sums(&rows);
        let coarse = coarsened(rows);
        assert!(coarse.len() <= MOST_ROWS && coarse.len() > MOST_ROWS / 4);
        assert_eq!(sums(&coarse), expected);
    }
}
