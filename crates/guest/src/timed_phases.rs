//! Workers that live through several timed laps. The same thread does the work before, on and after
//! the clock. A lap ends when its last worker reports its end, not when a thread has been torn
//! down: some laps take microseconds. The main thread may be the only worker; even then, a worker's
//! code on the clock is the same.

use crate::clock;
use crate::measured::{Moment, Span};
use crate::memory::{HarnessTable, Padded};
use crate::null;
use crate::threads::{Gate, Semaphore, Team, ThreadTime, Workers, make_ready};
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering::AcqRel};

/// The work of each worker in each lap.
pub trait Load: Sync {
    /// Does what every worker has to do before the clock starts.
    fn before(&self, _worker: usize, _lap: usize) {}
    /// Called by the main thread once all workers are ready for the start of the clock.
    fn all_here(&self, _lap: usize) {}
    /// Does what every worker has to do on the clock.
    fn timed(&self, worker: usize, lap: usize);
    /// Does what every worker has to do after the clock has stopped.
    fn after(&self, _worker: usize, _lap: usize) {}
}

/// The times of a lap.
pub struct Lapse {
    /// Time from the release of the workers to the end of the last worker.
    pub span: Span,
    /// Time from the release to a worker's own end, averaged over the workers.
    pub mean_ns: u64,
}

struct Course<'l, L> {
    load: &'l L,
    threads: usize,
    gates: HarnessTable<Gate>,
    ends: HarnessTable<Padded<Cell<LapEnd>>>,
    /// How many times a worker has ended a lap, over all laps.
    ended: AtomicU32,
    last_ended: Semaphore,
    go_on: Semaphore,
}

/// When a worker ended its lap, and the CPU time that the lap took.
#[derive(Clone, Copy)]
struct LapEnd {
    at_ns: u64,
    cpu_ns: u64,
}

/// Runs `laps` laps. `note` gets each lap's times; the workers' own times are in the order of the
/// workers.
pub fn run<L: Load>(
    workers: Workers,
    laps: usize,
    load: &L,
    note: impl FnMut(usize, Lapse, &[ThreadTime]),
) {
    match workers {
        Workers::Main => alone(laps, load, note),
        Workers::Threads(threads) => together(threads, laps, load, note),
    }
}

/// The main thread does the work of the one worker.
fn alone<L: Load>(laps: usize, load: &L, mut note: impl FnMut(usize, Lapse, &[ThreadTime])) {
    null::change_window();
    make_ready();
    for lap in 0..laps {
        load.before(0, lap);
        load.all_here(lap);
        let began = Moment::start();
        let LapEnd { at_ns, cpu_ns } = timed(load, 0, lap);
        let usage = began.elapsed();
        let wall_ns = at_ns.saturating_sub(began.wall_ns());
        let lapse = Lapse {
            span: Span { wall_ns, ..usage },
            mean_ns: wall_ns,
        };
        note(lap, lapse, &[ThreadTime { wall_ns, cpu_ns }]);
        load.after(0, lap);
    }
    null::change_window();
}

fn together<L: Load>(
    threads: usize,
    laps: usize,
    load: &L,
    mut note: impl FnMut(usize, Lapse, &[ThreadTime]),
) {
    let course = Course {
        load,
        threads,
        gates: HarnessTable::zeroed(laps),
        ends: HarnessTable::zeroed(threads),
        ended: AtomicU32::new(0),
        last_ended: Semaphore::default(),
        go_on: Semaphore::default(),
    };
    let mut times = HarnessTable::<ThreadTime>::zeroed(threads);
    let team = Team::gather(Workers::Threads(threads), &course, worker::<L>);
    // What workers do before a lap is not counted.
    let began = team.let_go();
    for lap in 0..laps {
        course.gates[lap].all_here(threads);
        load.all_here(lap);
        let release = course.gates[lap].open();
        course.last_ended.wait();
        let usage = release.elapsed();
        for (time, end) in times.iter_mut().zip(course.ends.iter()) {
            let LapEnd { at_ns, cpu_ns } = end.get();
            *time = ThreadTime {
                wall_ns: at_ns.saturating_sub(release.wall_ns()),
                cpu_ns,
            };
        }
        let last_ns = times.iter().map(|time| time.wall_ns).max().unwrap_or(0);
        let mean_ns = times.iter().map(|time| time.wall_ns).sum::<u64>() / threads as u64;
        note(
            lap,
            Lapse {
                span: Span {
                    wall_ns: last_ns,
                    ..usage
                },
                mean_ns,
            },
            &times,
        );
        (0..threads).for_each(|_| course.go_on.post());
    }
    team.join(&began, |_, _| {});
}

fn worker<L: Load>(course: &Course<'_, L>, index: usize) {
    for (lap, gate) in course.gates.iter().enumerate() {
        course.load.before(index, lap);
        gate.wait();
        course.ends[index].set(timed(course.load, index, lap));
        // A worker that is done sleeps: there may be fewer CPUs than workers, so that no CPU is
        // free for spinning.
        if course.ended.fetch_add(1, AcqRel) as usize + 1 == course.threads * (lap + 1) {
            course.last_ended.post();
        }
        course.go_on.wait();
        course.load.after(index, lap);
    }
}

/// Runs and times a worker's lap. Never inlined, so that the code is the same for all threads.
#[inline(never)]
fn timed<L: Load>(load: &L, worker: usize, lap: usize) -> LapEnd {
    let cpu_ns = clock::thread_cpu_ns();
    load.timed(worker, lap);
    let at_ns = clock::now_ns();
    LapEnd {
        at_ns,
        cpu_ns: clock::thread_cpu_ns() - cpu_ns,
    }
}
