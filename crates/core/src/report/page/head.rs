//! The head of a page, for each run: the conclusion, how far to trust it, and where it was measured.

use super::ranking::{self, RankingBlock};
use super::series_legend::{LegendRun, SeriesLegend};
use crate::analyse::{Analysis, distinct};
use crate::report::text::{count, join};
use crate::report::{conclusion, machine, units, user_command};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most workloads that a title names.
const MOST_NAMES: usize = 3;

/// How far the A/A copies may be from the baseline before most verdicts of a run are in doubt.
const MOST_APART: f64 = 0.05;

/// The head of a page, for each run.
#[derive(Default, Serialize)]
pub struct Head {
    /// The title of the run, if there are several.
    pub label: Option<String>,
    /// The conclusion.
    pub verdict: String,
    /// How far to trust the run: badges that link to the evidence.
    pub badges: Vec<Badge>,
    /// The machine.
    pub machine: String,
    /// What was run, and when.
    pub says: String,
    pub ranking: Option<RankingBlock>,
}

/// A property of a run in a few words.
#[derive(Serialize)]
pub struct Badge {
    pub words: String,
    /// Whether the property is a reason for trust; otherwise it is a reason for doubt.
    pub good: bool,
}

pub fn heads(legend: &SeriesLegend) -> Vec<Head> {
    let rankings = ranking::blocks(legend);
    legend
        .runs
        .iter()
        .zip(rankings)
        .enumerate()
        .map(|(run, (legend_run, ranking))| Head {
            label: legend.caption(run),
            verdict: conclusion(&legend_run.analysis),
            badges: badges(&legend_run.analysis),
            machine: join(facts(&legend_run.run.head.machine), ", "),
            says: conclusion::head(legend_run.run.head, &legend_run.analysis),
            ranking,
        })
        .collect()
}

/// `heapmark: suite quick on AMD EPYC, 2026-01-01`.
pub fn title(legend: &SeriesLegend) -> String {
    let runs = distinct(legend.runs.iter().map(|legend_run| {
        let head = legend_run.run.head;
        let cpu = head
            .machine
            .get("cpu_model")
            .map(|cpu| format!(" on {cpu}"));
        let date = head.started.split('T').next().unwrap_or_default();
        let what = what(legend_run);
        format!("{what}{}, {date}", cpu.unwrap_or_default())
    }));
    format!("heapmark: {}", join(runs, " and "))
}

/// What was run: the command, the workloads, or the suite if there are many workloads.
fn what(legend_run: &LegendRun) -> String {
    if let Some((_, tried)) = user_command::of(&legend_run.analysis) {
        return user_command::heading(tried);
    }
    let head = legend_run.run.head;
    let cases = head.plan.cases.iter().filter(|case| !case.beside);
    let workloads = distinct(cases.map(|case| case.workload.as_str()));
    match workloads.len() {
        0..=MOST_NAMES => join(workloads, ", "),
        many => format!("suite {}, {many} workloads", head.suite),
    }
}

/// The most important properties of the machine, those that are known.
pub fn facts(machine: &BTreeMap<String, String>) -> Vec<String> {
    let known = |key: &str| machine.get(key).cloned();
    let memory = known("memory_total").and_then(|kib| {
        let kib: f64 = kib.split(' ').next()?.parse().ok()?;
        Some(format!("{} of memory", units::bytes(kib * 1024.0)))
    });
    [
        known("cpu_model"),
        known("usable_cpus").map(|cpus| count(cpus, "CPU")),
        memory,
        known("kernel").map(|kernel| format!("Linux {kernel}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How far to trust a run.
fn badges(analysis: &Analysis) -> Vec<Badge> {
    let processes = analysis
        .failures
        .iter()
        .map(|failure| failure.cells.len())
        .sum();
    let seen = &analysis.interference;
    let disturbed = seen.disturbed;
    let parts = count(seen.parts, "part");
    let warnings = analysis.machine_warnings.as_ref().map(Vec::len);
    let unusual = analysis.prices.as_ref().and_then(machine::price_warning);
    let few = |number: usize, noun: &str| Badge {
        words: count(number, noun),
        good: number == 0,
    };
    [
        copies(analysis),
        (seen.parts > 0).then(|| Badge {
            words: format!("{disturbed} of {parts} disturbed"),
            good: disturbed == 0,
        }),
        (seen.stalled > 0).then(|| Badge {
            words: format!("{} stalled", count(seen.stalled, "process")),
            good: false,
        }),
        warnings.map(|warnings| few(warnings, "machine warning")),
        unusual.map(|_| Badge {
            words: "page faults are expensive here".into(),
            good: false,
        }),
        Some(few(processes, "failure")),
        (analysis.unplanned > 0).then(|| few(analysis.unplanned, "ignored record")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// How far the A/A copies are from the baseline; nothing for a run that compares no times.
fn copies(analysis: &Analysis) -> Option<Badge> {
    let judged = analysis.cases.iter().filter(|case| !case.paced);
    let differing = judged.clone().filter(|case| case.aa_copy_differs).count();
    judged.clone().next()?;
    Some(match analysis.copies() {
        None => Badge {
            words: "no A/A copy".into(),
            good: false,
        },
        Some(_) if differing > 0 => Badge {
            words: format!(
                "A/A differs in {differing} of {}",
                count(judged.count(), "case")
            ),
            good: false,
        },
        Some((least, most)) => Badge {
            words: if judged.count() == 1 {
                format!("A/A {least:.3}")
            } else {
                format!("A/A {least:.3} to {most:.3}")
            },
            good: least >= 1.0 / (1.0 + MOST_APART) && most <= 1.0 + MOST_APART,
        },
    })
}
