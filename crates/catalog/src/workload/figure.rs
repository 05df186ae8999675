//! A number that a kernel or a program reports about itself, as data: `[[figures]]` of its
//! workload. Tables, legends, exports and comparisons follow from it.

use serde::{Deserialize, Serialize};

/// A figure. If several workloads run one kernel, the file of one of them has the kernel's figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// The file that defines the figure.
    #[serde(skip)]
    pub file: String,
    /// The workload of that file.
    #[serde(skip)]
    pub workload: String,
    /// The figure's name in reports, in files and on the command line.
    pub key: String,
    /// What the figure is, as a noun in a sentence.
    pub noun: String,
    /// The unit of the figure.
    pub unit: Unit,
    /// Whether a lower or a higher figure is better.
    #[serde(default)]
    pub better: Better,
    /// The kind of run that shows the figure; without it, both kinds do.
    pub mode: Option<FigureMode>,
    /// Whether rows are judged by the figure, by the ranges of its values.
    #[serde(default)]
    pub judged: bool,
    /// One line of explanation.
    pub about: String,
    /// The title of the figure's column; without it, the figure is only in exports.
    pub column: Option<String>,
    /// The figure's line below the tables, which may explain several columns.
    pub legend: Option<String>,
    /// What else reports do with the figure.
    pub role: Option<FigureRole>,
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Bytes in GiB times seconds.
    #[serde(rename = "GiB s")]
    GibSeconds,
    /// Operations per microsecond.
    #[serde(rename = "Mops/s")]
    MopsPerS,
    /// A ratio of two numbers with the same unit.
    Times,
    /// A part of a whole, 0 to 1.
    Share,
    /// A number of events.
    Count,
}

impl Unit {
    /// Returns the unit's name in files.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::Bytes => "bytes",
            Unit::GibSeconds => "GiB s",
            Unit::MopsPerS => "Mops/s",
            Unit::Times => "times",
            Unit::Share => "share",
            Unit::Count => "count",
        }
    }
}

/// Whether a lower or a higher number is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    #[default]
    Lower,
    /// More is better.
    Higher,
    /// Neither: the number only describes.
    Neither,
}

impl Better {
    /// Returns the direction that is good, in words.
    pub fn word(self) -> &'static str {
        match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "neither",
        }
    }
}

/// A kind of run whose tables have figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureMode {
    /// A run that measures time.
    Time,
    /// A run that measures memory.
    Memory,
}

/// What a section of a report does with a figure, beside its column.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureRole {
    /// A growth of memory: above this limit, the memory is still growing.
    GrowingAbove(f64),
    /// A ratio of times: a table of memory does not note that the ratio varies between processes.
    RatioOfTimes,
    /// The figure's note names system calls; those that the baseline does not make are listed below
    /// the table.
    SystemCalls,
    /// The figure's note names files that are opened.
    KernelFiles,
    /// A line in the chart of memory over operations, named as its column.
    Line,
    /// A number for the answer about memory, for this aspect of it.
    Held(MemoryShape),
    /// Requests that are due, as a ratio to the requests in a closed loop.
    Load,
    /// The share of the time in which requests are served.
    Busy,
    /// This percentile of the latencies of requests that are due at set times.
    OpenPercentile(f64),
    /// This percentile of the latencies of requests in a closed loop.
    ClosedPercentile(f64),
    /// The time of a pair of calls in batches of this many blocks.
    Batch(u32),
    /// How blocks are placed, judged by access times: 0 as in a packed copy, 1 as in a scattered
    /// one.
    Placement,
    /// The number of pages with 1000 consecutive blocks.
    Pages,
    /// The number of pages in the packed copy.
    PagesIfPacked,
    /// The number of pages in the scattered copy.
    PagesIfScattered,
}

/// An aspect of memory in which an allocator may be bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryShape {
    /// The highest resident heap in replays, as a ratio to the most live bytes.
    Peak,
    /// The memory that a pool of threads holds, as a ratio to the memory of one request.
    Pool,
    /// The most memory that is held while one thread only frees, as a ratio to what can be live.
    FanIn,
    /// The part of a burst's memory that is returned while the process sleeps.
    Returned,
}

impl MemoryShape {
    /// All of these aspects, in the order of tables.
    pub const ALL: [MemoryShape; 4] = [
        MemoryShape::Peak,
        MemoryShape::Pool,
        MemoryShape::FanIn,
        MemoryShape::Returned,
    ];
}
