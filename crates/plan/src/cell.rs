//! A cell: one process of a plan, and its name.

use super::Limit;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a cell, unique in a run: `larson@2/b03/jemalloc`; `larson@2/b03.1/jemalloc` if the block has several parts,
/// `larson@2/b03~1/jemalloc` if it is run once more; `larson@2/check/jemalloc`, `larson@2/calibration`;
/// `larson@2/limit/23068672.0/jemalloc`, `larson@2/b03/x1.25/jemalloc` under a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CellId(String);

impl CellId {
    /// Returns the name of a process of a block; `part` if the block has several, `attempt` 0 the first time.
    pub fn of_block(case: &str, block: u32, part: Option<u32>, attempt: u32, row: &str) -> CellId {
        let part = part.map_or(String::new(), |part| format!(".{part}"));
        let attempt = if attempt == 0 {
            String::new()
        } else {
            format!("~{attempt}")
        };
        CellId(format!("{case}/b{block:02}{part}{attempt}/{row}"))
    }

    /// Returns the name of the checked process of a row.
    pub fn of_check(case: &str, row: &str) -> CellId {
        CellId(format!("{case}/check/{row}"))
    }

    /// Returns the name of the process that finds out how long a case takes.
    pub fn of_calibration(case: &str) -> CellId {
        CellId(format!("{case}/calibration"))
    }

    /// Returns the name of the first duet of a case: the baseline with itself.
    pub fn of_trial(case: &str, row: &str) -> CellId {
        CellId(format!("{case}/duet/{row}"))
    }

    /// Returns the name of one of the processes that look for the smallest limit; `bytes` is `None` without a limit.
    pub fn of_search(case: &str, bytes: Option<u64>, which: u32, row: &str) -> CellId {
        match bytes {
            Some(bytes) => CellId(format!("{case}/limit/{bytes}.{which}/{row}")),
            None => CellId(format!("{case}/limit/none/{row}")),
        }
    }

    /// Returns the name of a timed process whose limit is this many per cent of the smallest one.
    pub fn of_limited(case: &str, block: u32, percent: u32, row: &str) -> CellId {
        let times = f64::from(percent) / 100.0;
        CellId(format!("{case}/b{block:02}/x{times}/{row}"))
    }

    /// Returns the name of the process that looks at calls of one kind.
    pub fn of_corner(allocator: &str, corner: &str) -> CellId {
        CellId(format!("corners/{allocator}/{}", corner.replace(' ', "-")))
    }

    /// Returns the name as that of a file: `memory@2/b03/jemalloc` becomes `memory@2_b03_jemalloc`.
    pub fn file_stem(&self) -> String {
        self.0.replace('/', "_")
    }
}

impl std::ops::Deref for CellId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for CellId {
    fn eq(&self, name: &str) -> bool {
        self.0 == *name
    }
}

impl PartialEq<&str> for CellId {
    fn eq(&self, name: &&str) -> bool {
        self.0 == *name
    }
}

/// Lets a map of cells be searched with a `&str`.
impl std::borrow::Borrow<str> for CellId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A cell's name as it was stored.
impl<S: Into<String>> From<S> for CellId {
    fn from(name: S) -> CellId {
        CellId(name.into())
    }
}

/// One process to run, with all that is needed to run it again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The cell's name, unique in a plan.
    pub id: CellId,
    /// Index of the cell's case.
    pub case: usize,
    /// Name of the cell's allocator, or of its program's row.
    pub allocator: String,
    /// Block, from 0.
    pub block: u32,
    /// Part of the block, from 0: pairs the processes that are compared.
    pub part: u32,
    /// How often this part was run before.
    pub attempt: u32,
    /// The cell's position in its part, from 0.
    pub position: u32,
    /// Random state of the workload: the same for every allocator of a block.
    pub seed: u64,
    /// Bytes of padding in the environment, which move the stack (0 to 4095).
    pub padding: u32,
    /// The cell's limit, in a run that looks for the smallest one; also set for processes of such a run that have no limit.
    pub limit: Option<Limit>,
}

/// What runs in one go: the baseline and a few others, in random order. Compared processes are neighbours in time.
pub type Part = Vec<Cell>;
