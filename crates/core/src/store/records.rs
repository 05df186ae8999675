//! The records of a run, found by cell. The latest record of a cell counts, at the place of the
//! first.

use super::Record;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Returns how many seconds processes took; those that ran at the same time count by their share.
pub fn seconds_of_processes<'r>(records: impl IntoIterator<Item = &'r Record>) -> f64 {
    let wall_ns = |record: &Record| {
        let wall_ns = record.usage.as_ref().map_or(0, |usage| usage.wall_ns);
        wall_ns / record.at_once()
    };
    records.into_iter().map(wall_ns).sum::<u64>() as f64 / 1e9
}

/// Records, one per cell.
#[derive(Default)]
pub struct Records<S = RandomState> {
    all: Vec<Record>,
    /// Places by part of the hash of the cell's name, since the names of a million cells take much
    /// memory. If two cells have the same number, the second is under the next free number.
    places: HashMap<u32, u32>,
    hasher: S,
}

impl<S: BuildHasher> Records<S> {
    /// Adds a record, replacing an earlier one of its cell; returns its place.
    pub fn add(&mut self, record: Record) -> usize {
        match self.find(&record.cell) {
            Ok(place) => {
                self.all[place] = record;
                place
            }
            Err(free) => {
                let place = self.all.len();
                // The cast loses nothing: a file of more lines would not fit into memory.
                self.places.insert(free, place as u32);
                self.all.push(record);
                place
            }
        }
    }

    /// Returns the place of a cell's record, or the number under which it would be.
    fn find(&self, cell: &str) -> Result<usize, u32> {
        let mut number = self.hasher.hash_one(cell) as u32;
        loop {
            match self.places.get(&number) {
                None => return Err(number),
                Some(&place) if self.all[place as usize].cell == *cell => {
                    return Ok(place as usize);
                }
                Some(_) => number = number.wrapping_add(1),
            }
        }
    }

    /// Returns the record of a cell.
    pub fn get(&self, cell: &str) -> Option<&Record> {
        self.find(cell).ok().map(|place| &self.all[place])
    }

    /// Returns whether a cell has a record.
    pub fn has(&self, cell: &str) -> bool {
        self.find(cell).is_ok()
    }

    /// Returns the records, in the order in which each cell had its first record.
    pub fn all(&self) -> &[Record] {
        &self.all
    }

    /// Returns [`Records::all`] by value, without the index.
    pub fn into_all(self) -> Vec<Record> {
        self.all
    }
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let mut kept = Records::default();
        records.into_iter().for_each(|record| _ = kept.add(record));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Outcome;
    use crate::plan::Cell;
    use crate::store::Purpose;
    use std::hash::Hasher;

    /// Gives all names the same number.
    #[derive(Default)]
    struct Same;

    impl BuildHasher for Same {
        type Hasher = Same;

        fn build_hasher(&self) -> Same {
            Same
        }
    }

    impl Hasher for Same {
        fn finish(&self) -> u64 {
            u64::MAX
        }

        fn write(&mut self, _: &[u8]) {}
    }

    #[test]
    fn cells_whose_names_have_one_hash_are_told_apart() {
        let mut records = Records::<Same>::default();
        let record = |cell: &str, seed| {
            let cell = Cell {
                id: cell.into(),
                seed,
                ..Cell::default()
            };
            Record::new(Purpose::Sample, &cell, "churn", 1, Outcome::Ok)
        };
        let places = [("a", 1), ("b", 2), ("c", 3), ("b", 4)]
            .map(|(cell, seed)| records.add(record(cell, seed)));
        assert_eq!(places, [0, 1, 2, 1]);
        let seed = |cell| records.get(cell).map(|record| record.seed);
        assert_eq!(
            ["a", "b", "c", "d"].map(seed),
            [Some(1), Some(4), Some(3), None]
        );
        assert!(records.has("b") && !records.has("d"));
        assert_eq!(records.all().len(), 3);
    }
}
