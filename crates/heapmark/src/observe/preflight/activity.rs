//! What keeps the machine busy at the moment.

use super::When;
use super::item::{ItemSubject, PreflightItem, note_if, warning_if};
use super::processor::count;
use crate::observe::counters::{CpuTicks, Stall};
use crate::observe::root::Root;

const CPU: ItemSubject = ItemSubject {
    name: "cpu-pressure",
    means: "something else waited for a CPU within the last ten seconds: wall times hold its turns, too",
    change: "see what runs and end it: top -o %CPU",
};

const MEMORY: ItemSubject = ItemSubject {
    name: "memory-pressure",
    means: "something waited for memory within the last ten seconds: reclaim runs, and page faults take as long as it likes",
    change: "end what holds memory: ps aux --sort=-rss | head",
};

const IO: ItemSubject = ItemSubject {
    name: "io-pressure",
    means: "something waits for a disk: its interrupts and writes take CPU time, and loading a library may wait behind it",
    change: "wait until it has ended: cat /proc/pressure/io",
};

const STEAL: ItemSubject = ItemSubject {
    name: "steal",
    means: "the hypervisor gave CPU time to other guests while this one wanted to run: wall and CPU times have their work in them",
    change: "use a machine, or an instance, with CPUs of its own",
};

const LOAD: ItemSubject = ItemSubject {
    name: "load",
    means: "others run: they take turns on the CPUs, and share caches, memory and frequency with what is measured",
    change: "see what runs, end it, and wait a minute: uptime; top -o %CPU",
};

/// The share of the last ten seconds from which pressure gives a warning. Much less for memory than
/// for CPU: a healthy machine has none.
const CPU_PERCENT: f64 = 5.0;
const MEMORY_PERCENT: f64 = 1.0;
const IO_PERCENT: f64 = 10.0;
/// Per cent of the CPU time that was wanted.
const STEAL_PERCENT: f64 = 1.0;
/// A load that is high on any machine, and the share of its CPUs that is.
const LOAD_LEAST: f64 = 0.5;
const LOAD_OF_CPUS: f64 = 0.1;

pub(super) fn items(root: &Root, when: When) -> Vec<PreflightItem> {
    // After a run its own processes are in these figures: they are recorded, but give no warning.
    let warning = match when {
        When::Before => warning_if,
        When::After => note_if,
    };
    let pressure = |subject: &ItemSubject, file: &str, limit: f64| {
        let stall = root
            .text(&format!("proc/pressure/{file}"))
            .and_then(|text| Stall::read(&text));
        subject.judged(stall, |stall| {
            let percent = stall.last_10s_percent;
            (format!("{percent:.2} % of 10 s"), warning(percent >= limit))
        })
    };
    let load = root
        .text("proc/loadavg")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let cpus = root
        .text("sys/devices/system/cpu/online")
        .and_then(|list| count(&list))
        .unwrap_or(1);
    vec![
        pressure(&CPU, "cpu", CPU_PERCENT),
        pressure(&MEMORY, "memory", MEMORY_PERCENT),
        pressure(&IO, "io", IO_PERCENT),
        steal(root),
        LOAD.judged(load, |load| {
            let most = LOAD_LEAST.max(LOAD_OF_CPUS * cpus as f64);
            (format!("{load:.2} over a minute"), warning(load > most))
        }),
    ]
}

/// Since boot: the check is too short for a share of its own.
fn steal(root: &Root) -> PreflightItem {
    let ticks = root
        .text("proc/stat")
        .and_then(|text| CpuTicks::read(&text));
    STEAL.judged(ticks, |ticks| {
        let all = (ticks.busy() + ticks.steal) as f64;
        let percent = if ticks.steal == 0 {
            0.0
        } else {
            100.0 * ticks.steal as f64 / all
        };
        (
            format!("{percent:.2} % of CPU time since boot"),
            warning_if(percent >= STEAL_PERCENT),
        )
    })
}
