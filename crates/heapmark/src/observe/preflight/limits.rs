//! The limits of control groups: CPU time, memory, and how often the CPU limit has already
//! throttled the group.

use super::item::{ItemState, ItemSubject, PreflightItem, warning_if};
use super::memory::{LITTLE_BYTES, mib};
use crate::observe::cgroup::{Groups, MemoryLeft, Version};
use crate::observe::root::Root;

const CPU: ItemSubject = ItemSubject {
    name: "cpu-limit",
    means: "when the CPU time of a period is used up, all threads stand still until the next: times jump by tens of ms",
    change: "start without it: docker run without --cpus; systemctl set-property UNIT CPUQuota=",
};

const THROTTLED: ItemSubject = ItemSubject {
    name: "throttled",
    means: "the CPU limit has stopped this group before; if it grows during a run, its times have standstills in them",
    change: "lift the CPU limit (see cpu-limit); the count begins anew with a new group",
};

const MEMORY: ItemSubject = ItemSubject {
    name: "memory-limit",
    means: "near the limit the kernel reclaims pages while the clock runs, and at it kills: those processes end `oom`",
    change: "raise it: docker run -m; systemctl set-property UNIT MemoryMax= MemoryHigh=",
};

pub(super) fn items(root: &Root) -> Vec<PreflightItem> {
    let (cpu, memory) = (Groups::of(root, "cpu"), Groups::of(root, "memory"));
    let throttled = cpu.as_ref().and_then(|groups| groups.throttled(root));
    vec![
        cpu_limit(root, cpu.as_ref()),
        THROTTLED.judged(throttled, |throttled| {
            let ms = throttled.total_ns / 1_000_000;
            (
                format!("{} times, {ms} ms", throttled.times),
                warning_if(throttled.times > 0),
            )
        }),
        memory_limit(root, memory.as_ref()),
    ]
}

fn cpu_limit(root: &Root, groups: Option<&Groups>) -> PreflightItem {
    let Some(groups) = groups else {
        return CPU.not_told();
    };
    let told: Vec<(String, Option<f64>)> = match groups.version {
        Version::Two => {
            let texts = groups.texts(root, "cpu.max").into_iter();
            texts
                .filter_map(|(folder, text)| Some((folder, cpus_of_max(&text)?)))
                .collect()
        }
        Version::One => {
            let quotas = groups.texts(root, "cpu.cfs_quota_us").into_iter();
            let limit = |(folder, quota): (String, String)| {
                let period = root.number::<f64>(&format!("{folder}/cpu.cfs_period_us"))?;
                let quota: f64 = quota.parse().ok()?;
                Some((folder, (quota >= 0.0).then_some(quota / period)))
            };
            quotas.filter_map(limit).collect()
        }
    };
    let known = !told.is_empty() || groups.reach_the_root(root);
    let limits = told
        .into_iter()
        .filter_map(|(folder, cpus)| Some((folder, cpus?)));
    let tightest = limits.min_by(|(_, a), (_, b)| a.total_cmp(b));
    CPU.judged(known.then_some(tightest), |tightest| match tightest {
        None => ("none".into(), ItemState::Fine),
        Some((folder, cpus)) => (format!("{cpus:.2} CPUs ({folder})"), ItemState::Warning),
    })
}

/// `max 100000` or `150000 100000`: time in each period, both in us. The inner `None` is no limit.
fn cpus_of_max(text: &str) -> Option<Option<f64>> {
    let (quota, period) = text.split_once(' ')?;
    if quota == "max" {
        return Some(None);
    }
    Some(Some(
        quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?,
    ))
}

fn memory_limit(root: &Root, groups: Option<&Groups>) -> PreflightItem {
    let Some(groups) = groups else {
        return MEMORY.not_told();
    };
    let known = groups.tell_memory(root) || groups.reach_the_root(root);
    MEMORY.judged(
        known.then(|| groups.memory_left(root)),
        |tightest| match tightest {
            None => ("none".into(), ItemState::Fine),
            Some(MemoryLeft {
                bytes,
                limit_bytes,
                folder,
            }) => {
                let state = if bytes < LITTLE_BYTES {
                    ItemState::Warning
                } else {
                    ItemState::Note
                };
                (
                    format!("{}, {} left ({folder})", mib(limit_bytes), mib(bytes)),
                    state,
                )
            }
        },
    )
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
