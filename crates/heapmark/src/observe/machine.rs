//! The machine, as keys and values: what a reader needs to judge whether numbers from here hold
//! elsewhere. No host name.

use super::root::Root;
use std::collections::BTreeMap;

/// Usable CPUs: what affinity and CPU limits leave of the machine.
pub fn usable_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// Numbers of the CPUs that this process, and what it starts, may run on; empty if there are more
/// than the system call has space for.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: fills a local; an all-zero set is valid.
    let (set, error) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let error = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (set, error)
    };
    // SAFETY: the number is within the set.
    let allowed = |number: &usize| error == 0 && unsafe { libc::CPU_ISSET(*number, &set) };
    (0..libc::CPU_SETSIZE as usize).filter(allowed).collect()
}

/// Everything that is recorded with a run. What cannot be read is left out.
pub fn describe() -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut note = |key: &str, value: Option<String>| {
        facts.extend(
            value
                .filter(|value| !value.is_empty())
                .map(|value| (key.to_string(), value)),
        );
    };
    let root = Root::machine();
    let line = |path: &str| root.text(path);

    note(
        "cpu_model",
        root.field("/proc/cpuinfo", "model name")
            .or_else(|| root.field("/proc/cpuinfo", "CPU part")),
    );
    note("microcode", root.field("/proc/cpuinfo", "microcode"));
    note("usable_cpus", Some(usable_cpus().to_string()));
    note("architecture", Some(std::env::consts::ARCH.to_string()));
    note("smt_active", line("/sys/devices/system/cpu/smt/active"));
    note(
        "governor",
        line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    );
    for index in 0..4 {
        let cache = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let kind = line(&format!("{cache}/type"))
            .unwrap_or_default()
            .to_lowercase();
        let level = line(&format!("{cache}/level")).unwrap_or_default();
        note(
            &format!("cache_l{level}_{kind}"),
            line(&format!("{cache}/size")),
        );
    }
    note("memory_total", root.field("/proc/meminfo", "MemTotal"));
    note(
        "memory_available",
        root.field("/proc/meminfo", "MemAvailable"),
    );
    note("swap_total", root.field("/proc/meminfo", "SwapTotal"));
    note("kernel", line("/proc/sys/kernel/osrelease"));
    note("kernel_command_line", line("/proc/cmdline"));
    note(
        "hypervisor",
        line("/sys/hypervisor/type").or_else(|| line("/sys/class/dmi/id/product_name")),
    );
    note(
        "transparent_huge_pages",
        root.chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
    );
    note(
        "transparent_huge_pages_defrag",
        root.chosen("/sys/kernel/mm/transparent_hugepage/defrag"),
    );
    note("overcommit_memory", line("/proc/sys/vm/overcommit_memory"));
    note(
        "randomize_va_space",
        line("/proc/sys/kernel/randomize_va_space"),
    );
    note(
        "clock_source",
        line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    );
    note(
        "page_size_bytes",
        Some(rustix::param::page_size().to_string()),
    );
    note("load_average", line("/proc/loadavg"));
    note(
        "heapmark_build",
        Some(
            if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            }
            .to_string(),
        ),
    );
    facts
}

#[cfg(test)]
mod tests {
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
