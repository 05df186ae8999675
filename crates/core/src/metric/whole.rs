//! Metrics of whole processes: how long each took from its start to its end, and what its check
//! adds. Pauses come from the process of the check, which alone records them.

use super::Better::Neither;
use super::Unit::{Bytes, Count, Ns};
use super::definition::{Metric, Sample, Value, described, figure};
use crate::execute::Iteration;
use crate::execute::user_command::VALUE_COST;
use std::collections::BTreeMap;

pub const METRICS: &[Metric] = &[
    described(
        VALUE_COST,
        "own value",
        Count,
        "the number that the command reports of itself (`try --value`), the reciprocal of one of which more is better: below 1 is better",
        Value::Process(|process| process.value_cost()),
    )
    .judged_by_test("value"),
    described(
        "wall_ns",
        "time of the process",
        Ns,
        "from the start of the process to its end; of a server, the time of its client; none if it took turns with another process",
        Value::Sample(|sample| match sample.measurement.turns {
            None => Some(sum(sample, |one| one.wall_ns)),
            Some(_) => None,
        }),
    ),
    described(
        "cpu_ns",
        "CPU time of the process",
        Ns,
        "user and system CPU time of all its threads",
        Value::Sample(|sample| {
            let ns = sum(sample, |one| one.user_ns.saturating_add(one.sys_ns));
            let runs = sample
                .measurement
                .turns
                .as_ref()
                .map_or(1, |turns| turns.runs);
            (ns > 0.0).then_some(ns / f64::from(runs.max(1)))
        }),
    ),
    figure(
        "startup_ns",
        "start-up",
        Ns,
        "time of the same program with next to nothing to do",
    ),
    figure(
        "largest_process_rss_bytes",
        "largest process",
        Bytes,
        "highest resident set of the largest process of a tree, as the kernel counts it",
    ),
    figure(
        "end_rss_bytes",
        "resident at the end",
        Bytes,
        "resident set of the largest process when it ends by itself; of a server, that of all its processes when its client has ended",
    ),
    described(
        "rest_rss_bytes",
        "resident at rest",
        Bytes,
        "the same of a server in its check, a second after its client has ended",
        Value::Check(|figures| figures.get("rest_rss_bytes").copied()),
    ),
    described(
        "malloc_live_at_end_bytes",
        "live at the end",
        Bytes,
        "live blocks of malloc when end_rss_bytes is read, in glibc's usable bytes, in the baseline's check",
        Value::Check(|figures| figures.get("malloc_live_at_end_bytes").copied()),
    )
    .better(Neither),
    described(
        "longest_pause_ns",
        "longest pause",
        Ns,
        "the longest pause or release that the runtime or the program reported in its check",
        Value::Check(|figures| {
            longest(figures, |name| {
                ["pause_max_ns", "release_max_ns"].contains(&name)
            })
        }),
    ),
    described(
        "pauses",
        "pauses",
        Count,
        "pauses that it reported there; no value if it reports none at all",
        Value::Check(|figures| figures.get("pauses").copied()),
    ),
    described(
        "longest_step_ns",
        "longest step",
        Ns,
        "the longest building of one small tree there, by the program's own clock",
        Value::Check(|figures| longest(figures, |name| name.ends_with("_longest_build_ns"))),
    ),
    described(
        "peak_pss_bytes",
        "peak PSS",
        Bytes,
        "highest memory of the tree in its check, shared pages divided among the processes that share them",
        Value::Check(|figures| figures.get("peak_pss_bytes").copied()),
    ),
    described(
        "processes",
        "processes",
        Count,
        "processes of the tree that a witness reported in its check",
        Value::Check(|figures| figures.get("processes").copied()),
    )
    .better(Neither),
    described(
        "malloc_calls_per_operation",
        "calls of malloc",
        Count,
        "calls of allocating functions / operations, counted in its check",
        Value::Check(|figures| figures.get("malloc_calls_per_operation").copied()),
    ),
];

/// The sum of a time over the measured iterations.
fn sum(sample: &Sample, time: fn(&Iteration) -> u64) -> f64 {
    sample
        .measurement
        .measured()
        .map(|one| time(one) as f64)
        .sum()
}

/// Returns the largest of the figures whose names `wanted` accepts.
fn longest(figures: &BTreeMap<String, f64>, wanted: fn(&str) -> bool) -> Option<f64> {
    figures
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(_, value)| *value)
        .max_by(f64::total_cmp)
}
