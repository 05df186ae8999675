//! The limits of control groups: CPU time, memory, and how often the CPU limit has already
//! throttled the group.

use super::Root;
use super::item::{
    ItemState::{Fine, Note, Warning},
    PreflightItem, item, warning_if,
};
use super::memory::{LITTLE_BYTES, mib};
use crate::machine::cgroup::Groups;

pub fn items(root: &Root) -> Vec<PreflightItem> {
    let cpu = Groups::of(root, "cpu");
    let memory = Groups::of(root, "memory");
    vec![
        item(
            "cpu-limit",
            "when the CPU time of a period is used up, all threads stand still until the next: times jump by tens of ms",
            "start without it: docker run without --cpus; systemctl set-property UNIT CPUQuota=",
            cpu.as_ref().and_then(|groups| groups.cpu_limit(root)),
            |tightest| match tightest {
                None => ("none".into(), Fine),
                Some((folder, cpus)) => (format!("{cpus:.2} CPUs ({folder})"), Warning),
            },
        ),
        item(
            "throttled",
            "the CPU limit has stopped this group before; if it grows during a run, its times have standstills in them",
            "lift the CPU limit (see cpu-limit); the count begins anew with a new group",
            cpu.and_then(|groups| groups.throttled(root)),
            |throttled| {
                let ms = throttled.total_ns / 1_000_000;
                (
                    format!("{} times, {ms} ms", throttled.times),
                    warning_if(throttled.times > 0),
                )
            },
        ),
        item(
            "memory-limit",
            "near the limit the kernel reclaims pages while the clock runs, and at it kills: those processes end `oom`",
            "raise it: docker run -m; systemctl set-property UNIT MemoryMax= MemoryHigh=",
            memory
                .filter(|groups| groups.tell_memory(root) || groups.reach_the_root(root))
                .map(|groups| groups.memory_left(root)),
            |tightest| {
                let Some(left) = tightest else {
                    return ("none".into(), Fine);
                };
                let limit = mib(left.limit_bytes);
                let bytes = left.bytes;
                let folder = left.folder;
                (
                    format!("{limit}, {} left ({folder})", mib(bytes)),
                    if bytes < LITTLE_BYTES { Warning } else { Note },
                )
            },
        ),
    ]
}
