//! A run, and its rows grouped for claims.

use heapmark_core::analyse::grid;
use heapmark_core::analyse::group::{CaseGroups, RecordsByRow, blocks_begun};
use heapmark_core::analyse::interference::{self, InterferenceSummary};
use heapmark_core::plan::CellId;
use heapmark_core::store::{Columns, Record, RunFile};
use std::collections::BTreeMap;

/// A run as read from its directory.
pub struct Measured {
    /// The content of `run.json`.
    pub head: RunFile,
    /// The run's records.
    pub records: Vec<Record>,
    /// Memory over time by cell, if it was recorded.
    pub series: BTreeMap<CellId, Columns>,
}

impl Measured {
    /// The number of blocks that the run has begun.
    pub fn blocks(&self) -> u32 {
        blocks_begun(&self.records)
    }
}

/// A run with its rows.
pub struct Scene<'a> {
    pub measured: &'a Measured,
    pub records: RecordsByRow<'a>,
    pub interference: InterferenceSummary,
    pub tables: Vec<CaseGroups<'a>>,
}

/// The facts by which two runs are known to be from one machine.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Machine<'a> {
    pub architecture: &'a str,
    pub cpu_model: &'a str,
    pub usable_cpus: &'a str,
}

impl<'a> Scene<'a> {
    pub fn new(measured: &'a Measured) -> Scene<'a> {
        let (records, interference) =
            interference::pass(&measured.records.iter().collect::<Vec<_>>());
        let records = RecordsByRow::new(records);
        Scene {
            measured,
            tables: grid(&measured.head, &records),
            records,
            interference,
        }
    }
    /// A fact about the run's machine; empty if the run does not have it.
    pub fn fact(&self, key: &str) -> &'a str {
        let fact = self.measured.head.machine.get(key);
        fact.map_or("", String::as_str)
    }

    /// The machine on which the run was made.
    pub fn machine(&self) -> Machine<'a> {
        Machine {
            architecture: self.fact("architecture"),
            cpu_model: self.fact("cpu_model"),
            usable_cpus: self.fact("usable_cpus"),
        }
    }
}
