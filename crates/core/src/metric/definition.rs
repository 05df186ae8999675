//! What a metric is: its key, its words, how it is judged, and how it is computed for a process.

use super::process::Process;
use crate::catalog::workload::{Better, Figure, FigureRole, Unit};
use crate::execute::Measurement;
use crate::observe::mean_heap::MeanHeap;
use crate::observe::memory_profile::MemoryProfile;
use heapmark_stats::BETWEEN_RUNS;
use std::collections::BTreeMap;

/// A number for each process.
#[derive(Debug)]
pub struct Metric {
    /// The metric's name in files and on the command line.
    pub key: &'static str,
    /// A shorter name that the command line accepts, too.
    pub alias: Option<&'static str>,
    /// The noun for the metric in a sentence, such as `time` or `instructions`.
    pub noun: &'static str,
    /// The unit of the values.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// Whether rows are judged by the metric, and how.
    pub judged: Judged,
    /// The metric's explanation, in one line.
    pub about: &'static str,
    /// How the value of a process is computed.
    pub of: Value,
    /// The entry in a workload's file that the metric is made from, if any.
    pub figure: Option<&'static Figure>,
}

/// How rows are judged by a metric. Each judged metric is a family of tests, so only a few metrics are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Not judged, only described.
    No,
    /// Judged by a test on pairs: the value varies from process to process.
    ByTest,
    /// Judged by the ranges of the values, which hardly vary from process to process.
    ByRange,
}

impl Judged {
    /// How rows are judged, in words.
    pub fn word(self) -> &'static str {
        match self {
            Judged::No => "no",
            Judged::ByTest => "by test",
            Judged::ByRange => "by range",
        }
    }
}

/// How a metric is computed for a process.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Computed from the figures of a timed process.
    Process(fn(&Process) -> Option<f64>),
    /// Computed from all that is known of a process.
    Sample(fn(&Sample) -> Option<f64>),
    /// Computed from the memory of a process that was sampled.
    Memory(fn(&MemoryProfile) -> Option<f64>),
    /// Computed from the figures of the row's check: one value, however many processes there are.
    Check(fn(&BTreeMap<String, f64>) -> Option<f64>),
    /// A figure that the process reports, per operation.
    PerOperation,
    /// A figure that the process reports under the metric's key.
    Figure,
    /// A property of all processes of a row together.
    Row,
}

/// A process as the input of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The measurement of the process.
    pub measurement: &'a Measurement,
    /// The process's times; `None` if there is nothing to divide.
    pub process: Option<Process<'a>>,
    /// The process's memory, if that was sampled.
    pub memory: Option<&'a MemoryProfile>,
    /// The average resident memory, if that was sampled.
    pub mean_heap: Option<&'a MeanHeap>,
}

/// A metric that is only described, and whose lower values are better; callers change what differs.
pub(super) const fn described(
    key: &'static str,
    noun: &'static str,
    unit: Unit,
    about: &'static str,
    of: Value,
) -> Metric {
    Metric {
        key,
        alias: None,
        noun,
        unit,
        better: Better::Lower,
        judged: Judged::No,
        about,
        of,
        figure: None,
    }
}

/// A figure that many processes report under this name, whatever they run.
pub(super) const fn figure(
    key: &'static str,
    noun: &'static str,
    unit: Unit,
    about: &'static str,
) -> Metric {
    described(key, noun, unit, about, Value::Figure)
}

impl Metric {
    pub(super) const fn judged_by_test(self, alias: &'static str) -> Metric {
        Metric {
            alias: Some(alias),
            judged: Judged::ByTest,
            ..self
        }
    }

    pub(super) const fn judged_by_range(self) -> Metric {
        Metric {
            judged: Judged::ByRange,
            ..self
        }
    }

    pub(super) const fn better(self, better: Better) -> Metric {
        Metric { better, ..self }
    }

    /// The value of a process.
    pub fn value(&self, sample: &Sample) -> Option<f64> {
        match self.of {
            Value::Process(of) => of(sample.process.as_ref()?),
            Value::Sample(of) => of(sample),
            Value::Memory(of) => of(sample.memory?),
            Value::PerOperation => sample
                .measurement
                .figures
                .get(&crate::execute::per_operation(self.key))
                .copied(),
            Value::Figure => sample.measurement.figures.get(self.key).copied(),
            Value::Check(_) | Value::Row => None,
        }
    }

    /// The further role of the metric, if it is a figure that has one.
    pub fn role(&self) -> Option<FigureRole> {
        self.figure?.role
    }

    /// The title of the metric's column, if it is a figure that has one.
    pub fn column(&self) -> Option<&'static str> {
        self.figure?.column.as_deref()
    }

    /// The metric's line below the tables, if it is a figure that has one.
    pub fn legend(&self) -> Option<&'static str> {
        self.figure?.legend.as_deref()
    }

    /// How far ln of ratios scatters from run to run beyond what blocks show, as the state of the machine differs: what a
    /// program holds, or counts, does not depend on that.
    pub fn between_runs(&self) -> f64 {
        match (self.judged, self.unit) {
            (Judged::ByRange, _) | (_, Unit::Bytes) => 0.0,
            _ => BETWEEN_RUNS,
        }
    }

    /// Whether the metric has this name on the command line.
    pub fn is_named(&self, name: &str) -> bool {
        self.key == name || self.alias == Some(name)
    }
}
