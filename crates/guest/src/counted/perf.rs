//! Events that the kernel counts for a process: the processor's own, if the machine allows it, and
//! page faults. Only events in user mode are counted: ordinary users may not be allowed to count
//! the kernel's own work.

use crate::report;
use crate::sys;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// An event that can be counted.
#[derive(Clone, Copy)]
pub struct PerfEvent {
    /// The event's name in reports.
    pub name: &'static str,
    kind: u32,
    config: u64,
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const READ_MISSES: u64 = 1 << 16;

/// Retired instructions.
pub const INSTRUCTIONS: PerfEvent = PerfEvent {
    name: "instructions",
    kind: HARDWARE,
    config: 1,
};

/// The events that are counted.
pub const EVENTS: [PerfEvent; 6] = [
    INSTRUCTIONS,
    PerfEvent {
        name: "cycles",
        kind: HARDWARE,
        config: 0,
    },
    PerfEvent {
        name: "cache_misses",
        kind: HARDWARE,
        config: 3,
    },
    PerfEvent {
        name: "l1d_read_misses",
        kind: CACHE,
        config: READ_MISSES,
    },
    PerfEvent {
        name: "dtlb_read_misses",
        kind: CACHE,
        config: 3 | READ_MISSES,
    },
    PerfEvent {
        name: "page_faults",
        kind: SOFTWARE,
        config: 2,
    },
];

/// The first version of the kernel's `perf_event_attr`, which every kernel accepts.
#[repr(C)]
#[derive(Default)]
struct PerfAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_kind: u32,
    breakpoint_address: u64,
}

const _: () = assert!(size_of::<PerfAttributes>() == 64);

/// Which threads an event is counted for, and when counting starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// The calling thread, at once.
    Caller,
    /// The calling thread and all threads that it creates from now on, once the event is switched
    /// on.
    Descendants,
}

/// A counter's values: its count, how long it was switched on, and for how much of that time it
/// really counted.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Reading {
    /// Number of events.
    pub count: u64,
    /// Time for which the counter was switched on.
    pub enabled_ns: u64,
    /// Time for which the event had one of the processor's counters.
    pub running_ns: u64,
}

/// Opens a file that counts an event in user mode, or returns the error's number.
pub fn open(event: PerfEvent, whom: Whom) -> Result<i32, i32> {
    const TIME_ENABLED: u64 = 1 << 0;
    const TIME_RUNNING: u64 = 1 << 1;
    const DISABLED: u64 = 1 << 0;
    const INHERIT: u64 = 1 << 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    const THIS_THREAD: i32 = 0;
    const ANY_CPU: i32 = -1;
    const NO_GROUP: i32 = -1;
    const CLOSE_ON_EXEC: usize = 1 << 3;
    let later = if whom == Whom::Descendants {
        DISABLED | INHERIT
    } else {
        0
    };
    let attributes = PerfAttributes {
        kind: event.kind,
        size: size_of::<PerfAttributes>() as u32,
        config: event.config,
        read_format: TIME_ENABLED | TIME_RUNNING,
        flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR | later,
        ..PerfAttributes::default()
    };
    let attributes = (&raw const attributes).addr();
    let arguments = [
        attributes,
        THIS_THREAD as usize,
        ANY_CPU as usize,
        NO_GROUP as usize,
        CLOSE_ON_EXEC,
    ];
    // SAFETY: the kernel reads `size` bytes of attributes, which outlive the call, and writes
    // nothing.
    let file = unsafe { sys::call(libc::SYS_perf_event_open, arguments) } as i32;
    if file < 0 { Err(-file) } else { Ok(file) }
}

/// Reads a counter.
pub fn read(file: i32) -> Option<Reading> {
    let mut reading = Reading::default();
    // SAFETY: reads into a local of that size.
    let read = unsafe {
        sys::call(
            libc::SYS_read,
            [
                file as usize,
                (&raw mut reading).addr(),
                size_of::<Reading>(),
            ],
        )
    };
    (read == size_of::<Reading>() as isize).then_some(reading)
}

/// For each event, its file descriptor or the negated error number.
static FILES: [AtomicI32; EVENTS.len()] = [const { AtomicI32::new(0) }; EVENTS.len()];

pub(super) fn start() {
    let mut any = false;
    for (event, file) in EVENTS.iter().zip(&FILES) {
        let opened = open(*event, Whom::Descendants);
        any |= opened.is_ok();
        file.store(opened.unwrap_or_else(|error| -error), Relaxed);
    }
    if !any {
        fail!(
            "unsupported",
            "this machine does not allow counting: errno {}",
            -first()
        );
    }
}

fn first() -> i32 {
    FILES[0].load(Relaxed)
}

/// Switches all events on or off, for all threads.
pub(super) fn switch(on: bool) {
    const ENABLE: usize = 0x2400;
    const DISABLE: usize = 0x2401;
    for file in FILES
        .iter()
        .map(|file| file.load(Relaxed))
        .filter(|file| *file > 0)
    {
        // SAFETY: no memory of ours is touched.
        unsafe {
            sys::call(
                libc::SYS_ioctl,
                [file as usize, if on { ENABLE } else { DISABLE }],
            )
        };
    }
}

pub(super) fn report() {
    for (PerfEvent { name, .. }, file) in EVENTS.iter().zip(&FILES) {
        let reading = Some(file.load(Relaxed))
            .filter(|file| *file > 0)
            .and_then(read);
        match reading.map(|reading| (counted(reading), reading)) {
            None => report::say("note", format_args!("{name} not supported")),
            Some((Some(count), _)) => report::say("count", format_args!("{name} {count}")),
            Some((None, _)) => report::say("note", format_args!("{name} multiplexed")),
        }
    }
}

/// Returns the count for the whole time. If there are more events than the processor has counters,
/// they take turns: a count that covers half the time or more is scaled up, and one that covers
/// less is dropped.
fn counted(
    Reading {
        count,
        enabled_ns,
        running_ns,
    }: Reading,
) -> Option<u64> {
    if running_ns.saturating_mul(2) < enabled_ns {
        return None;
    }
    Some((count as u128 * enabled_ns.max(1) as u128 / running_ns.max(1) as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_scaled_up_or_not_told() {
        let reading = |enabled_ns, running_ns| Reading {
            count: 600,
            enabled_ns,
            running_ns,
        };
        assert_eq!(counted(reading(1000, 1000)), Some(600));
        assert_eq!(counted(reading(1000, 500)), Some(1200));
        assert_eq!(counted(reading(1000, 499)), None);
        assert_eq!(counted(reading(1000, 0)), None);
        assert_eq!(counted(Reading::default()), Some(0));
    }
}
