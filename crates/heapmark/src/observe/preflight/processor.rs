//! How fast the CPUs run, which of them may be used, and how time is read.

use super::item::{ItemState, ItemSubject, PreflightItem, note_if, warning_if};
use crate::observe::root::Root;

const GOVERNOR: ItemSubject = ItemSubject {
    name: "governor",
    means: "a frequency that follows the load makes each process begin slowly and short work look slower than long work",
    change: "sudo cpupower frequency-set -g performance",
};

const BOOST: ItemSubject = ItemSubject {
    name: "boost",
    means: "the top frequency depends on heat and on how many cores are busy: times wander, and one thread runs faster than many",
    change: "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost (intel_pstate: echo 1 into ../intel_pstate/no_turbo)",
};

const SMT: ItemSubject = ItemSubject {
    name: "smt",
    means: "two threads may share one core, and which ones do is chance: beyond half of the CPUs, scaling is that of shared cores",
    change: "echo off | sudo tee /sys/devices/system/cpu/smt/control",
};

const CPUS: ItemSubject = ItemSubject {
    name: "usable-cpus",
    means: "results hold for this many CPUs; with a single one heapmark, the kernel and the measured threads take turns on it",
    change: "taskset -c 0-N heapmark ... widens or narrows it; a container's or job's CPU set is changed where it was started",
};

const CLOCK: ItemSubject = ItemSubject {
    name: "clock-source",
    means: "most sources are read in tens of ns; hpet, acpi_pm and jiffies take a system call of a microsecond or are coarse",
    change: "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource (if available_clocksource has it)",
};

pub(super) fn items(root: &Root) -> Vec<PreflightItem> {
    vec![
        governor(root),
        boost(root),
        smt(root),
        usable_cpus(root),
        clock_source(root),
    ]
}

const CPUFREQ: &str = "sys/devices/system/cpu/cpufreq";

/// A file of all frequency policies: one policy for each group of CPUs that change together.
fn policies(root: &Root, file: &str) -> Option<String> {
    let policies = root.names(CPUFREQ, "policy");
    root.all(
        policies
            .iter()
            .map(|policy| format!("{CPUFREQ}/{policy}/{file}")),
    )
}

fn governor(root: &Root) -> PreflightItem {
    GOVERNOR.judged(policies(root, "scaling_governor"), |governor| {
        // `userspace` keeps a frequency that the user has chosen: steady, but not the highest.
        let state = match governor.as_str() {
            "performance" => ItemState::Fine,
            "userspace" => ItemState::Note,
            _ => ItemState::Warning,
        };
        let driver = policies(root, "scaling_driver")
            .map(|driver| format!(" ({driver})"))
            .unwrap_or_default();
        (format!("{governor}{driver}"), state)
    })
}

fn boost(root: &Root) -> PreflightItem {
    let turbo_off = root.number::<u8>("sys/devices/system/cpu/intel_pstate/no_turbo");
    let boost = turbo_off.map(|off| off == 0).or_else(|| {
        let told = root
            .text(&format!("{CPUFREQ}/boost"))
            .or_else(|| policies(root, "boost"))?;
        Some(told != "0")
    });
    BOOST.judged(boost, |on| {
        (if on { "on" } else { "off" }.into(), warning_if(on))
    })
}

fn smt(root: &Root) -> PreflightItem {
    let active = root.number::<u8>("sys/devices/system/cpu/smt/active");
    SMT.judged(active, |active| {
        (
            if active == 1 { "on" } else { "off" }.into(),
            note_if(active == 1),
        )
    })
}

fn usable_cpus(root: &Root) -> PreflightItem {
    let allowed = root
        .field("proc/self/status", "Cpus_allowed_list")
        .and_then(|list| count(&list));
    let online = root
        .text("sys/devices/system/cpu/online")
        .and_then(|list| count(&list));
    CPUS.judged(allowed, |allowed| {
        let words = online.map_or_else(
            || allowed.to_string(),
            |online| format!("{allowed} of {online}"),
        );
        let state = match (allowed, online) {
            (1, _) => ItemState::Warning,
            (allowed, Some(online)) if allowed < online => ItemState::Note,
            _ => ItemState::Fine,
        };
        (words, state)
    })
}

fn clock_source(root: &Root) -> PreflightItem {
    CLOCK.judged(
        root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        |source| {
            let state = match source.as_str() {
                // Read without a system call.
                "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" => {
                    ItemState::Fine
                }
                "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" | "xen" => {
                    ItemState::Warning
                }
                _ => ItemState::Note,
            };
            (source, state)
        },
    )
}

/// How many numbers there are in `0-3,8,10-11`.
pub(super) fn count(list: &str) -> Option<u64> {
    list.split(',').try_fold(0, |sum, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        Some(sum + last.checked_sub(first)? + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn lists_of_cpus_are_counted() {
        let lists = ["0", "0-1", "0-3,8,10-11", "", "3-1", "a"];
        assert_eq!(
            lists.map(count),
            [Some(1), Some(2), Some(7), None, None, None]
        );
    }
}
