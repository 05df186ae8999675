//! The limits of control groups: CPU time, memory, and how often the CPU limit has already
//! throttled the group.

use super::Root;
use super::item::{
    ItemState::{Fine, Note, Warning},
    PreflightItem, item, warning_if,
};
use super::memory::{LITTLE_BYTES, mib};
use crate::observe::machine::cgroup::{Groups, Version};

pub fn items(root: &Root) -> Vec<PreflightItem> {
    let cpu = Groups::of(root, "cpu");
    let memory = Groups::of(root, "memory");
    vec![
        item(
            "cpu-limit",
            "when the CPU time of a period is used up, all threads stand still until the next: times jump by tens of ms",
            "start without it: docker run without --cpus; systemctl set-property UNIT CPUQuota=",
            cpu.as_ref().and_then(|groups| cpu_limit(root, groups)),
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

/// The group with the lowest limit, in CPUs. The outer `None`: it is not known whether there is a
/// limit.
fn cpu_limit(root: &Root, groups: &Groups) -> Option<Option<(String, f64)>> {
    let file = match groups.version {
        Version::Two => "cpu.max",
        Version::One => "cpu.cfs_quota_us",
    };
    let limit = |(folder, text): (String, String)| {
        let cpus = match groups.version {
            Version::Two => cpus_of_max(&text)?,
            Version::One => {
                let period = root.number::<f64>(&format!("{folder}/cpu.cfs_period_us"))?;
                let quota: f64 = text.parse().ok()?;
                (quota >= 0.0).then_some(quota / period)
            }
        };
        Some((folder, cpus))
    };
    let told: Vec<_> = groups
        .texts(root, file)
        .into_iter()
        .filter_map(limit)
        .collect();
    let known = !told.is_empty() || groups.reach_the_root(root);
    let limits = told
        .into_iter()
        .filter_map(|(folder, cpus)| Some((folder, cpus?)));
    known.then(|| limits.min_by(|(_, a), (_, b)| a.total_cmp(b)))
}

/// `max 100000` or `150000 100000`: time in each period, both in us. The inner `None` is no limit.
fn cpus_of_max(text: &str) -> Option<Option<f64>> {
    let (quota, period) = text.split_once(' ')?;
    if quota == "max" {
        return Some(None);
    }
    let quota: f64 = quota.parse().ok()?;
    let period: f64 = period.parse().ok()?;
    Some(Some(quota / period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_a_period_is_a_number_of_cpus() {
        let found = ["max 100000", "150000 100000", "50000 100000", "nonsense"].map(cpus_of_max);
        assert_eq!(found, [Some(None), Some(Some(1.5)), Some(Some(0.5)), None]);
    }
}
