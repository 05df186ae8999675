//! The threads of a replay. Threads that existed from the start wait at a gate; every other thread is created by the
//! thread that created it in the recorded program, and ends where the recorded thread ended. So threads come and go as
//! in the program. The main thread plays what the program's main thread did, since some allocators give the main thread
//! a different heap.

use super::order::ReplayOrder;
use super::points::Points;
use super::sheet::Sheet;
use super::touch::Touch;
use super::tuning::Tuning;
use super::walk::Walk;
use super::*;
use crate::clock;
use crate::cpus::Cpus;
use crate::scheduled;
use crate::stack::Stack;
use crate::threads::{Gate, ThreadTime, create, make_ready, wait_until};
use core::ffi::c_void;
use core::sync::atomic::fence;
use heapmark_wire::ReplayProgress;
use heapmark_wire::compiled::CompiledThread;

/// State shared by all threads of a round.
pub struct Stage<'a> {
    pub api: Api,
    pub sheet: &'a Sheet,
    pub slots: &'a [Cell<*mut u8>],
    pub points: &'a Points,
    pub touch: Touch,
    pub walk: Walk,
    pub tuning: Tuning,
    pub order: ReplayOrder<'a>,
    /// Plays a thread's stream from this word on; returns the work done, and whether the recorded thread ended there.
    stream: fn(&Stage<'_>, usize, usize) -> (KernelWork, bool),
    /// Factor by which recorded time is played faster; 0 if recorded time is ignored.
    pub pace: f64,
    pub began_ns: AtomicU64,
    /// Whether one thread plays at a time, in the recorded order.
    strict: bool,
    /// Index of the recorded thread that the main thread plays, if any.
    main: Option<usize>,
    seats: &'a [Padded<ReplayThread>],
    gate: Gate,
    /// Threads whose streams have ended, in the order of their ends, each as index plus one.
    over: HarnessTable<AtomicU32>,
    overs: AtomicU32,
    one_is_over: Semaphore,
    curtain: Semaphore,
    /// An additional thread that joins the threads that end while the main thread itself plays.
    joiner: Joiner,
    /// Number of threads that play.
    players: usize,
}

/// The joiner and its orders. If all is zero, there is no joiner.
#[derive(Default)]
struct Joiner {
    thread: Cell<Option<libc::pthread_t>>,
    /// Whether no further round follows.
    is_over: AtomicBool,
    begin: Semaphore,
    done: Semaphore,
}

impl Joiner {
    fn is_there(&self) -> bool {
        self.thread.get().is_some()
    }
}

// SAFETY: the order of the compiled trace gives a slot to one thread at a time; a wrong order is
// found by an empty or a full slot. The semaphores are made to be shared.
unsafe impl Sync for Stage<'_> {}

/// One thread of a replay; all zero before the thread's first round.
pub struct ReplayThread {
    stage: Cell<*const c_void>,
    index: Cell<usize>,
    thread: Cell<libc::pthread_t>,
    stack: Cell<Stack>,
    /// Whether the thread exists or has existed.
    is_created: Cell<bool>,
    has_come: AtomicBool,
    /// Whether the stream ended with the end of the recorded thread.
    has_exited: Cell<bool>,
    /// The thread's work in this round.
    pub tally: Cell<KernelWork>,
    began_ns: Cell<u64>,
    ended_ns: Cell<u64>,
    cpu_ns: Cell<u64>,
}

impl<'a> Stage<'a> {
    /// Makes a stage for all rounds of a job.
    pub fn new(
        bench: &Bench,
        sheet: &'a Sheet,
        slots: &'a [Cell<*mut u8>],
        seats: &'a [Padded<ReplayThread>],
        steps: &'a [ReplayProgress],
        points: &'a Points,
        stream: fn(&Stage<'_>, usize, usize) -> (KernelWork, bool),
    ) -> Stage<'a> {
        let strict = bench.parameter("mode") == "memory";
        let players = (0..seats.len())
            .filter(|index| thread(sheet, *index).plays())
            .count();
        let pace = if bench.parameter("mode") == "paced" {
            bench.parameter("pace").parse().unwrap_or(1.0)
        } else {
            0.0
        };
        let crowded = sheet.head.threads_at_a_time as usize > Cpus::usable().count();
        Stage {
            api: bench.api,
            sheet,
            slots,
            points,
            touch: Touch::of(bench.parameter("touch")),
            walk: Walk::new(bench.count("reads"), slots.len()),
            tuning: Tuning::find(),
            order: ReplayOrder::new(steps, crowded, bench.number("skew")),
            stream,
            pace,
            began_ns: AtomicU64::new(0),
            strict,
            main: main_of(bench, sheet),
            seats,
            gate: Gate::default(),
            over: HarnessTable::shared(seats.len()),
            overs: AtomicU32::new(0),
            one_is_over: Semaphore::default(),
            curtain: Semaphore::default(),
            joiner: Joiner::default(),
            players,
        }
    }

    fn thread(&self, index: usize) -> CompiledThread {
        thread(self.sheet, index)
    }

    fn is_there_from_the_start(&self, index: usize) -> bool {
        let thread = self.thread(index);
        thread.plays() && !thread.is_started
    }

    fn at_start(&self) -> impl Iterator<Item = usize> {
        (0..self.seats.len()).filter(|index| self.is_there_from_the_start(*index))
    }

    /// Returns how many threads exist from the start.
    pub fn threads_at_start(&self) -> usize {
        self.at_start().count()
    }

    /// Resets all progress; called before a round.
    pub fn set(&mut self) {
        self.gate = Gate::default();
        self.over.iter().for_each(|place| place.store(0, Relaxed));
        self.overs.store(0, Relaxed);
        self.order.reset();
        for (index, seat) in self.seats.iter().enumerate() {
            seat.is_created.set(false);
            seat.has_come.store(false, Relaxed);
            self.order.steps[index].reset(self.is_there_from_the_start(index));
        }
    }

    /// Creates the joiner if one is needed. The stage must not move until [`Stage::dismiss`].
    pub fn hire(&self) {
        if self.main.is_some() && self.players > 1 {
            let argument = ptr::from_ref(self).cast_mut().cast();
            let (stack, index) = (Stack::none(), self.seats.len());
            // SAFETY: the stage outlives the thread, which is joined.
            let thread = unsafe { create(join_those_that_end, argument, &stack, false, index) };
            self.joiner.thread.set(Some(thread));
        }
    }

    /// Ends the joiner; called after the last round.
    pub fn dismiss(&self) {
        if let Some(thread) = self.joiner.thread.take() {
            self.joiner.is_over.store(true, Release);
            self.joiner.begin.post();
            // SAFETY: a joinable thread of ours, joined once.
            unsafe { libc::pthread_join(thread, ptr::null_mut()) };
        }
    }

    /// Plays a whole round: creates the threads that exist from the start, and starts the clock once
    /// all of them wait for it. Returns when all streams have ended.
    pub fn play_all(&self) -> Moment {
        let others = || self.at_start().filter(|index| Some(*index) != self.main);
        others().for_each(|index| self.create(index));
        if self.main.is_some() {
            make_ready();
        }
        self.gate.all_here(others().count());
        self.began_ns.store(clock::now_ns(), Relaxed);
        let began = self.gate.open();
        if self.joiner.is_there() {
            self.joiner.begin.post();
        }
        if let Some(main) = self.main {
            self.play(main);
        }
        if self.joiner.is_there() {
            self.joiner.done.wait();
        } else {
            self.until_all_are_over();
        }
        began
    }

    /// Plays a thread's whole stream and reads the thread's own clocks before and after. Never inlined, so that the
    /// code is the same for all threads.
    #[inline(never)]
    fn play(&self, index: usize) {
        let seat = &self.seats[index];
        let first = self.thread(index).first as usize;
        let cpu_ns = clock::thread_cpu_ns();
        seat.began_ns.set(clock::now_ns());
        let (tally, has_exited) = (self.stream)(self, index, first);
        seat.tally.set(tally);
        seat.has_exited.set(has_exited);
        seat.cpu_ns.set(clock::thread_cpu_ns() - cpu_ns);
        seat.ended_ns.set(clock::now_ns());
        self.order.steps[index].rest();
        let place = self.overs.fetch_add(1, AcqRel) as usize;
        self.over[place].store(index as u32 + 1, Release);
        self.one_is_over.post();
    }

    /// Creates a thread, which begins at once, or at the gate if it exists from the start.
    pub fn create(&self, index: usize) {
        let Some(seat) = self
            .seats
            .get(index)
            .filter(|seat| !seat.is_created.replace(true))
        else {
            fail!(
                "error",
                "the compiled trace starts thread {index} twice, or has none"
            );
        };
        seat.stage.set(ptr::from_ref(self).cast());
        seat.index.set(index);
        let stack = Stack::where_wanted();
        let argument = ptr::from_ref(seat).cast_mut().cast();
        // SAFETY: the seat and the stage outlive the thread, which is joined, and only then its
        // stack goes.
        let thread = unsafe { create(enter, argument, &stack, false, index) };
        seat.stack.set(stack);
        // The thread that joins this one waits for this store.
        fence(Release);
        seat.thread.set(thread);
        if self.strict {
            // Otherwise the first steps of the new thread would race with the threads that
            // continue.
            wait_until(|| seat.has_come.load(Acquire));
        }
    }

    /// Joins threads that exit; returns once all streams have ended.
    fn until_all_are_over(&self) {
        for place in self.over.iter().take(self.players) {
            self.one_is_over.wait();
            wait_until(|| place.load(Acquire) != 0);
            let index = place.load(Acquire) as usize - 1;
            if self.seats[index].has_exited.get() {
                self.join(index);
                // A thread that waits for this thread's end waits for one op more than this thread has: by now this
                // thread's caches are freed, too.
                self.order.steps[index].finish(self.order.steps[index].done() + 1);
            }
        }
    }

    /// Lets the other threads end, and reports the times of all threads. Called after the clock has stopped.
    pub fn curtain(&self, mut note: impl FnMut(usize, ThreadTime), began: &Moment) {
        let players = || {
            self.seats
                .iter()
                .enumerate()
                .filter(|(index, _)| self.thread(*index).plays())
        };
        let waits = |index, seat: &Padded<ReplayThread>| {
            Some(index) != self.main && !seat.0.has_exited.get()
        };
        players()
            .filter(|(index, seat)| waits(*index, seat))
            .for_each(|_| self.curtain.post());
        for (index, seat) in players() {
            if waits(index, seat) {
                self.join(index);
            }
            let wall_ns = seat
                .ended_ns
                .get()
                .saturating_sub(seat.began_ns.get().max(began.wall_ns()));
            note(
                index,
                ThreadTime {
                    wall_ns,
                    cpu_ns: seat.cpu_ns.get(),
                },
            );
        }
    }

    fn join(&self, index: usize) {
        if self.main == Some(index) {
            return;
        }
        let seat = &self.seats[index];
        // The thread's creator may still be returning from `pthread_create`.
        wait_until(|| seat.thread.get() != 0);
        // SAFETY: a joinable thread of ours, joined once; then no thread runs on its stack.
        unsafe {
            libc::pthread_join(seat.thread.replace(0), ptr::null_mut());
            seat.stack.replace(Stack::none()).unmap();
        }
    }
}

fn thread(sheet: &Sheet, index: usize) -> CompiledThread {
    let found = CompiledThread::of(sheet.words, &sheet.head, index);
    found.unwrap_or_else(|| fail!("error", "the compiled trace has no thread {index}"))
}

/// Returns the index of the recorded thread that the main thread plays, if any.
fn main_of(bench: &Bench, sheet: &Sheet) -> Option<usize> {
    let main = sheet.head.main.checked_sub(1)? as usize;
    (bench.parameter("thread") != "worker").then_some(main)
}

extern "C" fn join_those_that_end(stage: *mut c_void) -> *mut c_void {
    // SAFETY: the stage that `hire` handed over, which outlives this thread.
    let stage = unsafe { &*stage.cast::<Stage>() };
    loop {
        stage.joiner.begin.wait();
        if stage.joiner.is_over.load(Acquire) {
            return ptr::null_mut();
        }
        stage.until_all_are_over();
        stage.joiner.done.post();
    }
}

extern "C" fn enter(seat: *mut c_void) -> *mut c_void {
    // SAFETY: the seat that `create` handed over, of a stage that outlives this thread.
    let (seat, stage) = unsafe {
        let seat = &*seat.cast::<ReplayThread>();
        (seat, &*seat.stage.get().cast::<Stage>())
    };
    let index = seat.index.get();
    seat.has_come.store(true, Release);
    make_ready();
    if !stage.thread(index).is_started {
        stage.gate.wait();
    }
    stage.play(index);
    scheduled::must_be_as_launched();
    if !seat.has_exited.get() {
        stage.curtain.wait();
    }
    ptr::null_mut()
}
