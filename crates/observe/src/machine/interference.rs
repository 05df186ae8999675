//! What else the machine did while something was measured: counters before and after, and their
//! difference as shares. This module reads and subtracts; the interference check decides elsewhere
//! what is too much.
//!
//! The files stay open, so a snapshot is a read of each. The kernel generates the text at each
//! read, for /proc/stat over all CPUs and interrupts: a snapshot costs more the more of them there
//! are.

use super::cgroup::{Groups, Version};
use super::counters::{CpuTicks, Stall, Throttled, process_ticks, value};
use super::facts::allowed_cpus;
use super::root::{Root, reread};
use crate::clock::{now_ns, usage};
use crate::memory::stat_words;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::ops::Add;

/// Kernel threads that manage memory: they work for any program that needs it, also for the
/// measured one.
const MEMORY_THREADS: [&str; 3] = ["kswapd", "kcompactd", "khugepaged"];

/// The kernel's files with these counters, kept open.
pub struct Counters {
    /// CPUs that processes may run on, in order.
    cpus: Vec<usize>,
    stat: Option<File>,
    /// The `stat` file of each thread of [`MEMORY_THREADS`] that is visible from here.
    memory_threads: Vec<File>,
    /// Pressure on CPUs, on memory, and on memory in heapmark's own control group alone.
    pressures: [Option<File>; 3],
    vmstat: Option<File>,
    /// The `cpu.stat` files of heapmark's own control group and those above it.
    cpu_stats: Vec<File>,
    text: String,
}

/// Counters at one moment. A counter that the kernel does not report is absent.
#[derive(Clone, Copy)]
pub struct Snapshot {
    /// Time of the monotonic clock.
    pub at_ns: u64,
    /// CPU time of heapmark itself, and of everything that it started and that has ended.
    pub own_cpu_ns: u64,
    /// The number of CPUs that the next two were counted on: those that processes may run on.
    /// `None` means all of the machine's CPUs.
    pub cpus: Option<u32>,
    /// CPU time of all programs and the kernel, counted in clock ticks of 10 ms. Without
    /// interrupts, which the measured process may cause, for example if it takes pages away from
    /// its own threads; and without the kernel threads that manage memory.
    pub busy_ns: Option<u64>,
    /// Processes and threads that the machine has started.
    pub tasks: Option<u64>,
    /// CPU time that the hypervisor gave to others.
    pub steal_ns: Option<u64>,
    /// Time in which some task of the machine waited for a CPU.
    pub cpu_stall_ns: Option<u64>,
    /// Time in which some task of the machine waited for memory.
    pub memory_stall_ns: Option<u64>,
    /// Time in which some task of heapmark's own control group waited for memory.
    pub own_memory_stall_ns: Option<u64>,
    /// Pages read from swap and written to it.
    pub swapped_pages: Option<u64>,
    /// How often, and for how long, heapmark's control groups were throttled because their CPU time
    /// was used up.
    pub throttled: Option<Throttled>,
}

/// What happened between two snapshots. A field is absent if one of them does not have the counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// Wall time between the two snapshots.
    pub wall_ns: u64,
    /// The number of CPUs that the next two shares were counted on: those that the process may run
    /// on. `None` means all of the machine's CPUs.
    pub cpus: Option<u32>,
    /// CPU time of other programs, as a share of one core: (busy - own) / wall. Busy time is
    /// counted in ticks, so over a short time it may be slightly negative.
    pub foreign_cpu_share: Option<f64>,
    /// Processes and threads that the machine started. What the kernel does at the end of each is in
    /// the busy time and in no program's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_tasks: Option<u64>,
    /// CPU time that the hypervisor gave to others, as a share of one core.
    pub steal_share: Option<f64>,
    /// Share of the time in which some task waited for a CPU; that task may be a measured one.
    pub cpu_stall_share: Option<f64>,
    /// Share of the time in which some task waited for memory.
    pub memory_stall_share: Option<f64>,
    /// Share of the time in which some task of heapmark's own control group, which contains the measured process, waited for memory.
    pub own_memory_stall_share: Option<f64>,
    /// Pages swapped in and out.
    pub swapped_pages: Option<u64>,
    /// Time for which heapmark's control groups were throttled, over all groups.
    pub throttled_ns: Option<u64>,
    /// How often one of heapmark's control groups was throttled.
    pub throttled_times: Option<u64>,
}

impl Counters {
    /// Opens the files that exist.
    pub fn open(root: &Root) -> Counters {
        let open = |file: &str| File::open(root.path(file)).ok();
        let folders = Groups::of(root, "cpu").map_or(Vec::new(), |groups| groups.folders);
        let memory = Groups::of(root, "memory").filter(|groups| groups.version == Version::Two);
        Counters {
            cpus: allowed_cpus(),
            stat: open("proc/stat"),
            memory_threads: memory_threads(root),
            pressures: [
                open("proc/pressure/cpu"),
                open("proc/pressure/memory"),
                memory.and_then(|groups| open(&format!("{}/memory.pressure", groups.folders[0]))),
            ],
            vmstat: open("proc/vmstat"),
            cpu_stats: folders
                .iter()
                .filter_map(|folder| open(&format!("{folder}/cpu.stat")))
                .collect(),
            text: String::new(),
        }
    }

    /// Reads all counters.
    pub fn snapshot(&mut self) -> Snapshot {
        let text = &mut self.text;
        let at_ns = now_ns();
        let stat = self.stat.as_ref().and_then(|file| reread(file, text));
        let of_cpus = stat.and_then(|stat| CpuTicks::of(stat, &self.cpus));
        let ticks = of_cpus.or_else(|| CpuTicks::read(stat?));
        let tasks = stat.and_then(|stat| value(stat, "processes"));
        let threads = self.memory_threads.iter();
        let memory_ticks: u64 = threads
            .filter_map(|file| process_ticks(reread(file, text)?))
            .sum();
        let [cpu_stall_ns, memory_stall_ns, own_memory_stall_ns] =
            self.pressures.each_ref().map(|file| {
                let stall = Stall::read(reread(file.as_ref()?, text)?)?;
                Some(stall.total_us * 1000)
            });
        let vmstat = self.vmstat.as_ref().and_then(|file| reread(file, text));
        let pages = |key| value(vmstat?, key);
        let swapped_pages = pages("pswpin").zip(pages("pswpout"));
        let groups = self.cpu_stats.iter();
        let throttled = groups
            .filter_map(|file| Throttled::read(reread(file, text)?))
            .reduce(Throttled::add);
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        Snapshot {
            at_ns,
            own_cpu_ns: cpu_ns(libc::RUSAGE_SELF) + cpu_ns(libc::RUSAGE_CHILDREN),
            cpus: of_cpus.map(|_| self.cpus.len() as u32),
            busy_ns: ticks.map(|ticks| ticks.programs.saturating_sub(memory_ticks) * tick_ns),
            tasks,
            steal_ns: ticks.map(|ticks| ticks.steal * tick_ns),
            cpu_stall_ns,
            memory_stall_ns,
            own_memory_stall_ns,
            swapped_pages: swapped_pages.map(|(read, written)| read + written),
            throttled,
        }
    }
}

impl Interference {
    /// Returns the difference of two snapshots, the earlier one first.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Interference {
        let wall_ns = after.at_ns.saturating_sub(before.at_ns);
        let grown = |counter: fn(&Snapshot) -> Option<u64>| {
            Some(counter(after)?.saturating_sub(counter(before)?))
        };
        let share = |ns: f64| (wall_ns > 0).then(|| ns / wall_ns as f64);
        let share_of = |counter| share(grown(counter)? as f64);
        let own_ns = after.own_cpu_ns.saturating_sub(before.own_cpu_ns) as f64;
        Interference {
            wall_ns,
            cpus: after.cpus,
            foreign_cpu_share: grown(|one| one.busy_ns)
                .and_then(|busy_ns| share(busy_ns as f64 - own_ns)),
            new_tasks: grown(|one| one.tasks),
            steal_share: share_of(|one| one.steal_ns),
            cpu_stall_share: share_of(|one| one.cpu_stall_ns),
            memory_stall_share: share_of(|one| one.memory_stall_ns),
            own_memory_stall_share: share_of(|one| one.own_memory_stall_ns),
            swapped_pages: grown(|one| one.swapped_pages),
            throttled_ns: grown(|one| Some(one.throttled?.total_ns)),
            throttled_times: grown(|one| Some(one.throttled?.times)),
        }
    }
}

/// Returns the `stat` files of the kernel threads that manage memory; none are visible in a
/// container with its own PID namespace.
fn memory_threads(root: &Root) -> Vec<File> {
    let processes = root.names("proc", "").into_iter();
    processes
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|process| format!("proc/{process}/stat"))
        .filter(|stat| root.text(stat).is_some_and(|text| is_memory_thread(&text)))
        .filter_map(|stat| File::open(root.path(&stat)).ok())
        .collect()
}

fn is_memory_thread(stat: &str) -> bool {
    // All kernel threads are children of process 2.
    let (_, name) = stat.split_once('(').unwrap_or_default();
    stat_words(stat).nth(1) == Some("2")
        && MEMORY_THREADS.iter().any(|known| name.starts_with(known))
}

/// Returns the user and system time of this process, or of all its children that have ended and been
/// waited for, with those that they had waited for.
fn cpu_ns(whose: libc::c_int) -> u64 {
    let usage = usage(whose);
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes the `stat` file of a process with this name.
    fn process(root: &Path, pid: u32, name: &str, parent: u32, ticks: u64) {
        let stat =
            format!("{pid} ({name}) S {parent} 0 0 0 0 0 0 0 0 0 {ticks} {ticks} 0 0 20 0\n");
        write(root, &format!("proc/{pid}/stat"), &stat);
    }

    /// A CPU that no process of these tests may run on.
    const ELSEWHERE: usize = 4000;

    fn plant(root: &Path, user: u64, steal: u64, stall_us: u64, swapped: u64, throttled: u64) {
        // The file is as long as on a real machine, with all time on the first allowed CPU and on one that is not allowed.
        let allowed = allowed_cpus();
        let cpus: String = allowed
            .iter()
            .enumerate()
            .map(|(place, cpu)| {
                let (user, steal) = if place == 0 { (user, steal) } else { (0, 0) };
                format!("cpu{cpu} {user} 0 0 900 0 0 0 {steal} 0 0\n")
            })
            .collect();
        let interrupts = " 0".repeat(4000);
        let elsewhere = format!(
            "cpu{ELSEWHERE} {} 0 0 900 0 0 0 {} 0 0\n",
            10 * user,
            10 * steal
        );
        let all = format!("cpu  {} 0 0 900 0 0 0 {} 0 0\n", 11 * user, 11 * steal);
        write(
            root,
            "proc/stat",
            &format!("{all}{cpus}{elsewhere}intr 1{interrupts}\nprocesses {user}\n"),
        );
        let pressure = |us| format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={us}\n");
        write(root, "proc/pressure/cpu", &pressure(stall_us));
        write(root, "proc/pressure/memory", &pressure(2 * stall_us));
        write(
            root,
            "proc/vmstat",
            &format!(
                "nr_free_pages 7\npswpin {swapped}\npswpout {}\n",
                2 * swapped
            ),
        );
        write(root, "proc/self/cgroup", "0::/job\n");
        write(
            root,
            "proc/self/mountinfo",
            "29 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        let stat = format!(
            "nr_periods 9\nnr_throttled {throttled}\nthrottled_usec {}\n",
            10 * throttled
        );
        write(root, "sys/fs/cgroup/job/cpu.stat", &stat);
        write(
            root,
            "sys/fs/cgroup/job/memory.pressure",
            &pressure(3 * stall_us),
        );
    }

    /// The difference of two states of a simulated machine, a second apart, in which heapmark took
    /// half a second.
    fn between(root: &Path, first: impl Fn(&Path), second: impl Fn(&Path)) -> Interference {
        first(root);
        let mut counters = Counters::open(&Root::at(root));
        let mut before = counters.snapshot();
        second(root);
        let mut after = counters.snapshot();
        assert!(after.at_ns > before.at_ns);
        (before.at_ns, after.at_ns) = (0, 1_000_000_000);
        (before.own_cpu_ns, after.own_cpu_ns) = (0, 500_000_000);
        Interference::between(&before, &after)
    }

    #[test]
    fn planted_counters_come_back_as_shares() {
        let dir = tempfile::tempdir().unwrap();
        let found = between(
            dir.path(),
            |root| plant(root, 1000, 50, 4_000, 3, 1),
            |root| plant(root, 1150, 60, 54_000, 5, 4),
        );
        let expected = Interference {
            wall_ns: 1_000_000_000,
            cpus: Some(allowed_cpus().len() as u32),
            foreign_cpu_share: Some(1.0),
            new_tasks: Some(150),
            steal_share: Some(0.1),
            cpu_stall_share: Some(0.05),
            memory_stall_share: Some(0.1),
            own_memory_stall_share: Some(0.15),
            swapped_pages: Some(6),
            throttled_ns: Some(30_000),
            throttled_times: Some(3),
        };
        let rounded = |share: f64| (share * 1e6).round() / 1e6;
        let found = Interference {
            own_memory_stall_share: found.own_memory_stall_share.map(rounded),
            ..found
        };
        assert_eq!(found, expected);
        let stored = serde_json::to_string(&found).unwrap();
        assert_eq!(
            serde_json::from_str::<Interference>(&stored).unwrap(),
            found
        );
    }

    #[test]
    fn what_other_cpus_do_is_not_counted_unless_they_are_numbered_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let stat = |all: u64, cpus: &str| {
            write(
                dir.path(),
                "proc/stat",
                &format!("cpu  {all} 0 0 0 0 0 0 0\n{cpus}"),
            )
        };
        let idle: String = allowed_cpus()
            .iter()
            .map(|cpu| format!("cpu{cpu} 0 0 0 0 0 0 0 0\n"))
            .collect();
        let busy = format!("{idle}cpu{ELSEWHERE} 200 0 0 0 0 0 0 0\n");
        let found = between(dir.path(), |_| stat(0, &idle), |_| stat(200, &busy));
        assert_eq!(
            (found.foreign_cpu_share, found.cpus),
            (Some(-0.5), Some(allowed_cpus().len() as u32))
        );
        let other = format!("cpu{ELSEWHERE} 0 0 0 0 0 0 0 0\n");
        let found = between(dir.path(), |_| stat(0, &other), |_| stat(200, &other));
        assert_eq!((found.foreign_cpu_share, found.cpus), (Some(1.5), None));
    }

    /// An allocator that holds more memory makes the kernel reclaim: that must not count as another
    /// program.
    #[test]
    fn what_the_kernel_does_for_memory_and_in_interrupts_is_no_other_program() {
        let dir = tempfile::tempdir().unwrap();
        let machine = |ticks: u64| {
            move |root: &Path| {
                process(root, 35, "kswapd0", 2, ticks);
                process(root, 36, "khugepaged", 2, ticks);
                process(root, 37, "kswapd0", 1, 7 * ticks);
                let busy = |cpu: &str| {
                    format!(
                        "{cpu} {} 0 {} 0 0 {ticks} {ticks} 0\n",
                        5 * ticks,
                        4 * ticks
                    )
                };
                let of_cpus: String = allowed_cpus()
                    .iter()
                    .map(|cpu| busy(&format!("cpu{cpu}")))
                    .collect();
                write(
                    root,
                    "proc/stat",
                    &format!("cpu  0 0 0 0 0 0 0 0\n{of_cpus}"),
                );
            }
        };
        let found = between(dir.path(), machine(0), machine(10));
        // 90 ticks on each CPU, of which the two kernel threads took 40; the third process only has
        // a similar name.
        let cpus = allowed_cpus().len() as f64;
        assert_eq!(
            found.foreign_cpu_share,
            Some((cpus * 900.0 - 400.0 - 500.0) / 1000.0)
        );
    }

    #[test]
    fn what_is_not_told_is_absent_and_not_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut counters = Counters::open(&Root::at(dir.path()));
        let (before, after) = (counters.snapshot(), counters.snapshot());
        let found = Interference::between(&before, &after);
        assert_eq!(
            (
                found.foreign_cpu_share,
                found.steal_share,
                found.swapped_pages
            ),
            (None, None, None)
        );
        assert_eq!(
            (
                found.cpu_stall_share,
                found.memory_stall_share,
                found.throttled_ns
            ),
            (None, None, None)
        );
        assert_eq!((found.own_memory_stall_share, found.cpus), (None, None));
    }

    #[test]
    fn this_machine_is_busier_after_work_than_before() {
        let mut counters = Counters::open(&Root::machine());
        let before = counters.snapshot();
        // Works until the kernel has counted some CPU time: ticks are coarse.
        let mut after = before;
        while after.busy_ns == before.busy_ns {
            std::hint::black_box((0..100_000).sum::<u64>());
            after = counters.snapshot();
        }
        assert!(after.busy_ns > before.busy_ns);
    }

    /// Sampling, the client of a server, the command of `--prepare`: none of it counts as another
    /// program's.
    #[test]
    fn what_heapmark_and_its_children_take_is_its_own() {
        const MUCH_NS: u64 = 30_000_000;
        let mut counters = Counters::open(&Root::machine());
        let before = counters.snapshot().own_cpu_ns;
        while counters.snapshot().own_cpu_ns < before + MUCH_NS {
            std::hint::black_box((0..100_000).sum::<u64>());
        }
        // Other tests may run meanwhile: the values are read in an order that leaves their work
        // out.
        let before = counters.snapshot().own_cpu_ns;
        let self_before = cpu_ns(libc::RUSAGE_SELF);
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; cat /proc/$$/stat";
        let output = std::process::Command::new("sh")
            .args(["-c", busy])
            .output()
            .unwrap();
        let child_ticks = process_ticks(&String::from_utf8(output.stdout).unwrap()).unwrap();
        let self_after = cpu_ns(libc::RUSAGE_SELF);
        let children = counters.snapshot().own_cpu_ns - before - (self_after - self_before);
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert!(
            child_ticks > 0 && children >= child_ticks * tick_ns,
            "{children} ns and {child_ticks} ticks"
        );
    }
}
