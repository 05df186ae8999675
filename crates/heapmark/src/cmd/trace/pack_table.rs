//! The table of the pack of traces, as a Markdown page.

use crate::report::units;
use heapmark_trace::stats::{Histogram, Stats};

/// What the table tells of one trace.
pub struct PackRow<'a> {
    /// The real program.
    pub name: &'a str,
    /// What it does, in one line.
    pub about: &'a str,
    /// Its package and version.
    pub package: String,
    /// Its command line.
    pub command: String,
    /// Of the trace.
    pub stats: Stats,
    /// Of a packing of its blocks.
    pub packed_bytes: u64,
    /// Of the file.
    pub file_bytes: u64,
}

/// The page.
pub fn pack_table(rows: &[PackRow]) -> String {
    let bytes: u64 = rows.iter().map(|row| row.file_bytes).sum();
    let mut page = format!(
        "# Traces of real programs\n\n\
         Made by `heapmark trace make-pack` from generated inputs (docs/REAL-PROGRAMS.md); {} traces, {} bytes. \
         Sizes and lifetimes: median / 99th percentile; a lifetime is how many bytes were allocated meanwhile. \
         No allocator takes less than the peak of live bytes; beside it is a packing of the blocks that exists, without headers and with \
         all lifetimes known, and its size over that peak: not the best one (docs/TRACES.md). \
         How much replays of such programs hold beside the programs themselves: docs/TRACES.md#is-it-the-programs-memory.\n\n\
         | trace | package | events | threads | sizes | lifetimes | peak of live bytes | a packing | bytes of the file |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        rows.len(),
        bytes
    );
    for row in rows {
        let stats = &row.stats;
        page += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} ({:.2}x) | {} |\n",
            row.name,
            row.package,
            stats.events,
            stats.threads.len(),
            quantiles(&stats.sizes),
            quantiles(&stats.lifetimes_bytes),
            units::bytes(stats.peak_live_bytes as f64),
            units::bytes(row.packed_bytes as f64),
            row.packed_bytes as f64 / stats.peak_live_bytes.max(1) as f64,
            row.file_bytes
        );
    }
    for row in rows {
        page += &format!(
            "\n- **{}**: {}\n\n  ```\n  {}\n  ```\n",
            row.name, row.about, row.command
        );
    }
    page
}

fn quantiles(histogram: &Histogram) -> String {
    let quantile = |share| {
        let number = histogram.quantile(share);
        number.map_or("-".into(), |number| units::bytes(number as f64))
    };
    format!("{} / {}", quantile(0.5), quantile(0.99))
}
