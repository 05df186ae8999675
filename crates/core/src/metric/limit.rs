//! Metrics of rows whose smallest limit on memory was looked for. Each is a property of many
//! processes together.

use super::Better::Neither;
use super::Unit::{Bytes, Times};
use super::definition::{Metric, Value, described};

pub const METRICS: &[Metric] = &[
    described(
        "smallest_limit_bytes",
        "smallest limit",
        Bytes,
        "the smallest limit on memory under which processes end ok (3 of 3, or most of 9), without what the harness takes; between \
         the largest limit under which none did and the largest under which one failed",
        Value::Row,
    )
    .judged_by_range(),
    described(
        "failed_up_to_bytes",
        "still failed under",
        Bytes,
        "the largest limit, from the smallest one on, under which some process did not end ok; absent if none failed there",
        Value::Row,
    ),
    described(
        "limited_live_bytes",
        "live bytes at their peak, without a limit",
        Bytes,
        "the most live bytes of the process without a limit, as its kernel knows them",
        Value::Row,
    )
    .better(Neither),
    described(
        "headroom_ratio",
        "headroom",
        Times,
        "the smallest limit / the most live bytes, if those are 1 MiB or more",
        Value::Row,
    ),
    described(
        "unlimited_bytes",
        "memory without a limit",
        Bytes,
        "what the limit would have counted at most, in a process without it; sampled, unless a control group counts it",
        Value::Row,
    ),
    described(
        "reclaimable_bytes",
        "reclaimable memory",
        Bytes,
        "most memory in such a process that was freed by MADV_FREE: the kernel takes it back at the limit of a control group",
        Value::Row,
    )
    .better(Neither),
    described(
        "limit_slowdown",
        "slow-down near the limit",
        Times,
        "time under a multiple of the smallest limit / time without a limit in the same block; its label is the multiple",
        Value::Row,
    ),
];
