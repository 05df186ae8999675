//! What keeps the machine busy at the moment.

use super::item::{PreflightItem, item, note_if, warning_if};
use super::processor::online_cpus;
use super::{Root, When};
use crate::machine::counters::{CpuTicks, Stall};

/// The share of the last ten seconds from which pressure gives a warning. Much less for memory than
/// for CPU: a healthy machine has none.
const CPU_PERCENT: f64 = 5.0;
const MEMORY_PERCENT: f64 = 1.0;
const IO_PERCENT: f64 = 10.0;
/// The percentage of the wanted CPU time from which steal time gives a warning.
const STEAL_PERCENT: f64 = 1.0;
/// A load up to the larger of two limits gives no warning: this load, and this share of the number of CPUs.
const LOAD_LEAST: f64 = 0.5;
const LOAD_OF_CPUS: f64 = 0.1;

pub fn items(root: &Root, when: When) -> Vec<PreflightItem> {
    // After a run, these figures include the run's own processes: they are recorded, but give no
    // warning.
    let warning = match when {
        When::Before => warning_if,
        When::After => note_if,
    };
    let pressure = |resource: &str, means: &str, change: &str, limit: f64| {
        let stall = root
            .text(&format!("proc/pressure/{resource}"))
            .and_then(|text| Stall::read(&text));
        item(
            &format!("{resource}-pressure"),
            means,
            change,
            stall,
            |stall| {
                let percent = stall.last_10s_percent;
                (format!("{percent:.2} % of 10 s"), warning(percent >= limit))
            },
        )
    };
    let load = root
        .text("proc/loadavg")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    vec![
        pressure(
            "cpu",
            "something else waited for a CPU within the last ten seconds: wall times hold its turns, too",
            "see what runs and end it: top -o %CPU",
            CPU_PERCENT,
        ),
        pressure(
            "memory",
            "something waited for memory within the last ten seconds: reclaim runs, and page faults take as long as it likes",
            "end what holds memory: ps aux --sort=-rss | head",
            MEMORY_PERCENT,
        ),
        pressure(
            "io",
            "something waits for a disk: its interrupts and writes take CPU time, and loading a library may wait behind it",
            "wait until it has ended: cat /proc/pressure/io",
            IO_PERCENT,
        ),
        steal(root),
        item(
            "load",
            "others run: they take turns on the CPUs, and share caches, memory and frequency with what is measured",
            "see what runs, end it, and wait a minute: uptime; top -o %CPU",
            load,
            |load| {
                let cpus = online_cpus(root).unwrap_or(1);
                let most = LOAD_LEAST.max(LOAD_OF_CPUS * cpus as f64);
                (format!("{load:.2} over a minute"), warning(load > most))
            },
        ),
    ]
}

/// Reports the steal time since boot: the check itself is too short to measure a share.
fn steal(root: &Root) -> PreflightItem {
    item(
        "steal",
        "the hypervisor gave CPU time to other guests while this one wanted to run: wall and CPU times have their work in them",
        "use a machine, or an instance, with CPUs of its own",
        root.text("proc/stat")
            .and_then(|text| CpuTicks::read(&text)),
        |ticks| {
            // At least one tick, so that nothing is divided by zero.
            let all = (ticks.busy() + ticks.steal).max(1);
            let percent = 100.0 * ticks.steal as f64 / all as f64;
            (
                format!("{percent:.2} % of CPU time since boot"),
                warning_if(percent >= STEAL_PERCENT),
            )
        },
    )
}
