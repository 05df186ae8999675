//! Metrics of single calls: properties of all timed calls of a row, one for each function.

use super::Unit;
use super::definition::{Metric, Value, described};

const fn percentile(key: &'static str, noun: &'static str, about: &'static str) -> Metric {
    described(key, noun, Unit::Ns, about, Value::Row)
}

pub const METRICS: &[Metric] = &[
    percentile("p50_ns", "median", "half of the calls took at most this"),
    percentile(
        "p90_ns",
        "90th percentile",
        "9 of 10 calls took at most this",
    ),
    percentile(
        "p99_ns",
        "99th percentile",
        "99 of 100 calls took at most this",
    ),
    percentile(
        "p99_9_ns",
        "99.9th percentile",
        "999 of 1000 calls took at most this",
    ),
    percentile(
        "p99_99_ns",
        "99.99th percentile",
        "9999 of 10,000 calls took at most this",
    ),
    percentile("max_ns", "longest call", "the longest timed call, exactly"),
];
