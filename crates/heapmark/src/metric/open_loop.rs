//! Metrics of requests that are due at times drawn beforehand: figures of the kernel `open-loop`.

use super::Better::Neither;
use super::Unit::{Count, Ns, Share};
use super::{Metric, figure};

pub const METRICS: &[Metric] = &[
    figure(
        LOAD,
        "load",
        Share,
        "open-loop: requests that are due / those that the baseline makes in a closed loop",
    )
    .better(Neither),
    figure(
        "open_due_per_s",
        "requests due",
        Count,
        "open-loop: requests of all threads that are due in a second",
    )
    .better(Neither),
    figure(
        "open_busy_share",
        "busy",
        Share,
        "open-loop: share of its threads' time in which they serve requests; near 1 it cannot keep up, and latency grows with the number \
         of requests",
    ),
    figure(
        "open_p50_ns",
        "median latency",
        Ns,
        "open-loop: half of the requests ended at most so long after they were due",
    ),
    figure(
        "open_p90_ns",
        "90th percentile of latency",
        Ns,
        "open-loop: the same of 9 of 10 requests",
    ),
    figure(
        "open_p99_ns",
        "99th percentile of latency",
        Ns,
        "open-loop: the same of 99 of 100",
    )
    .judged_by_range(),
    figure(
        "open_p99_9_ns",
        "99.9th percentile of latency",
        Ns,
        "open-loop: the same of 999 of 1000",
    ),
    figure(
        "open_p99_99_ns",
        "99.99th percentile of latency",
        Ns,
        "open-loop: the same of 9999 of 10,000; absent if a process has fewer than 100,000 requests",
    ),
    figure(
        "open_max_ns",
        "highest latency",
        Ns,
        "open-loop: the highest latency of a process, exactly",
    ),
    figure(
        "open_late_share",
        "late requests",
        Share,
        "open-loop: share of the requests that ended later than 1 ms after they were due",
    ),
    figure(
        "closed_p50_ns",
        "median in a closed loop",
        Ns,
        "open-loop: half of the same requests took at most this, each begun when the last one had ended",
    ),
    figure(
        "closed_p90_ns",
        "90th percentile in a closed loop",
        Ns,
        "open-loop: the same of 9 of 10 requests",
    ),
    figure(
        "closed_p99_ns",
        "99th percentile in a closed loop",
        Ns,
        "open-loop: the same of 99 of 100",
    ),
    figure(
        "closed_p99_9_ns",
        "99.9th percentile in a closed loop",
        Ns,
        "open-loop: the same of 999 of 1000",
    ),
    figure(
        "closed_p99_99_ns",
        "99.99th percentile in a closed loop",
        Ns,
        "open-loop: the same of 9999 of 10,000; absent as above",
    ),
    figure(
        "closed_max_ns",
        "longest request of a closed loop",
        Ns,
        "open-loop: the longest request there of a process, exactly",
    ),
];

/// What the load is called, by which charts know such cases.
pub const LOAD: &str = "open_load_share";
