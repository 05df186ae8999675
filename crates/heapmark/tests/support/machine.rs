//! A planted machine: a folder with the files of /proc and /sys that heapmark looks at, as real ones have them.

use std::fs;
use std::path::{Path, PathBuf};

/// Nothing of it disturbs anybody: what a machine for measuring looks like.
const CLEAN: &[(&str, &str)] = &[
    (
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
        "intel_pstate\n",
    ),
    (
        "sys/devices/system/cpu/cpufreq/policy1/scaling_governor",
        "performance\n",
    ),
    (
        "sys/devices/system/cpu/cpufreq/policy1/scaling_driver",
        "intel_pstate\n",
    ),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    ("sys/devices/system/cpu/smt/active", "0\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    ("sys/devices/system/node/online", "0-1\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/defrag",
        "always defer defer+madvise [madvise] never\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
        "always inherit madvise [never]\n",
    ),
    ("sys/kernel/mm/ksm/run", "0\n"),
    ("etc/ld.so.preload", ""),
    ("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1\n"),
    ("sys/kernel/mm/damon/admin/kdamonds/0/state", "off\n"),
    ("sys/module/damon_reclaim/parameters/enabled", "N\n"),
    ("sys/module/zswap/parameters/enabled", "N\n"),
    (
        "sys/fs/cgroup/cgroup.controllers",
        "cpuset cpu io memory pids\n",
    ),
    ("sys/fs/cgroup/user.slice/cgroup.type", "domain\n"),
    ("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
    (
        "sys/fs/cgroup/user.slice/cpu.stat",
        "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
    ),
    ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
    ("sys/fs/cgroup/user.slice/memory.high", "max\n"),
    ("sys/fs/cgroup/user.slice/memory.current", "1048576\n"),
    ("proc/self/cgroup", "0::/user.slice/session-1.scope\n"),
    (
        "proc/self/mountinfo",
        "29 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
    ),
    ("proc/self/personality", "00000000\n"),
    (
        "proc/self/status",
        "Name:\theapmark\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0-1\n",
    ),
    ("proc/sys/kernel/randomize_va_space", "2\n"),
    ("proc/sys/kernel/numa_balancing", "0\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    (
        "proc/meminfo",
        "MemTotal:       24684280 kB\nMemFree:        19827716 kB\nMemAvailable:   23949312 kB\n",
    ),
    (
        "proc/swaps",
        "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
    ),
    (
        "proc/pressure/cpu",
        "some avg10=0.12 avg60=1.45 avg300=12.83 total=5411064202\n",
    ),
    (
        "proc/pressure/memory",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=78948091\n",
    ),
    (
        "proc/pressure/io",
        "some avg10=1.46 avg60=0.95 avg300=0.32 total=34459662\n",
    ),
    (
        "proc/stat",
        "cpu  1400314 133698 287044 737821 5625 0 1357 1773 0 0\nintr 16388753 0 0\nctxt 1\n",
    ),
    ("proc/loadavg", "0.08 1.35 2.31 2/88 31466\n"),
];

/// A folder with such files.
pub struct Machine(PathBuf);

impl Machine {
    /// A clean one, in a folder that does not exist yet.
    pub fn clean(folder: PathBuf) -> Machine {
        let machine = Machine(folder);
        CLEAN
            .iter()
            .for_each(|(file, text)| machine.plant(file, text));
        machine
    }

    /// Another text, or another file.
    pub fn plant(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// As on a machine without this file.
    pub fn remove(&self, file: &str) {
        fs::remove_file(self.0.join(file)).unwrap();
    }

    pub fn root(&self) -> &Path {
        &self.0
    }
}

/// The files of a clean machine.
pub fn files() -> impl Iterator<Item = &'static str> {
    CLEAN.iter().map(|(file, _)| *file)
}
