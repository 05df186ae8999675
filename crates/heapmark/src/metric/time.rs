//! Metrics of timed processes: time, and the memory that is seen in passing.

use super::{Better, Judged, Metric, Sample, Unit, Value};
use crate::execute::Iteration;

const NS: Metric = Metric {
    key: "",
    alias: None,
    noun: "",
    unit: Unit::Ns,
    better: Better::Lower,
    judged: Judged::No,
    about: "",
    of: Value::Row,
};

/// Wall time, by which rows are compared unless another metric is named.
pub const WALL: &Metric = &METRICS[0];

pub(super) const METRICS: &[Metric] = &[
    Metric {
        key: "ns_per_op",
        alias: Some("wall"),
        noun: "time",
        judged: Judged::ByTest,
        about: "wall time x threads / operations",
        of: Value::Process(|process| Some(process.ns_per_op)),
        ..NS
    },
    Metric {
        key: "cpu_ns_per_op",
        alias: Some("cpu"),
        noun: "CPU time",
        judged: Judged::ByTest,
        about: "CPU time of the process / operations",
        of: Value::Process(|process| process.cpu_ns_per_op),
        ..NS
    },
    Metric {
        key: "mops_per_s",
        noun: "throughput",
        unit: Unit::MopsPerS,
        better: Better::Higher,
        about: "operations of all threads per microsecond",
        of: Value::Process(|process| Some(process.mops_per_s)),
        ..NS
    },
    Metric {
        key: "ns_per_op_without_purge",
        noun: "time without the purge",
        about: "ns_per_op without the time of the purge call",
        of: Value::Process(|process| {
            process
                .purge_share
                .filter(|share| *share > 0.0)
                .and(process.ns_per_op_without_purge())
        }),
        ..NS
    },
    Metric {
        key: "purge_share",
        noun: "share of the purge",
        unit: Unit::Share,
        about: "the purge's part of the wall time",
        of: Value::Process(|process| process.purge_share.filter(|share| *share > 0.0)),
        ..NS
    },
    Metric {
        key: "grown_bytes",
        alias: Some("memory"),
        noun: "memory",
        unit: Unit::Bytes,
        judged: Judged::ByTest,
        about: "growth of the resident set from the first operation to its peak",
        of: Value::Process(|process| process.grown_bytes),
        ..NS
    },
    Metric {
        key: "peak_rss_bytes",
        noun: "peak RSS",
        unit: Unit::Bytes,
        about: "highest resident set of the process's life",
        of: Value::Sample(|sample| {
            Some(sample.measurement.peak_rss_bytes as f64).filter(|bytes| *bytes > 0.0)
        }),
        ..NS
    },
    Metric {
        key: "overhead",
        noun: "overhead",
        unit: Unit::Times,
        about: "grown_bytes / highest sum of requested bytes, if that is 1 MiB or more",
        of: Value::Sample(|sample| {
            let enough =
                sample.measurement.requested_peak_bytes as f64 >= super::OVERHEAD_FROM_BYTES;
            super::overhead_of(sample.measurement).filter(|_| enough)
        }),
        ..NS
    },
    Metric {
        key: "mean_footprint_bytes",
        noun: "mean memory",
        unit: Unit::Bytes,
        about: "growth of the resident set, mean over the time of the measured iterations",
        of: Value::Sample(|sample| sample.mean_heap.map(|mean| mean.bytes as f64)),
        ..NS
    },
    Metric {
        key: "gib_seconds",
        noun: "memory over time",
        unit: Unit::GibSeconds,
        about: "mean_footprint_bytes times the wall time of an iteration",
        of: Value::Sample(|sample| sample.mean_heap.map(|mean| mean.gib_seconds())),
        ..NS
    },
    Metric {
        key: "faults_per_op",
        noun: "page faults",
        unit: Unit::Count,
        about: "minor page faults in the measured phases / operations",
        of: Value::Sample(|sample| quotient(sample, |one| one.minor_faults, |one| one.ops)),
        ..NS
    },
    Metric {
        key: "kernel_share",
        noun: "share of the kernel",
        unit: Unit::Share,
        about: "system time / CPU time in the measured phases",
        of: Value::Sample(|sample| {
            quotient(
                sample,
                |one| one.sys_ns,
                |one| one.user_ns.saturating_add(one.sys_ns),
            )
        }),
        ..NS
    },
];

/// A sum over the measured iterations over another one.
fn quotient(
    sample: &Sample,
    over: fn(&Iteration) -> u64,
    under: fn(&Iteration) -> u64,
) -> Option<f64> {
    let sum = |of: fn(&Iteration) -> u64| {
        sample
            .measurement
            .measured()
            .map(|one| of(one) as f64)
            .sum::<f64>()
    };
    Some(sum(under))
        .filter(|under| *under > 0.0)
        .map(|under| sum(over) / under)
}
