//! The metrics of a process, one entry each: tables, exports, comparisons and documents are made from these. What heapmark computes itself
//! is listed here; the figures that a kernel or a program reports are in the file of its workload. Must not compare processes.

mod counts;
mod latency;
mod limit;
mod memory;
mod process;
mod time;
mod whole;

pub use crate::catalog::workload::{Better, FigureMode, FigureRole, MemoryShape, Unit};
pub use memory::{OVERHEAD_FROM_BYTES, blow_up, overhead_of};
pub use process::Process;
pub use time::{HELD_BEFORE, WALL};

use crate::catalog::faults::{self, Fault, Faults};
use crate::catalog::workload::{Figure, REPLAY};
use crate::catalog::{Catalog, workloads};
use crate::execute::Measurement;
use crate::observe::mean_heap::MeanHeap;
use crate::observe::memory_profile::MemoryProfile;
use crate::plan::{Case, Mode, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

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
        figure: None,
    }
}

/// A figure that many processes report under this name, whatever they run.
const fn figure(key: &'static str, noun: &'static str, unit: Unit, about: &'static str) -> Metric {
    described(key, noun, unit, about, Value::Figure)
}

/// The figures in the workloads' files, in the order of the files. Faults in the files are reported when the catalogue is loaded; a stored
/// run can be shown nevertheless.
static FIGURES: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let mut figures = Vec::new();
    for workload in workloads(&mut Vec::new()) {
        figures.extend(workload.figures);
    }
    figures.extend(REPLAY.figures.clone());
    figures.leak().iter().map(of_figure).collect()
});

fn of_figure(figure: &'static Figure) -> Metric {
    let metric = described(
        &figure.key,
        &figure.noun,
        figure.unit,
        &figure.about,
        Value::Figure,
    );
    Metric {
        better: figure.better,
        judged: match figure.judged {
            true => Judged::ByRange,
            false => Judged::No,
        },
        figure: Some(figure),
        ..metric
    }
}

/// Refuses figures of the catalogue that have the same name as another metric.
pub fn check(catalog: &Catalog) -> Result<(), Faults> {
    let mut names: BTreeSet<&str> = own()
        .flat_map(|metric| [Some(metric.key), metric.alias])
        .flatten()
        .collect();
    names.extend(REPLAY.figures.iter().map(|figure| figure.key.as_str()));
    let taken = (catalog.workloads.iter())
        .flat_map(|workload| &workload.figures)
        .filter(|figure| !names.insert(&figure.key))
        .map(|figure| {
            Fault::new(
                &figure.file,
                format!("{}: figures.{}", figure.workload, figure.key),
                "there is another metric of this name (heapmark list metrics)",
                "give it another `key`",
            )
        });
    faults::none(taken.collect())
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

    /// Whether the metric has this name on the command line.
    pub fn is_named(&self, name: &str) -> bool {
        self.key == name || self.alias == Some(name)
    }
}

/// The figures of workloads that belong in the tables of a run in this mode.
pub fn figures_of(mode: FigureMode) -> impl Iterator<Item = &'static Metric> {
    figures().filter(move |metric| {
        let only = metric.figure.and_then(|figure| figure.mode);
        only.is_none_or(|only| only == mode)
    })
}

/// The metrics of processes in this mode, in the order of the tables.
pub fn of_mode(mode: Mode) -> Vec<&'static Metric> {
    match mode {
        Mode::Time => time::METRICS
            .iter()
            .chain(figures_of(FigureMode::Time))
            .collect(),
        Mode::Latency { .. } => latency::METRICS.iter().collect(),
        Mode::Count(counter) => {
            let events = counter.events();
            counts::METRICS
                .iter()
                .filter(|metric| events.contains(&metric.key))
                .collect()
        }
        Mode::Memory => memory::METRICS
            .iter()
            .chain(figures_of(FigureMode::Memory))
            .collect(),
        Mode::Limit(_) => limit::METRICS.iter().collect(),
    }
}

/// The metric with this key, which must exist.
pub fn named(key: &str) -> &'static Metric {
    all()
        .find(|metric| metric.key == key)
        .unwrap_or_else(|| panic!("no metric {key}"))
}

/// The metrics of the timed processes of a case.
pub fn of_case(case: &Case) -> Vec<&'static Metric> {
    let mut metrics = of_mode(Mode::Time);
    if case.whole_process {
        metrics.extend(whole::METRICS);
    }
    metrics
}

/// The metrics of the processes of a run.
pub fn of_part(plan: &Plan) -> Vec<&'static Metric> {
    let whole = plan.cases.iter().find(|case| case.whole_process);
    match whole.filter(|_| plan.mode.spec().plain) {
        Some(case) => of_case(case),
        None => of_mode(plan.mode),
    }
}

/// The metrics that heapmark computes itself, or that many kinds of processes report.
fn own() -> impl Iterator<Item = &'static Metric> {
    [
        time::METRICS,
        whole::METRICS,
        memory::METRICS,
        counts::METRICS,
        latency::METRICS,
        limit::METRICS,
    ]
    .into_iter()
    .flatten()
}

/// The figures of workloads.
pub fn figures() -> impl Iterator<Item = &'static Metric> {
    FIGURES.iter()
}

/// All metrics.
pub fn all() -> impl Iterator<Item = &'static Metric> {
    own().chain(figures())
}

/// The figure with this role, if a workload has one.
pub fn with_role(role: FigureRole) -> Option<&'static Metric> {
    figures().find(|metric| metric.role() == Some(role))
}

/// The key of the figure with this role; empty if no workload has one.
pub fn key_in(role: FigureRole) -> &'static str {
    with_role(role).map_or("", |metric| metric.key)
}

/// The metrics by which rows can be judged.
pub fn judged() -> impl Iterator<Item = &'static Metric> {
    all().filter(|metric| metric.judged != Judged::No)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Counter;

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
    fn a_figure_with_the_name_of_another_metric_is_refused_with_file_and_key() {
        let mut catalog = Catalog::load().unwrap();
        check(&catalog).unwrap();
        let ours = include_str!("../../../../workloads/memory-shapes/shift.toml");
        for taken in ["ns_per_op", "wall", "ratchet_ratio"] {
            let text = ours
                .replace("name = \"shift\"", "name = \"mine\"")
                .replace("cycle_growth_share", taken);
            let mine = crate::catalog::workload::parse("mine.toml", &text, &mut Vec::new());
            catalog.workloads.extend(mine);
            let Faults(faults) = check(&catalog).unwrap_err();
            let fault = faults.last().unwrap();
            assert_eq!(
                (fault.file.as_str(), fault.key.clone()),
                ("mine.toml", format!("mine: figures.{taken}"))
            );
        }
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
            5
        );
    }
}
