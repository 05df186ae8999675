//! Metrics of processes in which events were counted: how often each event occurred, per operation.

use super::Unit;
use super::definition::{Metric, Value, described};

/// Describes an event whose count depends on what else the machine does.
const fn unsteady(key: &'static str, noun: &'static str, about: &'static str) -> Metric {
    described(key, noun, Unit::Count, about, Value::PerOperation)
}

const fn event(key: &'static str, noun: &'static str, about: &'static str) -> Metric {
    unsteady(key, noun, about).judged_by_range()
}

pub const METRICS: &[Metric] = &[
    event(
        "instructions",
        "instructions",
        "instructions in user mode / operations",
    ),
    unsteady("cycles", "cycles", "CPU cycles in user mode / operations"),
    unsteady(
        "cache_misses",
        "cache misses",
        "misses of the last cache / operations",
    ),
    unsteady(
        "l1d_read_misses",
        "L1 read misses",
        "misses of the first data cache / operations",
    ),
    unsteady(
        "dtlb_read_misses",
        "TLB read misses",
        "misses of the data TLB / operations",
    ),
    event("page_faults", "page faults", "page faults / operations"),
    event("mmap", "calls of mmap", "calls of mmap / operations"),
    event("munmap", "calls of munmap", "calls of munmap / operations"),
    event("mremap", "calls of mremap", "calls of mremap / operations"),
    event(
        "madvise",
        "calls of madvise",
        "calls of madvise / operations",
    ),
    event(
        "mprotect",
        "calls of mprotect",
        "calls of mprotect / operations",
    ),
    event("brk", "calls of brk", "calls of brk / operations"),
];
