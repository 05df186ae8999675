//! What can be said of a process, one entry each: tables, exports, comparisons and documents follow
//! from these. Must not compare processes.

mod counts;
mod latency;
mod limit;
mod memory;
mod open_loop;
mod process;
mod time;
mod whole;

pub use memory::{OVERHEAD_FROM_BYTES, blow_up, overhead_of};
pub use open_loop::LOAD;
pub use process::Process;
pub use time::{HELD_BEFORE, WALL};

use crate::execute::Measurement;
use crate::observe::mean_heap::MeanHeap;
use crate::observe::memory_profile::MemoryProfile;
use crate::plan::{Case, Mode};
use std::collections::BTreeMap;

/// One number per process.
#[derive(Debug)]
pub struct Metric {
    /// Its name in files and on the command line.
    pub key: &'static str,
    /// A shorter name that the command line takes, too.
    pub alias: Option<&'static str>,
    /// What it is, in a sentence: `time`, `instructions`.
    pub noun: &'static str,
    /// What it is measured in.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// Whether rows are judged by it.
    pub judged: Judged,
    /// One line of explanation.
    pub about: &'static str,
    /// The value of a process.
    pub of: Value,
}

/// What a metric is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes.
    Bytes,
    /// Bytes in GiB times seconds.
    GibSeconds,
    /// Operations per microsecond.
    MopsPerS,
    /// A ratio of two numbers of one unit.
    Times,
    /// A part of a whole, 0 to 1.
    Share,
    /// Events.
    Count,
}

impl Unit {
    /// Its name in files.
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

/// Which direction of a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less of it.
    Lower,
    /// More of it.
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

/// How rows are judged by a metric. Each judged metric is a family of tests, so there are few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It is only described.
    No,
    /// By a test on pairs: it varies from process to process.
    ByTest,
    /// By the ranges of its values: it hardly varies from process to process.
    ByRange,
}

impl Judged {
    /// How, in words.
    pub fn word(self) -> &'static str {
        match self {
            Judged::No => "no",
            Judged::ByTest => "by test",
            Judged::ByRange => "by range",
        }
    }
}

/// How a metric is read off a process.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// From the figures of a timed process.
    Process(fn(&Process) -> Option<f64>),
    /// From all that is known of a process.
    Sample(fn(&Sample) -> Option<f64>),
    /// From the memory of a process that was sampled.
    Memory(fn(&MemoryProfile) -> Option<f64>),
    /// From the figures of the row's check: one value, however many processes there are.
    Check(fn(&BTreeMap<String, f64>) -> Option<f64>),
    /// A figure that the process reports, per operation.
    PerOperation,
    /// A figure that its kernel reports by this name.
    Figure,
    /// It is a property of all processes of a row together.
    Row,
}

/// A process as metrics see it.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// What it measured.
    pub measurement: &'a Measurement,
    /// Its times; `None` if there is nothing to divide.
    pub process: Option<Process>,
    /// Its memory, if that was sampled.
    pub memory: Option<&'a MemoryProfile>,
    /// What was resident on average, if that was sampled.
    pub mean_heap: Option<&'a MeanHeap>,
}

/// A metric that is only described, and of which less is better, unless more is said.
const fn described(
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
    }
}

/// A figure that a kernel reports by this name.
const fn figure(key: &'static str, noun: &'static str, unit: Unit, about: &'static str) -> Metric {
    described(key, noun, unit, about, Value::Figure)
}

impl Metric {
    const fn judged_by_test(self, alias: &'static str) -> Metric {
        Metric {
            alias: Some(alias),
            judged: Judged::ByTest,
            ..self
        }
    }

    const fn judged_by_range(self) -> Metric {
        Metric {
            judged: Judged::ByRange,
            ..self
        }
    }

    const fn better(self, better: Better) -> Metric {
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

    /// Whether it goes by this name on the command line.
    pub fn is_named(&self, name: &str) -> bool {
        self.key == name || self.alias == Some(name)
    }
}

/// The metrics of processes of a run's kind, in the order of its tables.
pub fn of_mode(mode: Mode) -> Vec<&'static Metric> {
    match mode {
        Mode::Time => {
            let own = time::METRICS.iter().chain(open_loop::METRICS);
            own.chain(memory::BY_OTHERS).collect()
        }
        Mode::Latency { .. } => latency::METRICS.iter().collect(),
        Mode::Count(counter) => {
            let events = counter.events();
            counts::METRICS
                .iter()
                .filter(|metric| events.contains(&metric.key))
                .collect()
        }
        Mode::Memory => memory::METRICS.iter().chain(memory::BY_OTHERS).collect(),
        Mode::Limit(_) => limit::METRICS.iter().collect(),
    }
}

/// The metric of this key, which must exist.
pub fn named(key: &str) -> &'static Metric {
    all()
        .find(|metric| metric.key == key)
        .unwrap_or_else(|| panic!("no metric {key}"))
}

/// Those of the timed processes of a case.
pub fn of_case(case: &Case) -> Vec<&'static Metric> {
    let mut metrics = of_mode(Mode::Time);
    if case.whole_process {
        metrics.extend(whole::METRICS);
    }
    metrics
}

/// All metrics.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    [
        time::METRICS,
        open_loop::METRICS,
        whole::METRICS,
        memory::METRICS,
        memory::BY_OTHERS,
        counts::METRICS,
        latency::METRICS,
        limit::METRICS,
    ]
    .into_iter()
    .flatten()
}

/// Those that rows are judged by, by their names on the command line.
pub fn judged() -> impl Iterator<Item = &'static Metric> {
    all().filter(|metric| metric.judged != Judged::No)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Counter;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_metrics_have_one_name() {
        let names: Vec<&str> = all()
            .flat_map(|metric| [Some(metric.key), metric.alias])
            .flatten()
            .collect();
        assert_eq!(
            names.iter().collect::<BTreeSet<_>>().len(),
            names.len(),
            "{names:?}"
        );
    }

    #[test]
    fn every_event_that_can_be_counted_is_a_metric() {
        for counter in [Counter::Callgrind, Counter::Perf, Counter::Kernel] {
            let found: Vec<&str> = of_mode(Mode::Count(counter))
                .iter()
                .map(|metric| metric.key)
                .collect();
            assert_eq!(found, counter.events(), "{counter:?}");
        }
    }

    #[test]
    fn what_is_judged_has_a_direction_and_few_metrics_are_judged_by_tests() {
        assert!(judged().all(|metric| metric.better != Better::Neither));
        assert_eq!(
            all()
                .filter(|metric| metric.judged == Judged::ByTest)
                .count(),
            4
        );
    }
}
