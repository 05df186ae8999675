//! Metrics of timed processes: their time, and memory that can be read beside it.

use super::Better::Higher;
use super::Unit::{Bytes, Count, GibSeconds, MopsPerS, Ns, Share, Times};
use super::definition::{Metric, Value, described};
use crate::execute::{Iteration, Measurement};

/// Wall time, by which rows are compared unless another metric is named.
pub const WALL: &Metric = &METRICS[0];

/// The key of the memory that an allocator holds before the first block of the workload.
pub const HELD_BEFORE: &str = "held_before_bytes";

pub const METRICS: &[Metric] = &[
    described(
        "ns_per_op",
        "time",
        Ns,
        "wall time x threads / operations",
        Value::Process(|process| Some(process.ns_per_op())),
    )
    .judged_by_test("wall"),
    described(
        "cpu_ns_per_op",
        "CPU time",
        Ns,
        "CPU time of the process / operations",
        Value::Process(|process| process.cpu_ns_per_op()),
    )
    .judged_by_test("cpu"),
    described(
        "user_ns_per_op",
        "user time",
        Ns,
        "CPU time outside the kernel / operations; some kernels count it in ticks of 4 ms",
        Value::Process(|process| process.user_ns_per_op()),
    )
    .judged_by_test("user"),
    described(
        "kernel_ns_per_op",
        "kernel time",
        Ns,
        "CPU time in the kernel / operations, with the same error",
        Value::Process(|process| process.kernel_ns_per_op()),
    ),
    described(
        "mops_per_s",
        "throughput",
        MopsPerS,
        "operations of all threads per microsecond",
        Value::Process(|process| Some(process.mops_per_s())),
    )
    .better(Higher),
    described(
        "ns_per_op_without_purge",
        "time without the purge",
        Ns,
        "ns_per_op without the time of the purge call",
        Value::Process(|process| {
            process
                .purge_share()
                .filter(|share| *share > 0.0)
                .and(process.ns_per_op_without_purge())
        }),
    ),
    described(
        "purge_share",
        "share of the purge",
        Share,
        "the purge's part of the wall time",
        Value::Process(|process| process.purge_share().filter(|share| *share > 0.0)),
    ),
    described(
        "grown_bytes",
        "memory",
        Bytes,
        "growth of the resident set from the first operation to its peak, and what the allocator held before",
        Value::Process(|process| process.grown_bytes()),
    )
    .judged_by_test("memory"),
    described(
        HELD_BEFORE,
        "held before",
        Bytes,
        "what the allocator held before the first block of the workload",
        Value::Sample(|sample| {
            Some(sample.measurement.held_before_bytes as f64).filter(|bytes| *bytes > 0.0)
        }),
    ),
    described(
        "peak_rss_bytes",
        "peak RSS",
        Bytes,
        "highest resident set of the process's life",
        Value::Sample(|sample| {
            Some(sample.measurement.peak_rss_bytes as f64).filter(|bytes| *bytes > 0.0)
        }),
    ),
    described(
        "overhead",
        "overhead",
        Times,
        "grown_bytes / highest sum of requested bytes, if that is 1 MiB or more",
        Value::Sample(|sample| {
            let enough =
                sample.measurement.requested_peak_bytes as f64 >= super::OVERHEAD_FROM_BYTES;
            super::overhead_of(sample.measurement).filter(|_| enough)
        }),
    ),
    described(
        "mean_footprint_bytes",
        "mean memory",
        Bytes,
        "growth of the resident set and what the allocator held before, mean over the time of the measured iterations",
        Value::Sample(|sample| sample.mean_heap.map(|mean| mean.bytes as f64)),
    ),
    described(
        "gib_seconds",
        "memory over time",
        GibSeconds,
        "mean_footprint_bytes times the wall time of an iteration",
        Value::Sample(|sample| sample.mean_heap.map(|mean| mean.gib_seconds())),
    ),
    described(
        "faults_per_op",
        "page faults",
        Count,
        "minor page faults in the measured phases / operations",
        Value::Sample(|sample| faults_per_op(sample.measurement)),
    ),
    described(
        "kernel_share",
        "share of the kernel",
        Share,
        "system time / CPU time in the measured phases",
        Value::Sample(|sample| {
            quotient(
                sample.measurement,
                |one| one.sys_ns,
                |one| one.user_ns.saturating_add(one.sys_ns),
            )
        }),
    ),
    described(
        "aged_ratio",
        "aged / fresh",
        Times,
        "time in an aged heap over that of the same allocator in a fresh one, in the same block; only with --age, in the rows of the aged cases",
        Value::Row,
    ),
    described(
        "huge_pages_ratio",
        "in huge pages / without",
        Times,
        "time with transparent huge pages over that of the same allocator without any, in the same block; only with --thp advised or machine, \
         in the rows of the cases that may have them",
        Value::Row,
    ),
    described(
        "cpus_seen_ratio",
        "with other CPUs seen / as they are",
        Times,
        "time of a command that is told of more CPUs over that of the same allocator's which is told the truth, in the same block; only \
         with --cpus-seen, in the rows of the cases that are told",
        Value::Row,
    ),
];

/// Minor page faults per operation; `None` without operations.
fn faults_per_op(measurement: &Measurement) -> Option<f64> {
    quotient(measurement, |one| one.minor_faults, |one| one.ops)
}

/// The sum of one counter over the measured iterations, divided by the sum of another.
fn quotient(
    measurement: &Measurement,
    over: fn(&Iteration) -> u64,
    under: fn(&Iteration) -> u64,
) -> Option<f64> {
    let sum = |of: fn(&Iteration) -> u64| -> f64 {
        measurement.measured().map(|one| of(one) as f64).sum()
    };
    let under = sum(under);
    (under > 0.0).then(|| sum(over) / under)
}
