//! The records of a run so far, found by cell.

use crate::store::Record;
use std::collections::HashMap;

/// The records so far, by cell.
#[derive(Default)]
pub(super) struct Known {
    pub(super) records: Vec<Record>,
    places: HashMap<String, usize>,
}

impl Known {
    pub(super) fn new(records: Vec<Record>) -> Known {
        let mut known = Known::default();
        records.into_iter().for_each(|record| known.add(record));
        known
    }

    pub(super) fn add(&mut self, record: Record) {
        self.places.insert(record.cell.clone(), self.records.len());
        self.records.push(record);
    }

    pub(super) fn get(&self, cell: &str) -> Option<&Record> {
        self.places.get(cell).map(|place| &self.records[*place])
    }

    pub(super) fn has(&self, cell: &str) -> bool {
        self.places.contains_key(cell)
    }
}
