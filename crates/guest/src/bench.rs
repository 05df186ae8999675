//! The interface between a kernel and the harness: parameters, allocator, rounds, and results.

use crate::aged;
use crate::api::Api;
use crate::check;
use crate::counted;
use crate::cpus::Cpus;
use crate::held;
use crate::job::{Job, c_str};
use crate::measured::{self, Moment, Span};
use crate::memory::{self, HarnessTable, Resident};
use crate::purge::PurgeCall;
use crate::report;
use crate::retained;
use crate::sizes::Sizes;
use crate::threads::{Body, Team, ThreadTime, Workers};
use crate::timed_phases::{self, Lapse, Load};
use crate::watched;
use core::cell::Cell;
use core::ffi::CStr;
use core::fmt::{self, Display, Formatter};
use core::ops::AddAssign;
use heapmark_wire::{Ledger, Page, Phase, Watched, pairs};

/// How often a kernel called each function, and a sum over the requests.
#[derive(Clone, Copy, Default)]
pub struct KernelWork {
    /// Calls to malloc.
    pub malloc: u64,
    /// Calls to free with a block.
    pub free: u64,
    /// Calls to calloc.
    pub calloc: u64,
    /// Calls to realloc.
    pub realloc: u64,
    /// Calls to posix_memalign.
    pub posix_memalign: u64,
    /// A sum that shows that the kernel touched each item once, usually of requested bytes.
    pub checksum: u64,
}

impl KernelWork {
    /// The work of allocating this many blocks with malloc and freeing all of them.
    pub fn pairs(blocks: u64, checksum: u64) -> KernelWork {
        KernelWork {
            malloc: blocks,
            free: blocks,
            checksum,
            ..KernelWork::default()
        }
    }
}

impl AddAssign for KernelWork {
    fn add_assign(&mut self, more: KernelWork) {
        self.malloc += more.malloc;
        self.free += more.free;
        self.calloc += more.calloc;
        self.realloc += more.realloc;
        self.posix_memalign += more.posix_memalign;
        self.checksum += more.checksum;
    }
}

impl Display for KernelWork {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let KernelWork {
            malloc,
            free,
            calloc,
            realloc,
            posix_memalign,
            checksum,
        } = self;
        write!(
            f,
            "{malloc} {free} {calloc} {realloc} {posix_memalign} {checksum}"
        )
    }
}

/// One repetition of the workload in this process.
#[derive(Clone, Copy)]
pub struct Round {
    /// Whether the round is a warm-up, which is recorded but never part of a result.
    pub cold: bool,
}

/// The kernel's side of a job.
pub struct Bench<'a> {
    page: &'a Page,
    job: Job<'a>,
    /// The functions under test.
    pub api: Api,
    /// Number of workers: separate threads, or the main thread alone.
    pub threads: usize,
    workers: Workers,
    /// Seed for everything that no document prescribes.
    pub seed: u64,
    /// How memory is purged.
    pub purge: PurgeCall,
    times: HarnessTable<ThreadTime>,
    /// CPUs that this process may use, counted before a kernel pins any thread.
    cpus: usize,
    baseline_bytes: Option<u64>,
    /// The peak of the resident set, if the kernel takes memory of its own after its work.
    peak_bytes: Option<u64>,
    /// Sums over all rounds, used in a check: its times mean nothing, and there may be more rounds
    /// than the report can hold.
    together: Option<Cell<[u64; FIGURES]>>,
}

/// Number of figures per round.
const FIGURES: usize = 6;

impl<'a> Bench<'a> {
    /// A bench for a job.
    pub fn new(page: &'a Page, job: Job<'a>, api: Api) -> Bench<'a> {
        let workers = workers(&job);
        let threads = workers.count();
        let purge = PurgeCall::from_job(&job);
        let together = job.is("check", "1").then(Cell::default);
        let bench = Bench {
            page,
            job,
            api,
            threads,
            workers,
            seed: job.number("seed"),
            purge,
            times: HarnessTable::zeroed(threads),
            cpus: Cpus::usable().count(),
            baseline_bytes: None,
            peak_bytes: None,
            together,
        };
        report::say("purge", purge.word);
        bench
    }

    /// A numeric parameter of the workload.
    pub fn number(&self, name: &str) -> u64 {
        fail_without(self.parameter(name).parse().ok(), name)
    }

    /// [`Bench::number`] for sizes and counts that index memory.
    pub fn count(&self, name: &str) -> usize {
        self.number(name) as usize
    }

    /// A yes-or-no parameter.
    pub fn flag(&self, name: &str) -> bool {
        fail_without(self.parameter(name).parse().ok(), name)
    }

    /// A parameter as it was written.
    pub fn parameter(&self, name: &str) -> &'a str {
        let found =
            pairs(self.job_text()).find(|(key, _)| key.strip_prefix("param.") == Some(name));
        fail_without(found.map(|(_, value)| value), name)
    }

    /// A parameter that is a path, as a C string in `room`; `None` if it does not fit.
    pub fn path<'r>(&self, name: &str, room: &'r mut [u8]) -> Option<&'r CStr> {
        c_str(self.parameter(name), room)
    }

    /// The sizes of the parameter `classes`.
    pub fn sizes(&self) -> Sizes {
        Sizes::parse(self.parameter("classes"))
    }

    fn job_text(&self) -> &'a str {
        self.job.text()
    }

    /// Refuses, before the start, a workload that takes more than half of the free memory: an
    /// allocator may hold more than is estimated.
    pub fn needs(&self, bytes: u64) {
        if let Some(available) = memory::available_bytes()
            && bytes > available / 2
        {
            fail!(
                "unsupported",
                "needs about {} MiB, more than half of the {} MiB that are available",
                bytes >> 20,
                available >> 20
            );
        }
    }

    /// Records the baseline just before the first operation: what is resident now does not belong to the workload.
    pub fn begin(&mut self) {
        self.begin_with(self.threads);
    }

    /// Like [`Bench::begin`], if some working threads start later.
    pub fn begin_with(&mut self, threads_at_start: usize) {
        if self.baseline_bytes.is_none() {
            aged::prepare(threads_at_start);
            watched::pause();
            // Memory that was used and released before does not belong to the workload.
            memory::forget_peak();
            let now = Resident::now();
            self.baseline_bytes = Some(now.rss);
            retained::begin(now);
        }
    }

    /// Bytes that were resident just before the first operation and are not the allocator's.
    pub fn outside_bytes(&self) -> u64 {
        let baseline = self.baseline_bytes.unwrap_or(0);
        baseline.saturating_sub(held::before_bytes())
    }

    /// The number of cold and measured rounds.
    pub fn rounds_in_all(&self) -> u64 {
        self.job.number("cold") + self.job.number("iterations")
    }

    /// The rounds of this process, cold rounds first.
    pub fn rounds(&self) -> impl Iterator<Item = Round> + use<'a> {
        let (page, cold) = (self.page, self.job.number("cold"));
        (0..self.rounds_in_all()).map(move |index| {
            let round = Round { cold: index < cold };
            page.enter(if round.cold { Phase::Cold } else { Phase::Run });
            counted::round(round.cold);
            round
        })
    }

    /// Whether the main thread does the work, and no other thread may be created.
    pub fn is_on_main(&self) -> bool {
        matches!(self.workers, Workers::Main)
    }

    /// Runs the workers of one round to completion; returns the moment at which the clock started.
    pub fn play<C: Sync>(&mut self, round: Round, context: &C, body: Body<C>) -> Moment {
        self.play_beside(round, context, body, |_| ())
    }

    /// Like [`Bench::play`]; once the clock has started, the main thread runs `own`.
    pub fn play_beside<C: Sync>(
        &mut self,
        round: Round,
        context: &C,
        body: Body<C>,
        own: impl FnOnce(&Bench),
    ) -> Moment {
        let team = self.gather(context, body);
        let began = team.release();
        own(self);
        self.join(round, team, &began);
        began
    }

    /// Gathers the workers of one round; each waits to be released.
    pub fn gather<'c, C: Sync>(&self, context: &'c C, body: Body<C>) -> Team<'c, C> {
        Team::gather(self.workers, context, body)
    }

    /// Waits for the workers and keeps their times.
    pub fn join<C: Sync>(&mut self, round: Round, team: Team<'_, C>, began: &Moment) {
        team.join(began, |index, time| self.thread_time(round, index, time));
    }

    /// Runs one round of a load with one timed lap.
    pub fn lap<L: Load>(&mut self, round: Round, load: &L) -> Span {
        let mut span = Span::default();
        self.laps(round, 1, load, |_, lapse| span = lapse.span);
        span
    }

    /// Runs one round of a load whose workers live through `laps` timed laps.
    pub fn laps<L: Load>(
        &mut self,
        round: Round,
        laps: usize,
        load: &L,
        mut note: impl FnMut(usize, Lapse),
    ) {
        timed_phases::run(self.workers, laps, load, |lap, lapse, times| {
            times
                .iter()
                .enumerate()
                .for_each(|(index, time)| self.thread_time(round, index, *time));
            note(lap, lapse);
        });
    }

    /// [`Bench::lap`] of a load that takes memory of its own after the clock: the peak resident set of the first such
    /// lap counts as the process's.
    pub fn lap_with_peak<L: Load>(&mut self, round: Round, load: &L) -> Span {
        let (mut span, mut peak_bytes) = (Span::default(), None);
        self.laps(round, 1, load, |_, lapse| {
            span = lapse.span;
            peak_bytes = Some(memory::peak_resident_bytes());
        });
        self.peak_bytes = self.peak_bytes.or(peak_bytes);
        span
    }

    /// Adds to the times of one worker.
    pub fn thread_time(&mut self, round: Round, index: usize, time: ThreadTime) {
        if !round.cold {
            self.times[index].wall_ns += time.wall_ns;
            self.times[index].cpu_ns += time.cpu_ns;
        }
    }

    /// Returns the ledgers, one for each worker, in which the workers publish the requested bytes of their live blocks.
    pub fn ledgers(&self) -> &'a [Ledger] {
        watched::ledgers(self.page, self.threads)
    }

    /// The state of this process that the host reads while it runs.
    pub fn watched(&self) -> &'a Watched {
        self.page.watched()
    }

    /// Purges, if the workload counts purging, and returns the nanoseconds that this took.
    pub fn purge(&self, counted: bool) -> u64 {
        if !counted {
            return 0;
        }
        let start = crate::clock::now_ns();
        self.purge.process();
        crate::clock::now_ns() - start
    }

    /// Records the end of a round.
    pub fn record(&self, round: Round, span: Span, ops: u64) {
        self.record_purged(round, span, 0, ops);
    }

    /// [`Bench::record`] with the part of the time that purging took.
    pub fn record_purged(&self, round: Round, span: Span, purge_ns: u64, ops: u64) {
        let figures = [
            span.wall_ns,
            purge_ns,
            span.user_ns,
            span.sys_ns,
            span.minor_faults,
            ops,
        ];
        match &self.together {
            None => self.tell_round(round.cold, figures),
            Some(together) => {
                let sum = together.get();
                together.set(core::array::from_fn(|index| sum[index] + figures[index]));
            }
        }
    }

    fn tell_round(&self, cold: bool, figures: [u64; FIGURES]) {
        let [wall_ns, purge_ns, user_ns, sys_ns, minor_faults, ops] = figures;
        report::say(
            if cold { "cold" } else { "iteration" },
            format_args!("{wall_ns} {purge_ns} {user_ns} {sys_ns} {minor_faults} {ops}"),
        );
    }

    /// Reports the work done over all rounds, and the work that the parameters prescribe.
    pub fn account(&self, done: &KernelWork, expected: &KernelWork) {
        for (name, work) in [("done", done), ("expected", expected)] {
            report::say(name, work);
        }
    }

    /// Reports the highest sum of the requested sizes of live blocks.
    pub fn requested_peak(&self, bytes: u64) {
        report::say("requested_peak_bytes", bytes);
    }

    /// Reports a further figure of this workload; the name contains the unit.
    pub fn figure(&self, name: impl Display, value: f64) {
        report::say("figure", format_args!("{name} {value}"));
    }

    /// Like [`Bench::figure`], but for a word, such as a property of this machine.
    pub fn note(&self, name: &str, word: &str) {
        report::say("note", format_args!("{name} {word}"));
    }

    /// Reports memory and thread times after the last round.
    pub(crate) fn finish(&self) {
        check::sizes::report();
        aged::sweep();
        watched::pause();
        self.together
            .iter()
            .for_each(|together| self.tell_round(false, together.get()));
        let peak_bytes = self.peak_bytes.unwrap_or_else(memory::peak_resident_bytes);
        report::say("peak_rss_bytes", peak_bytes);
        report::say("cpus", self.cpus);
        report::say("read_within_ns", measured::read_within_ns());
        report::say("baseline_rss_bytes", self.baseline_bytes.unwrap_or(0));
        report::say("held_before_bytes", held::before_bytes());
        retained::report();
        counted::report();
        for time in self.times.iter() {
            report::say("thread", format_args!("{} {}", time.wall_ns, time.cpu_ns));
        }
    }
}

/// Returns which threads do the work: the main thread if the parameter `thread` selects it, which not all kernels have;
/// otherwise separate workers.
fn workers(job: &Job<'_>) -> Workers {
    let threads = job.number("threads").max(1) as usize;
    if !job.is("param.thread", "main") {
        return Workers::Threads(threads);
    }
    if threads > 1 {
        fail!(
            "error",
            "`param.thread=main` in a job of {threads} threads: it is for one"
        );
    }
    Workers::Main
}

fn fail_without<T>(value: Option<T>, name: &str) -> T {
    value.unwrap_or_else(|| fail!("error", "the job lacks a usable `param.{name}`"))
}
