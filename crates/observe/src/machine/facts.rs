//! The machine, as keys and values: what a reader needs to judge whether numbers from here hold
//! elsewhere. No host name.

use super::root::Root;
use rustix::thread::{CpuSet, sched_getaffinity};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the number of usable CPUs: what affinity and CPU limits leave of the machine's.
pub fn usable_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// Returns the numbers of the CPUs that this process, and what it starts, may run on; empty if
/// there are more than the system call has space for.
pub fn allowed_cpus() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect()
}

/// Returns one of the allowed CPUs of each core; all of them if the machine does not report which CPUs
/// share a core.
pub fn cores() -> Vec<usize> {
    let root = Root::machine();
    let mut seen = BTreeSet::new();
    let mut cpus = allowed_cpus();
    cpus.retain(|cpu| {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        let siblings = root.text(&format!("{folder}/thread_siblings_list"));
        siblings.is_none_or(|siblings| seen.insert(siblings))
    });
    cpus
}

/// Describes the machine, as recorded with a run. What cannot be read is left out.
pub fn describe() -> BTreeMap<String, String> {
    let root = Root::machine();
    let line = |file| root.text(file);
    let processor = |key| root.field("proc/cpuinfo", key);
    let memory = |key| root.field("proc/meminfo", key);
    let huge_pages =
        |file: &str| root.chosen(&format!("sys/kernel/mm/transparent_hugepage/{file}"));
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let facts = [
        (
            "cpu_model",
            processor("model name").or_else(|| processor("CPU part")),
        ),
        ("microcode", processor("microcode")),
        ("usable_cpus", Some(usable_cpus().to_string())),
        ("architecture", Some(std::env::consts::ARCH.into())),
        ("smt_active", line("sys/devices/system/cpu/smt/active")),
        (
            "governor",
            line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ),
        ("memory_total", memory("MemTotal")),
        ("memory_available", memory("MemAvailable")),
        ("swap_total", memory("SwapTotal")),
        ("kernel", line("proc/sys/kernel/osrelease")),
        (
            "kernel_parameters",
            line("proc/cmdline").map(|line| affecting_measurements(&line)),
        ),
        ("hypervisor", line("sys/hypervisor/type")),
        ("product", line("sys/class/dmi/id/product_name")),
        ("transparent_huge_pages", huge_pages("enabled")),
        ("transparent_huge_pages_defrag", huge_pages("defrag")),
        ("overcommit_memory", line("proc/sys/vm/overcommit_memory")),
        (
            "randomize_va_space",
            line("proc/sys/kernel/randomize_va_space"),
        ),
        (
            "clock_source",
            line("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ),
        (
            "page_size_bytes",
            Some(rustix::param::page_size().to_string()),
        ),
        // Identifies runs on the same machine; reveals nothing else about the machine.
        (
            "machine_id",
            line("etc/machine-id").map(|id| {
                let hash = Sha256::digest(format!("heapmark {id}"));
                hash.iter()
                    .take(6)
                    .map(|byte| format!("{byte:02x}"))
                    .collect()
            }),
        ),
        ("load_average", line("proc/loadavg")),
        ("heapmark_build", Some(build.into())),
    ];
    let caches = (0..4).map(|index| {
        let cache = format!("sys/devices/system/cpu/cpu0/cache/index{index}");
        let text = |file: &str| root.text(&format!("{cache}/{file}")).unwrap_or_default();
        let level = text("level");
        let kind = text("type").to_lowercase();
        (format!("cache_l{level}_{kind}"), text("size"))
    });
    facts
        .into_iter()
        .map(|(key, value)| (key.to_string(), value.unwrap_or_default()))
        .chain(caches)
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

/// Kernel parameters that affect measurements; others may name hosts and disks.
const PARAMETERS: [&str; 31] = [
    "amd_pstate",
    "clocksource",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "init_on_alloc",
    "init_on_free",
    "intel_idle.max_cstate",
    "intel_pstate",
    "isolcpus",
    "l1tf",
    "maxcpus",
    "mds",
    "mem",
    "mitigations",
    "nohz_full",
    "nokaslr",
    "norandmaps",
    "nosmt",
    "numa_balancing",
    "preempt",
    "processor.max_cstate",
    "pti",
    "rcu_nocbs",
    "retbleed",
    "skew_tick",
    "spec_store_bypass_disable",
    "spectre_v2",
    "transparent_hugepage",
    "tsc",
];

fn affecting_measurements(line: &str) -> String {
    let is_told = |word: &&str| PARAMETERS.contains(&word.split('=').next().unwrap_or_default());
    let parameters: Vec<&str> = line.split_whitespace().filter(is_told).collect();
    parameters.join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn of_the_kernels_command_line_only_what_affects_measurements_is_kept() {
        let line = "root=UUID=1 ip=::::db-7.example mitigations=off quiet nosmt isolcpus=2-7 -- --name db-7";
        let kept = super::affecting_measurements(line);
        assert_eq!(kept, "mitigations=off nosmt isolcpus=2-7");
    }

    #[test]
    fn what_every_linux_tells_is_there() {
        let facts = super::describe();
        for key in [
            "kernel",
            "memory_total",
            "usable_cpus",
            "page_size_bytes",
            "overcommit_memory",
        ] {
            assert!(facts.contains_key(key), "{key}");
        }
    }
}
