//! Which sizes are requested, and how long their blocks live: a table that the host computes from a workload's
//! parameters or reads from a file.

use crate::memory::HarnessTable;
use crate::rng::SplitMix;

/// How long blocks of a row live.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LifetimeUnit {
    /// For this many births on average, as if each birth ended them with the same probability.
    Births,
    /// Until exactly this many bytes have been allocated, the blocks' own bytes included.
    Bytes,
}

/// Sizes, their lifetimes, and how often each pair occurs.
pub struct Lifetimes {
    unit: LifetimeUnit,
    rows: HarnessTable<LifetimeRow>,
}

/// A row of the table. Lifetimes refer to the allocations of one thread, if all threads allocate alike.
#[derive(Clone, Copy)]
struct LifetimeRow {
    size: u32,
    /// The number of births, or of bytes allocated after the block itself, until the block is freed.
    lifetime: f64,
    remote_share: f64,
    /// Summed weights of all rows up to this one: among blocks that are born, and among blocks that are live at any
    /// time.
    until: [f64; 2],
}

/// A drawn block: one that is born now, or one that is found alive.
#[derive(Clone, Copy)]
pub struct Drawn {
    pub size: u32,
    /// The rest of the block's life, in births or in bytes.
    pub left: f64,
    /// The part of the block's life that is over.
    pub age: f64,
    pub is_freed_remotely: bool,
}

impl Lifetimes {
    /// Reads `births` or `bytes`, then `SIZE:LIFETIME:WEIGHT:REMOTE,…`: lifetimes are those of a process with `threads`
    /// threads, `REMOTE` is in per cent.
    pub fn parse(text: &str, threads: usize) -> Lifetimes {
        let fault = |what: &str| -> ! { fail!("error", "`{what}` is no row of lifetimes") };
        let (unit, rows) = match text.split_once(' ') {
            Some(("births", rows)) => (LifetimeUnit::Births, rows),
            Some(("bytes", rows)) => (LifetimeUnit::Bytes, rows),
            _ => fault("a table without a unit"),
        };
        let mut table = HarnessTable::<LifetimeRow>::zeroed(rows.split(',').count());
        let mut until = [0.0; 2];
        for (place, row) in table.iter_mut().zip(rows.split(',')) {
            let mut words = row.split(':').map(|word| word.parse::<f64>().ok());
            let mut word = || words.next().flatten();
            let (Some(size), Some(lifetime), Some(weight), Some(remote)) =
                (word(), word(), word(), word())
            else {
                fault(row)
            };
            let own_bytes = match unit {
                LifetimeUnit::Births => 0.0,
                LifetimeUnit::Bytes => size,
            };
            let lifetime = (lifetime - own_bytes).max(0.0) / threads as f64;
            until[0] += weight;
            until[1] += weight * lifetime;
            *place = LifetimeRow {
                // A block of 0 bytes could not be distinguished from an empty slot.
                size: (size as u32).max(1),
                lifetime,
                remote_share: remote / 100.0,
                until,
            };
        }
        if until[0] <= 0.0 {
            fault(rows);
        }
        Lifetimes { unit, rows: table }
    }

    /// Whether lifetimes are given in bytes, not in births.
    pub fn are_bytes(&self) -> bool {
        self.unit == LifetimeUnit::Bytes
    }

    /// The largest size.
    pub fn largest(&self) -> u32 {
        self.rows.iter().map(|row| row.size).max().unwrap_or(0)
    }

    /// Mean number of live blocks of one thread, and the mean sum of their bytes.
    pub fn live(&self) -> [f64; 2] {
        let (mut before, mut sums) = ([0.0; 2], [0.0; 3]);
        for row in self.rows.iter() {
            let [born, live] = core::array::from_fn(|place| row.until[place] - before[place]);
            let size = f64::from(row.size);
            for (sum, more) in sums.iter_mut().zip([born * size, live, live * size]) {
                *sum += more;
            }
            before = row.until;
        }
        let [born_bytes, live, live_bytes] = sums;
        let per_birth = match self.unit {
            LifetimeUnit::Births => before[0],
            LifetimeUnit::Bytes => born_bytes,
        };
        [live / per_birth, live_bytes / per_birth]
    }

    /// Draws a block that is born.
    pub fn birth(&self, random: &mut SplitMix) -> Drawn {
        let row = self.draw(random, 0);
        let left = match self.unit {
            LifetimeUnit::Births => 1.0 + random.exponential() * (row.lifetime - 0.5).max(0.0),
            LifetimeUnit::Bytes => row.lifetime,
        };
        row.block(random, left, 0.0)
    }

    /// Draws one of the blocks that are live at any time.
    pub fn survivor(&self, random: &mut SplitMix) -> Drawn {
        let row = self.draw(random, 1);
        let (left, age) = match self.unit {
            // A block's age does not affect how long it will still live.
            LifetimeUnit::Births => {
                let mut part = || random.exponential() * row.lifetime;
                (part(), part())
            }
            LifetimeUnit::Bytes => {
                let left = random.unit() * row.lifetime;
                (left, row.lifetime - left)
            }
        };
        row.block(random, left, age)
    }

    fn draw(&self, random: &mut SplitMix, weights: usize) -> LifetimeRow {
        let all = self.rows[self.rows.len() - 1].until[weights];
        let ticket = random.unit() * all;
        let place = self
            .rows
            .partition_point(|row| row.until[weights] <= ticket);
        self.rows[place.min(self.rows.len() - 1)]
    }
}

impl LifetimeRow {
    fn block(&self, random: &mut SplitMix, left: f64, age: f64) -> Drawn {
        Drawn {
            size: self.size,
            left,
            age,
            is_freed_remotely: random.unit() < self.remote_share,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn what_lives_follows_from_rates_and_lifetimes() {
        // Half of the blocks live for 100 births, the others for 300: 50 + 150 blocks.
        let births = Lifetimes::parse("births 10:100:1:0,30:300:1:0", 1);
        assert_eq!(births.live(), [200.0, 50.0 * 10.0 + 150.0 * 30.0]);
        // A birth has 20 bytes on average; a block lives for 100 or 300 bytes after its own.
        let bytes = Lifetimes::parse("bytes 10:110:1:0,30:330:1:0", 1);
        assert_eq!(bytes.live(), [2.5 + 7.5, 2.5 * 10.0 + 7.5 * 30.0]);
        // With two threads, each has half of the blocks.
        let halves = Lifetimes::parse("bytes 10:110:1:0,30:330:1:0", 2);
        assert_eq!(halves.live(), [5.0, 125.0]);
    }

    #[test]
    fn survivors_are_those_that_live_long() {
        let lifetimes = Lifetimes::parse("bytes 10:110:9:0,30:930:1:100", 1);
        let mut random = SplitMix::new(1, 0);
        let mut large = 0;
        for _ in 0..10_000 {
            let block = lifetimes.survivor(&mut random);
            let is_large = block.size == 30;
            large += u32::from(is_large);
            let expected = if is_large { 900.0 } else { 100.0 };
            assert!((block.left + block.age - expected).abs() < 1e-9);
            assert_eq!(block.is_freed_remotely, is_large);
        }
        assert!((4800..5200).contains(&large), "{large}");
    }
}
