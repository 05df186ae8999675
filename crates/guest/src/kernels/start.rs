//! `start`: processes that allocate blocks, touch them, free them and end. Measured are the
//! allocator's cost to a program that hardly uses it, the allocator's requests to the kernel
//! meanwhile, and the smallest limits under which the program starts at all.

use super::*;
use crate::stack::Stack;
use crate::started::{self, StartOrder};
use crate::text::{TextIn, c_str_in, number};
use crate::threads;
use crate::traced;
use core::convert::Infallible;
use core::ffi::{CStr, c_int, c_void};
use core::fmt::Write;
use heapmark_wire::limit_search::LimitSearch;

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::OwnAlone,
    ..Kernel::of_memory(
        "start",
        &["starts", "blocks", "own-threads", "classes"],
        run,
    )
};

/// The word by which `main` recognizes a started process.
pub const WORD: &CStr = c"start";
/// The last argument: whether a tracer waits for the end of the work.
const TRACED: &CStr = c"traced";
const UNTRACED: &CStr = c"untraced";

/// The smallest block: each block holds the address of the block before it, so that the program
/// needs no table.
const SMALLEST: usize = size_of::<*mut u8>();
/// Bytes of a size as text, with its comma.
const SIZE_BYTES: usize = 11;
/// Maximum length of an argument: the kernel accepts no longer one.
const MOST_TEXT_BYTES: usize = 128 << 10;
const MOST_THREADS: usize = 256;

/// The range in which the smallest limits are searched, which extends beyond the needs of any
/// process.
const LIMITS: LimitSearch = LimitSearch {
    anchor_bytes: 1 << 20,
    first: 0,
    most_further: 28,
};

fn run(bench: &mut Bench) {
    let starts = bench.count("starts");
    let (blocks, own_threads) = (bench.count("blocks"), bench.count("own-threads"));
    if own_threads > MOST_THREADS || blocks * SIZE_BYTES > MOST_TEXT_BYTES {
        fail!(
            "error",
            "start: at most {MOST_THREADS} threads and {} blocks",
            MOST_TEXT_BYTES / SIZE_BYTES
        );
    }
    let classes = bench.sizes();
    let mut random = SplitMix::new(bench.seed, 0);
    let mut room = HarnessTable::<u8>::zeroed(blocks * SIZE_BYTES + 1);
    let mut sizes = TextIn::new(&mut room);
    let mut bytes = 0;
    for _ in 0..blocks {
        let size = (classes.draw(&mut random) as usize).max(SMALLEST);
        bytes += size as u64;
        _ = write!(sizes, "{size},");
    }
    let mut room = [0; 8];
    let threads = c_str_in(&mut room, format_args!("{own_threads}")).unwrap_or_default();
    let arguments = |is_traced| {
        [
            WORD,
            started::malloc_owner(),
            threads,
            sizes.c_str().unwrap_or_default(),
            if is_traced { TRACED } else { UNTRACED },
        ]
    };
    let arguments_alone = arguments(false);
    let order = StartOrder {
        arguments: &arguments_alone,
        ..StartOrder::default()
    };
    let mut all = 0;
    bench.begin();
    for round in bench.rounds() {
        let began = Moment::start();
        let mut of_processes = Span::default();
        for _ in 0..starts {
            let ended = started::run(&order);
            started::must_have_worked(ended.status, "a started process");
            of_processes += Span {
                wall_ns: 0,
                user_ns: ended.user_ns,
                sys_ns: ended.sys_ns,
                minor_faults: ended.minor_faults,
            };
        }
        // The resources that this process itself uses meanwhile are not part of a start.
        let span = Span {
            wall_ns: began.elapsed().wall_ns,
            ..of_processes
        };
        bench.record(round, span, starts as u64);
        if retained::is_wanted() && !round.cold {
            let per_start = |sum: u64| sum as f64 / starts as f64;
            bench.figure("start_ns", per_start(span.wall_ns));
            bench.figure("start_cpu_ns", per_start(span.user_ns + span.sys_ns));
            bench.figure("start_faults", per_start(span.minor_faults));
        }
        all += starts as u64;
    }
    // Each process that ended well has done its work.
    let done = all * own_threads.max(1) as u64;
    let work = KernelWork::pairs(done * blocks as u64, done * bytes);
    bench.account(&work, &work);
    bench.requested_peak(own_threads.max(1) as u64 * bytes);
    if retained::is_wanted() {
        tell_trace(bench, &arguments(true));
        tell_limit(
            bench,
            &order,
            libc::RLIMIT_AS,
            "smallest_address_space_bytes",
        );
        tell_limit(bench, &order, libc::RLIMIT_DATA, "smallest_data_bytes");
    }
}

/// Reports what one more process asks of the kernel, and what memory the process holds when its
/// work is done.
fn tell_trace(bench: &Bench, arguments: &[&CStr]) {
    let order = StartOrder {
        arguments,
        ..StartOrder::default()
    };
    let Some(trace) = traced::follow(&order) else {
        let why = "the kernel does not let processes be traced here";
        return bench.note("start_system_calls", why);
    };
    started::must_have_worked(trace.ended.status, "a traced process");
    let mut room = [0; 4096];
    let mut calls = TextIn::new(&mut room);
    _ = trace.write_calls(&mut calls);
    bench.figure("start_system_calls", trace.call_count() as f64);
    bench.note("start_system_calls", calls.text());
    let mut room = [0; 4096];
    let mut files = TextIn::new(&mut room);
    _ = trace.write_files(&mut files);
    bench.figure("start_kernel_files", trace.file_count as f64);
    if trace.file_count > 0 {
        bench.note("start_kernel_files", files.text());
    }
    if let Some(memory) = trace.memory {
        bench.figure("start_anonymous_bytes", memory.anonymous_bytes as f64);
        bench.figure("start_mapped_bytes", memory.mapped_bytes as f64);
        bench.figure("start_commit_bytes", memory.accountable_bytes as f64);
        bench.figure("start_mappings", memory.mappings as f64);
    }
}

/// Reports the smallest limit of a resource under which most starts succeed.
fn tell_limit(bench: &Bench, order: &StartOrder, resource: u32, key: &str) {
    let Ok(found) = LIMITS.smallest(|bytes, _| {
        let order = StartOrder {
            limit: Some((resource, bytes)),
            ..*order
        };
        Ok::<_, Infallible>(started::run(&order).status == 0)
    });
    match found {
        Some(bytes) => bench.figure(key, bytes as f64),
        None => bench.note(key, "it starts under no limit"),
    }
}

/// Runs the started process; `arguments` are those after [`WORD`].
pub fn process(mut arguments: impl Iterator<Item = &'static CStr>) -> c_int {
    let mut next = || arguments.next().unwrap_or_default();
    let (owner, threads, sizes, traced) = (next(), next(), next(), next());
    let threads = number(threads).unwrap_or(0);
    if threads == 0 {
        work(sizes.as_ptr().cast_mut().cast());
    }
    let mut ids = [0; MOST_THREADS];
    let ids = &mut ids[..threads];
    for (index, id) in ids.iter_mut().enumerate() {
        // SAFETY: the sizes are an argument of this program, which stays.
        *id = unsafe {
            let sizes = sizes.as_ptr().cast_mut().cast();
            threads::create(work, sizes, &Stack::none(), false, index)
        };
    }
    for id in ids {
        // SAFETY: created above, and joined once.
        unsafe { libc::pthread_join(*id, ptr::null_mut()) };
    }
    started::prove(owner);
    if traced == TRACED {
        traced::work_is_done();
    }
    0
}

/// Does the work of each thread of a started process.
extern "C" fn work(sizes: *mut c_void) -> *mut c_void {
    // SAFETY: an argument of this program.
    let sizes = unsafe { CStr::from_ptr(sizes.cast()) };
    let sizes = sizes.to_str().unwrap_or_default().split_terminator(',');
    let mut last: *mut u8 = ptr::null_mut();
    for size in sizes {
        let size = size.parse().unwrap_or(SMALLEST);
        // SAFETY: the block has room for an address, and is freed below.
        unsafe {
            let block: *mut u8 = libc::malloc(size).cast();
            if block.is_null() {
                started::end(started::NO_MEMORY);
            }
            touch::pages(block, size);
            block.add(size - 1).write_volatile(0);
            block.cast::<*mut u8>().write_unaligned(last);
            last = block;
        }
    }
    while !last.is_null() {
        // SAFETY: each block holds the address of the one before it.
        unsafe {
            let before = last.cast::<*mut u8>().read_unaligned();
            libc::free(last.cast());
            last = before;
        }
    }
    last.cast()
}
