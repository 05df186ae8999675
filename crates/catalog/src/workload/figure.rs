//! A number that a kernel or a program reports of itself, as data: `[[figures]]` of its workload.
//! Tables, legends, exports and comparisons follow from it.

use serde::{Deserialize, Serialize};

/// A figure. A kernel that several workloads run has it in the file of one of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// The file that it stands in.
    #[serde(skip)]
    pub file: String,
    /// The workload of that file.
    #[serde(skip)]
    pub workload: String,
    /// The figure's name in reports, in files and on the command line.
    pub key: String,
    /// What it is, in a sentence.
    pub noun: String,
    /// What it is measured in.
    pub unit: Unit,
    /// Which direction is good.
    #[serde(default)]
    pub better: Better,
    /// The kind of run that shows it; without one, both.
    pub mode: Option<FigureMode>,
    /// Whether rows are judged by it, by the ranges of its values.
    #[serde(default)]
    pub judged: bool,
    /// One line of explanation.
    pub about: String,
    /// The title of its column; without one it is only in exports.
    pub column: Option<String>,
    /// The figure's line below the tables, which may explain several columns.
    pub legend: Option<String>,
    /// What else is done with it.
    pub role: Option<FigureRole>,
}

/// What a number is measured in.
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
    /// A ratio of two numbers of one unit.
    Times,
    /// A part of a whole, 0 to 1.
    Share,
    /// Events.
    Count,
}

impl Unit {
    /// The unit's name in files.
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

/// Which direction of a number is good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    #[default]
    Lower,
    /// More is better.
    Higher,
    /// Neither: it describes.
    Neither,
}

impl Better {
    /// The direction that is good, in words.
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
    /// A kernel that times.
    Time,
    /// A kernel that measures memory.
    Memory,
}

/// What a section of a report does with a figure, beside its column.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureRole {
    /// Memory that is still growing if this is more than so much.
    GrowingAbove(f64),
    /// A ratio of times: a table of memory does not say that it differs from process to process.
    RatioOfTimes,
    /// The note names system calls; those that the baseline does not make stand below the table.
    SystemCalls,
    /// The note names files that are opened.
    KernelFiles,
    /// A line in the chart of memory over operations, named as its column.
    Line,
    /// What the first answer says of the memory of an allocator.
    Held(MemoryShape),
    /// Requests that are due / those of a closed loop.
    Load,
    /// The share of the time in which requests are served.
    Busy,
    /// The latency of so many of 100 requests that are due at times.
    OpenPercentile(f64),
    /// A percentile of a closed loop.
    ClosedPercentile(f64),
    /// The time of a pair of calls in batches of so many blocks.
    Batch(u32),
    /// Where blocks lie: 0 if as in a packed copy, 1 if as in a scattered one, by time.
    Placement,
    /// The pages of 1000 blocks in a row.
    Pages,
    /// Pages of the packed copy.
    PagesIfPacked,
    /// Pages of the scattered copy.
    PagesIfScattered,
}

/// What an allocator may be bad at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryShape {
    /// The highest resident heap over the most live bytes, of replays.
    Peak,
    /// What a pool of threads holds over one request's memory.
    Pool,
    /// The most that is held over what can be live, if one thread only frees.
    FanIn,
    /// The part of a burst that goes back while the process sleeps.
    Returned,
}

impl MemoryShape {
    /// All kinds, in the order of tables.
    pub const ALL: [MemoryShape; 4] = [
        MemoryShape::Peak,
        MemoryShape::Pool,
        MemoryShape::FanIn,
        MemoryShape::Returned,
    ];
}
