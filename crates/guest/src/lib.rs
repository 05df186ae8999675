//! The code that runs *under* an allocator: kernels and the little they need. It uses only libc and
//! allocates nothing: every table is `mmap`ed, every report line is written directly to the shared
//! page.
//!
//! A guest proves which library serves the malloc family, runs one kernel, checks that its blocks
//! are sound, and exits. It depends neither on the name of its allocator nor on the program that
//! reads its numbers.

#![no_std]

#[macro_use]
mod report;

mod aged;
mod answered;
pub mod api;
pub mod bench;
mod check;
mod clock;
pub mod corners;
pub mod counted;
pub mod cpus;
mod elf;
mod exercise;
mod heap_points;
mod held;
mod job;
pub mod kernels;
mod latency;
pub mod launch;
mod libcs;
mod lifetimes;
mod litter;
mod measured;
mod memory;
mod null;
mod objects;
mod pairs;
mod placement;
mod prove;
mod published;
mod purge;
mod retained;
pub mod rng;
mod scheduled;
mod served;
mod shape_blocks;
pub mod sizes;
mod stack;
mod started;
mod sys;
mod text;
mod threads;
mod timed_phases;
mod traced;
mod version;
mod watched;
mod wrapped;

use api::Api;
use bench::Bench;
use core::ffi::{CStr, c_char, c_int};
use heapmark_wire::Phase;
use job::Job;
use kernels::MemoryPoints;

/// Does what a kernel needs as the process ends; must be called before the destructors of its
/// libraries.
pub fn before_destructors() {
    kernels::late_free::before_destructors();
}

/// Runs the guest. The only argument is the file of the shared page, which contains the job; or a
/// word selects another program, and its arguments follow.
///
/// # Safety
/// `argv` must be what the C runtime passed to `main`.
pub unsafe fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    // SAFETY: the C runtime passed `argc` valid strings.
    let argument = move |index: c_int| unsafe { CStr::from_ptr(*argv.add(index as usize)) };
    let word = if argc > 2 { argument(1) } else { c"" };
    if word == c"launch" {
        // SAFETY: passed on unchanged.
        return unsafe { launch::main(argc, argv) };
    }
    if word == c"pairs" {
        // SAFETY: passed on unchanged.
        return unsafe { pairs::main(argv) };
    }
    if word == cpus::WORD {
        return cpus::ask();
    }
    if word == kernels::start::WORD {
        return kernels::start::process((2..argc).map(argument));
    }
    if word == kernels::late_free::WORD {
        return kernels::late_free::process((2..argc).map(argument));
    }
    if argc != 2 {
        return report::usage();
    }
    let Some(page) = memory::map_page(argument(1)) else {
        return report::no_page();
    };
    report::to(page);
    let job = Job::new(page.job());
    watched::start(page, &job);

    page.enter(Phase::Prove);
    api::wake();
    prove::report();
    if job.get("version.symbol").is_some() {
        version::report(&job);
        page.enter(Phase::Done);
        return 0;
    }

    // Under valgrind, most of the memory is valgrind's own.
    if !job.is("counter", "callgrind") {
        held::before_the_workload(page);
    }
    scheduled::start();
    counted::start(&job);
    page.enter(Phase::Setup);
    let allocator = if job.is("allocator", "null") {
        null::serve()
    } else {
        Api::resolve()
    };
    if let Some(corner) = job.get("corner") {
        corners::look(&allocator, corner);
        page.enter(Phase::Done);
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) }
    }
    served::start(&job);
    let Some(kernel) = kernels::find(job.word("kernel")) else {
        fail!("error", "no kernel {}", job.word("kernel"));
    };
    let check = job.is("check", "1");
    let sampled = kernel.memory == MemoryPoints::Sampled;
    let memory = !check && retained::wanted(&job, sampled);
    if check {
        check::sizes::start(&job);
    }
    let api = match job.get("latency") {
        _ if check => check::watch(allocator, None),
        _ if memory && sampled => check::watch(allocator, Some(page.watched().held())),
        Some(_) => latency::watch(allocator, job.number("latency"), job.number("seed")),
        None => allocator,
    };
    aged::order(&job, api);
    let mut bench = Bench::new(page, job, api);
    (kernel.run)(&mut bench);
    page.enter(Phase::After);
    bench.finish();
    scheduled::must_be_as_launched();
    // The checks that follow are not part of any series.
    page.enter(Phase::Verify);
    latency::report(&job);
    served::report(&job, &allocator);
    if job.is("exercise", "1") {
        exercise::run(&allocator);
    }
    page.enter(Phase::Done);
    // Not `exit`: destructors of the allocator under test must not run here.
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) }
}
