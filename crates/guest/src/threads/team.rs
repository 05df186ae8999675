//! A team of workers that all exist before the clock starts. Alternatively, the main thread alone
//! does the work of one worker; then the process never creates a thread.

use super::create::create;
use super::gate::Gate;
use crate::aged;
use crate::clock;
use crate::latency;
use crate::measured::Moment;
use crate::memory::{HarnessTable, Padded};
use crate::null;
use crate::scheduled;
use crate::stack::Stack;
use core::ffi::c_void;
use core::ptr;

/// The function that a worker runs, given the shared context and the worker's index.
pub type Body<C> = fn(&C, usize);

/// The number of workers of a process, and the threads that run them.
#[derive(Clone, Copy)]
pub enum Workers {
    /// The main thread is the only worker.
    Main,
    /// This many workers, each with a thread of its own besides the main thread.
    Threads(usize),
}

impl Workers {
    /// Returns the number of workers.
    pub fn count(self) -> usize {
        match self {
            Workers::Main => 1,
            Workers::Threads(threads) => threads,
        }
    }
}

/// Workers that wait at a gate for [`Team::release`] or [`Team::let_go`].
pub struct Team<'c, C> {
    workers: Workers,
    crew: HarnessTable<Crew<'c, C>>,
    seats: HarnessTable<Padded<TeamWorker<'c, C>>>,
}

/// The state that the workers share. All zero when the table has just been made.
struct Crew<'c, C> {
    gate: Gate,
    context: Option<&'c C>,
    body: Option<Body<C>>,
}

/// A worker of the team. All zero when the table has just been made.
struct TeamWorker<'c, C> {
    crew: *const Crew<'c, C>,
    index: usize,
    thread: libc::pthread_t,
    /// The worker's stack, if memory over time is recorded; otherwise the C library provides one.
    stack: Stack,
    began_ns: u64,
    ended_ns: u64,
    cpu_ns: u64,
}

/// The times measured by a worker's own clocks.
#[derive(Clone, Copy, Default)]
pub struct ThreadTime {
    /// Time from the release to the worker's end, in nanoseconds.
    pub wall_ns: u64,
    /// CPU time over the same span, in nanoseconds.
    pub cpu_ns: u64,
}

impl<'c, C: Sync> Team<'c, C> {
    /// Creates the workers and returns once each of them waits at the gate.
    pub fn gather(workers: Workers, context: &'c C, body: Body<C>) -> Team<'c, C> {
        let mut team = Team {
            workers,
            crew: HarnessTable::zeroed(1),
            seats: HarnessTable::zeroed(workers.count()),
        };
        team.crew[0].context = Some(context);
        team.crew[0].body = Some(body);
        let crew = &raw const team.crew[0];
        for (index, Padded(seat)) in team.seats.iter_mut().enumerate() {
            seat.crew = crew;
            seat.index = index;
            if matches!(workers, Workers::Threads(_)) {
                seat.stack = Stack::where_wanted();
                let argument = (&raw mut *seat).cast();
                // SAFETY: the seat outlives the thread, and so does the stack: `join` takes the
                // team.
                seat.thread = unsafe { create(work::<C>, argument, &seat.stack, false, index) };
            }
        }
        match workers {
            Workers::Main => {
                null::change_window();
                make_ready();
            }
            Workers::Threads(threads) => team.crew[0].gate.all_here(threads),
        }
        team
    }

    /// Starts the clock, then the workers. The main thread does its own work in [`Team::join`].
    pub fn release(&self) -> Moment {
        self.crew[0].gate.open()
    }

    /// Starts the workers, whose measured phases are still to begin: nothing is counted yet.
    pub fn let_go(&self) -> Moment {
        let moment = Moment::uncounted();
        self.crew[0].gate.let_go();
        moment
    }

    /// Waits for the workers to end and passes the times of each to `note`.
    pub fn join(mut self, began: &Moment, mut note: impl FnMut(usize, ThreadTime)) {
        for Padded(seat) in self.seats.iter_mut() {
            if matches!(self.workers, Workers::Main) {
                seat.work();
                null::change_window();
                continue;
            }
            // SAFETY: a joinable thread of ours, joined once; then no thread runs on its stack.
            unsafe {
                libc::pthread_join(seat.thread, ptr::null_mut());
                seat.stack.unmap();
            }
        }
        for (index, Padded(seat)) in self.seats.iter().enumerate() {
            let wall_ns = seat
                .ended_ns
                .saturating_sub(seat.began_ns.max(began.wall_ns()));
            note(
                index,
                ThreadTime {
                    wall_ns,
                    cpu_ns: seat.cpu_ns,
                },
            );
        }
    }
}

/// Prepares the calling thread for its work; called by each working thread before the clock starts.
pub fn make_ready() {
    scheduled::must_be_as_launched();
    null::prepare();
    latency::prepare();
    aged::come();
}

extern "C" fn work<C: Sync>(seat: *mut c_void) -> *mut c_void {
    // SAFETY: the seat that `gather` handed over; only this thread writes to it until it is joined.
    let seat = unsafe { &mut *seat.cast::<TeamWorker<'_, C>>() };
    make_ready();
    // SAFETY: the crew outlives its threads.
    unsafe { &*seat.crew }.gate.wait();
    seat.work();
    scheduled::must_be_as_launched();
    ptr::null_mut()
}

impl<C> TeamWorker<'_, C> {
    /// Runs the body, and reads this worker's own clocks before and after it.
    fn work(&mut self) {
        // SAFETY: the crew outlives its workers.
        let crew = unsafe { &*self.crew };
        let (Some(context), Some(body)) = (crew.context, crew.body) else {
            return;
        };
        let cpu_ns = clock::thread_cpu_ns();
        self.began_ns = clock::now_ns();
        body(context, self.index);
        self.cpu_ns = clock::thread_cpu_ns() - cpu_ns;
        self.ended_ns = clock::now_ns();
    }
}
