//! `replay`: repeats a recorded program's calls, with the same number of threads, in an order that
//! the recorded order allows. The input is a compiled trace, made by the host;
//! [`heapmark_wire::compiled`] describes the layout of the trace.
//!
//! The harness keeps nothing in anonymous memory, and allocates nothing once the clock runs: ops
//! are read from the mapped compiled trace, blocks are kept in shared tables.

mod calls;
mod order;
mod player;
mod points;
mod sheet;
mod stage;
mod touch;
mod tuning;
mod walk;

use super::*;
use crate::api;
use crate::objects::Objects;
use heapmark_wire::compiled;
use player::Player;
use points::Points;
use sheet::Sheet;
use stage::{ReplayThread, Stage};

/// The kernel that replays a trace. The trace determines which functions are called besides malloc
/// and free, and the job names them.
pub const KERNEL: Kernel = Kernel::timed(
    "replay",
    &[
        "compiled",
        "mode",
        "touch",
        "reads",
        "skew",
        "pace",
        "packed_bytes",
        "thread",
    ],
    run,
);

fn run(bench: &mut Bench) {
    let mut room = [0; 4096];
    let Some(path) = bench.path("compiled", &mut room) else {
        fail!(
            "error",
            "the path of the compiled trace is longer than 4096 bytes"
        );
    };
    let sheet = Sheet::open(path);
    let head = sheet.head;
    let threads = head.threads as usize;
    if head.thp_disabled == 1 {
        // SAFETY: takes only numbers. If the kernel lacks this option, huge pages stay as they are.
        unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
    }
    bench.needs(head.requested_peak_bytes + head.slots * size_of::<*mut u8>() as u64);
    null::overlap(head.largest_bytes as usize, head.threads_at_a_time as usize);
    mind_operators();
    let slots = HarnessTable::<Cell<*mut u8>>::shared(head.slots as usize);
    let seats = HarnessTable::<Padded<ReplayThread>>::shared(threads);
    let own_steps = HarnessTable::shared(if threads > heapmark_wire::STEPS {
        threads
    } else {
        0
    });
    let steps = bench.watched().open_steps(threads).unwrap_or(&own_steps);
    let points = Points::of(bench, &sheet);
    let mut stage = Stage::new(
        bench,
        &sheet,
        &slots,
        &seats,
        steps,
        &points,
        Player::stream,
    );
    stage.hire();

    let [mut done, mut expected] = [KernelWork::default(); 2];
    let mut last_frees = 0;
    bench.begin_with(stage.threads_at_start());
    points.begin();
    for round in bench.rounds() {
        stage.set();
        let began = stage.play_all();
        let span = began.elapsed();
        stage.curtain(
            |index, time| bench.thread_time(round, index % bench.threads, time),
            &began,
        );
        bench.record(round, span, head.events);
        points.at_end(bench);
        for seat in seats.iter() {
            done += seat.tally.get();
        }
        last_frees += free_rest(bench, &sheet, &slots);
        expected += KernelWork {
            malloc: head.malloc,
            free: head.free,
            calloc: head.calloc,
            realloc: head.realloc,
            posix_memalign: head.aligned,
            checksum: head.bytes,
        };
    }
    stage.dismiss();
    done.free += last_frees;
    bench.account(&done, &expected);
    bench.requested_peak(head.requested_peak_bytes);
    points.tell(bench, head.requested_peak_bytes);
}

/// Installs a handler that ends the process if `operator new` finds no memory. Otherwise it would
/// throw, and a throw could not be caught here.
fn mind_operators() {
    extern "C" fn no_memory() {
        fail!("oom", "operator new has found no memory");
    }
    let set = Objects::loaded().find(c"_ZSt15set_new_handlerPFvvE");
    if !set.is_null() {
        // SAFETY: `std::set_new_handler` of the C++ library that the allocator has brought.
        unsafe { api::call(set, &[no_memory as *const () as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Frees, after the clock has stopped, all blocks that the recorded program never freed, so that
/// the next round begins without blocks.
fn free_rest(bench: &Bench, sheet: &Sheet, slots: &[Cell<*mut u8>]) -> u64 {
    let mut freed = 0;
    let (at, count) = sheet.head.left;
    for word in sheet
        .words
        .get(at as usize..(at + count) as usize)
        .unwrap_or_default()
    {
        let block = slots
            .get(compiled::slot(*word))
            .map_or(ptr::null_mut(), |slot| slot.replace(ptr::null_mut()));
        if block.is_null() {
            fail!("error", "the compiled trace ends a block that is not there");
        }
        // SAFETY: live blocks of the C++ operator that the compiled trace names.
        unsafe {
            match compiled::alignment_left(*word) {
                None => (bench.api.delete)(block),
                Some(alignment) => bench.api.delete_aligned(block, alignment, None),
            }
        }
        freed += 1;
    }
    for slot in slots {
        let block = slot.replace(ptr::null_mut());
        if !block.is_null() {
            // SAFETY: a live block; no thread plays any longer.
            unsafe { (bench.api.free)(block) };
            freed += 1;
        }
    }
    freed
}
