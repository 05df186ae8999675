//! All metrics, and which of them a case, a mode or a role has.

use super::definition::{Judged, Metric, Value, described};
use super::{counts, latency, limit, memory, time, whole};
use crate::catalog::faults::{self, Fault, Faults};
use crate::catalog::workload::{Figure, FigureMode, FigureRole, REPLAY};
use crate::catalog::{Catalog, workloads};
use crate::plan::{Case, Mode, Plan};
use std::collections::BTreeSet;
use std::sync::LazyLock;

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
    use crate::catalog::workload::Better;
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
