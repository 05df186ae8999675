//! How fast the CPUs run, which of them may be used, and how time is read.

use super::Root;
use super::item::{
    ItemState::{Fine, Note, Warning},
    PreflightItem, item, note_if, switch, warning_if,
};

pub fn items(root: &Root) -> Vec<PreflightItem> {
    vec![
        governor(root),
        boost(root),
        item(
            "smt",
            "two threads may share one core, and which ones do is chance: beyond half of the CPUs, scaling is that of shared cores",
            "echo off | sudo tee /sys/devices/system/cpu/smt/control",
            root.number("sys/devices/system/cpu/smt/active"),
            |active: u8| (switch(active == 1), note_if(active == 1)),
        ),
        usable_cpus(root),
        clock_source(root),
    ]
}

const CPUFREQ: &str = "sys/devices/system/cpu/cpufreq";

/// Returns the contents of a file of all frequency policies, one policy for each group of CPUs that change together: each
/// different text once, sorted.
fn policies(root: &Root, file: &str) -> Option<String> {
    let policies = root.names(CPUFREQ, "policy").into_iter();
    let mut texts: Vec<String> = policies
        .filter_map(|policy| root.text(&format!("{CPUFREQ}/{policy}/{file}")))
        .collect();
    texts.sort();
    texts.dedup();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn governor(root: &Root) -> PreflightItem {
    item(
        "governor",
        "a frequency that follows the load makes each process begin slowly and short work look slower than long work",
        "sudo cpupower frequency-set -g performance",
        policies(root, "scaling_governor"),
        |governor| {
            // `userspace` keeps a frequency that the user has chosen: steady, but not the highest.
            let state = match governor.as_str() {
                "performance" => Fine,
                "userspace" => Note,
                _ => Warning,
            };
            match policies(root, "scaling_driver") {
                Some(driver) => (format!("{governor} ({driver})"), state),
                None => (governor, state),
            }
        },
    )
}

fn boost(root: &Root) -> PreflightItem {
    let turbo_off = root.number::<u8>("sys/devices/system/cpu/intel_pstate/no_turbo");
    let boost = turbo_off.map(|off| off == 0).or_else(|| {
        let text = root.text(&format!("{CPUFREQ}/boost"));
        Some(text.or_else(|| policies(root, "boost"))? != "0")
    });
    item(
        "boost",
        "the top frequency depends on heat and on how many cores are busy: times wander, and one thread runs faster than many",
        "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost (intel_pstate: echo 1 into ../intel_pstate/no_turbo)",
        boost,
        |on| (switch(on), warning_if(on)),
    )
}

/// The CPUs that are online.
const ONLINE: &str = "sys/devices/system/cpu/online";

/// Returns how many CPUs are online.
pub fn online_cpus(root: &Root) -> Option<u64> {
    count(&root.text(ONLINE)?)
}

fn usable_cpus(root: &Root) -> PreflightItem {
    let online = online_cpus(root);
    item(
        "usable-cpus",
        "results hold for this many CPUs; with a single one heapmark, the kernel and the measured threads take turns on it",
        "taskset -c 0-N heapmark ... widens or narrows it; a container's or job's CPU set is changed where it was started",
        root.field("proc/self/status", "Cpus_allowed_list")
            .and_then(|allowed| match root.text(ONLINE) {
                // Outside a CPU set, all CPUs that there could ever be are allowed.
                Some(online) => count_of_both(&allowed, &online),
                None => count(&allowed),
            }),
        |allowed| {
            let words = match online {
                Some(online) => format!("{allowed} of {online}"),
                None => allowed.to_string(),
            };
            let state = match allowed {
                1 => Warning,
                _ => note_if(online.is_some_and(|online| allowed < online)),
            };
            (words, state)
        },
    )
}

fn clock_source(root: &Root) -> PreflightItem {
    item(
        "clock-source",
        "most sources are read in tens of ns; hpet, acpi_pm and jiffies take a system call of a microsecond or are coarse",
        "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource (if available_clocksource has it)",
        root.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        |source| {
            let state = match source.as_str() {
                // These clocks are read without a system call.
                "tsc" | "arch_sys_counter" | "kvm-clock" | "hyperv_clocksource_tsc_page" => Fine,
                "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "pit" | "xen" => Warning,
                _ => Note,
            };
            (source, state)
        },
    )
}

/// Returns how many numbers there are in a list such as `0-3,8,10-11`.
pub fn count(list: &str) -> Option<u64> {
    count_of_both(list, list)
}

/// Returns how many numbers two lists such as `0-3,8,10-11` share.
fn count_of_both(one: &str, other: &str) -> Option<u64> {
    let (one, other) = (ranges(one)?, ranges(other)?);
    let shared = |(first, last): &(u64, u64)| -> u64 {
        let of_both = other
            .iter()
            .map(|(begin, end)| (end.min(last) + 1).saturating_sub(*begin.max(first)));
        of_both.sum()
    };
    Some(one.iter().map(shared).sum())
}

/// Returns the first and the last number of each part of a list such as `0-3,8,10-11`.
fn ranges(list: &str) -> Option<Vec<(u64, u64)>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some((first, last))
    };
    list.split(',').map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::{count, count_of_both};

    #[test]
    fn lists_of_cpus_are_counted() {
        let lists = ["0", "0-1", "0-3,8,10-11", "", "3-1", "a"];
        assert_eq!(
            lists.map(count),
            [Some(1), Some(2), Some(7), None, None, None]
        );
        let both = |allowed, online| count_of_both(allowed, online);
        assert_eq!(both("0-127", "0-3"), Some(4));
        assert_eq!(both("0,2-3,9", "1-2,8-127"), Some(2));
    }
}
