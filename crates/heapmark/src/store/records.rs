//! The records of a run, found by cell. The latest record of a cell counts, at the place of the
//! first.

use super::Record;
use crate::plan::CellId;
use std::collections::HashMap;

/// Records, one per cell.
#[derive(Default)]
pub struct Records {
    all: Vec<Record>,
    places: HashMap<CellId, usize>,
}

impl Records {
    /// Adds a record, replacing an earlier one of its cell; returns its place.
    pub fn add(&mut self, record: Record) -> usize {
        let cell = record.cell.clone();
        let place = *self.places.entry(cell).or_insert(self.all.len());
        match self.all.get_mut(place) {
            Some(earlier) => *earlier = record,
            None => self.all.push(record),
        }
        place
    }

    /// The record of a cell.
    pub fn get(&self, cell: &str) -> Option<&Record> {
        self.places.get(cell).map(|place| &self.all[*place])
    }

    /// Whether a cell has a record.
    pub fn has(&self, cell: &str) -> bool {
        self.places.contains_key(cell)
    }

    /// All of them, in the order of their cells' first ones.
    pub fn all(&self) -> &[Record] {
        &self.all
    }

    /// As [`Records::all`], without the index.
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
