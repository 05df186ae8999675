//! Files that other benchmark tools read. Their formats have numbers and no outcomes: a row that
//! lacks a required value is left out and counted, never invented.

mod bmf;
mod github_action;
mod google_benchmark;
mod hyperfine;
mod perfetto;

pub use bmf::bmf;
pub use github_action::{bigger_is_better, smaller_is_better};
pub use google_benchmark::google_benchmark;
pub use hyperfine::hyperfine;
pub use perfetto::perfetto;

use super::text::{json, plain};
use crate::analyse::{Analysis, Spread, Table, TableRow};
use crate::metric::Better;
use crate::plan::row_name;
use serde::Serialize;
use std::collections::HashSet;

/// A file, and how much of the run it contains.
pub struct Foreign {
    pub text: String,
    /// The number of rows that the file contains.
    pub rows: usize,
    /// The number of rows that the format cannot represent.
    pub left_out: usize,
}

/// A row with numbers.
struct ExportedRow<'a> {
    /// The name in the form of a cell's: `churn@2/mimalloc3`.
    name: String,
    /// The indices of the case, and of the row in the case.
    place: (usize, usize),
    case: &'a Table,
    row: &'a TableRow,
}

/// A figure of a row, in the unit that other tools expect.
struct Figure {
    /// The figure's name for Bencher.
    slug: &'static str,
    /// The figure's name for readers.
    title: &'static str,
    unit: &'static str,
    better: Better,
    /// The median over processes.
    median: f64,
    /// The smallest and the largest value, if they are known.
    range: Option<[f64; 2]>,
}

impl ExportedRow<'_> {
    /// The row's times, rate and memory, as far as they are known.
    fn figures(&self) -> Vec<Figure> {
        let row = self.row;
        let time = |slug, title, spread: Spread| Figure {
            slug,
            title,
            unit: "ns/op",
            better: Better::Lower,
            median: spread.median,
            range: Some([spread.min, spread.max]),
        };
        let mops = row.rate();
        let rate = Figure {
            unit: "ops/s",
            better: Better::Higher,
            median: mops.median * 1e6,
            range: Some([mops.min, mops.max].map(|mops| mops * 1e6)),
            ..time("throughput", "throughput", mops)
        };
        let memory = row.median("peak_rss_bytes").map(|bytes| Figure {
            slug: "peak-rss",
            title: "peak RSS",
            unit: "bytes",
            better: Better::Lower,
            median: bytes,
            range: None,
        });
        let cpu = row
            .cell("cpu_ns_per_op")
            .map(|cell| time("cpu-time", "CPU time", cell.spread));
        let wall = time("latency", "time", row.time().spread);
        [Some(wall), Some(rate), cpu, memory]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Returns the element for this row from lists by case and row.
    fn own<'a, T>(&self, all: &'a [Vec<Vec<T>>]) -> &'a [T] {
        &all[self.place.0][self.place.1]
    }
}

/// Returns a document of the values that `tell` makes of the rows. A row is left out if it has no numbers or no unique name, or if `tell`
/// refuses it.
fn told<T, D: Serialize>(
    analysis: &Analysis,
    tell: impl Fn(&ExportedRow) -> Option<T>,
    document: impl FnOnce(Vec<T>) -> D,
) -> Foreign {
    let mut rows = Vec::new();
    let mut left_out = 0;
    let mut taken = HashSet::new();
    for (family, case) in analysis.cases.iter().enumerate() {
        for (place, row) in case.rows.iter().enumerate() {
            let cell = row_name(&case.workload, case.threads, &row.allocator);
            let entry = row.has_run().then(|| ExportedRow {
                name: plain(&cell),
                place: (family, place),
                case,
                row,
            });
            // The other tools identify entries by name, and attribute every time to the allocator.
            let entry = entry.filter(|entry| !case.paced && taken.insert(entry.name.clone()));
            match entry.and_then(|entry| tell(&entry)) {
                Some(element) => rows.push(element),
                None => left_out += 1,
            }
        }
    }
    Foreign {
        rows: rows.len(),
        text: json(&document(rows)),
        left_out,
    }
}
