//! `larson` (Larson and Krishnan 1998; MM): a server-like load. Each thread slot owns a pool of
//! live blocks. A thread replaces some of them at random, then starts its successor on the same
//! pool and ends. So most blocks are freed by a later thread than the one that allocated them, and
//! thread creation is part of the load.

use super::*;
use crate::bench::Round;
use crate::clock;
use crate::rng::{Larson, Modulo};
use crate::threads::{Gate, ThreadTime, detach, make_ready};
use core::ffi::c_void;

pub const KERNEL: Kernel = Kernel::timed(
    "larson",
    &[
        "seconds",
        "incarnations",
        "min",
        "max",
        "chunks",
        "rounds",
        "start",
        "body",
        "purge",
    ],
    run,
);

/// State shared by all incarnations of a round.
struct LarsonContext {
    api: Api,
    gate: Gate,
    stop: AtomicBool,
    finished: Semaphore,
    /// Length of a round in seconds. If the length is 0, the number of incarnations ends the round.
    seconds: f64,
    timed: bool,
    incarnations: u64,
    /// Whether purging is part of the measured time.
    purges: bool,
    /// Whether incarnations only start their successor, which measures the floor of thread
    /// turnover.
    idle: bool,
    /// Whether blocks are large enough for the byte that is written.
    touch: bool,
    min: u32,
    range: Modulo,
    chunks: Modulo,
    pairs: u64,
}

#[derive(Clone, Copy)]
struct LarsonBlock {
    block: *mut u8,
    size: u32,
}

/// A thread slot, passed from each incarnation to its successor.
struct LarsonSlot {
    shared: *const LarsonContext,
    random: Larson,
    entries: *mut LarsonBlock,
    left: u64,
    tally: LarsonCounts,
}

/// The work of a slot in one round.
#[derive(Clone, Copy, Default)]
struct LarsonCounts {
    pairs: u64,
    incarnations: u64,
    live_bytes: u64,
    peak_bytes: u64,
    cpu_ns: u64,
    ended_ns: u64,
}

fn run(bench: &mut Bench) {
    let (chunks, rounds) = (bench.count("chunks").max(1), bench.number("rounds"));
    let (min, max) = (bench.number("min") as u32, bench.number("max") as u32);
    let seconds: f64 = bench.parameter("seconds").parse().unwrap_or(0.0);
    let incarnations = bench.number("incarnations").max(1);
    let (idle, purges) = (bench.parameter("body") == "nothing", bench.flag("purge"));
    let range = Modulo::new(max.saturating_sub(min));
    bench.needs((bench.threads * chunks) as u64 * (u64::from(min + max) / 2 + 32));

    let mut random = Larson::new(bench.number("start"));
    let mut entries = HarnessTable::<LarsonBlock>::zeroed(bench.threads * chunks);
    let mut slots = HarnessTable::<Padded<LarsonSlot>>::reserved(bench.threads);
    let mut done = KernelWork::default();
    bench.begin();
    warm_up(&bench.api, &mut random, &mut entries, min, range, &mut done);
    for (index, slot) in slots.iter_mut().enumerate() {
        let start = u64::from(random.next());
        let pool = &mut entries[index * chunks..(index + 1) * chunks];
        let live_bytes = pool.iter().map(|entry| u64::from(entry.size)).sum();
        let tally = LarsonCounts {
            live_bytes,
            peak_bytes: live_bytes,
            ..LarsonCounts::default()
        };
        let fresh = LarsonSlot {
            shared: ptr::null(),
            random: Larson::new(start),
            entries: pool.as_mut_ptr(),
            left: 0,
            tally,
        };
        // SAFETY: reserved memory is written before it is read; nothing needs to be dropped.
        unsafe { ptr::write(slot, Padded(fresh)) };
    }

    let mut expected = done;
    let mut incarnations_measured = 0;
    for round in bench.rounds() {
        let shared = LarsonContext {
            api: bench.api,
            gate: Gate::default(),
            stop: AtomicBool::new(false),
            finished: Semaphore::default(),
            seconds,
            timed: seconds > 0.0,
            incarnations,
            purges,
            idle,
            touch: min >= 2,
            min,
            range,
            chunks: Modulo::new(chunks as u32),
            pairs: rounds * chunks as u64,
        };
        let (pairs, lives) = one_round(bench, round, &shared, &mut slots);
        done.malloc += pairs;
        done.free += pairs;
        let by_parameters =
            bench.threads as u64 * incarnations * if idle { 0 } else { shared.pairs };
        expected.malloc += if shared.timed { pairs } else { by_parameters };
        if !round.cold {
            incarnations_measured += lives;
        }
    }

    // The slots' own running sums must equal what the table holds at the end.
    done.checksum = entries.iter().map(|entry| u64::from(entry.size)).sum();
    expected.checksum = slots.iter().map(|slot| slot.tally.live_bytes).sum();
    for entry in entries.iter() {
        // SAFETY: every entry holds a live block and all threads have ended.
        unsafe { (bench.api.free)(entry.block) };
        done.free += 1;
    }
    expected.free = expected.malloc;
    bench.account(&done, &expected);
    // Slots peak at different moments: the sum of their peaks is an upper bound, a few per cent too
    // high.
    bench.requested_peak(slots.iter().map(|slot| slot.tally.peak_bytes).sum());
    bench.figure("incarnations", incarnations_measured as f64);
}

/// Fills the table as a busy server would have left it.
fn warm_up(
    api: &Api,
    random: &mut Larson,
    entries: &mut [LarsonBlock],
    min: u32,
    range: Modulo,
    done: &mut KernelWork,
) {
    for entry in entries.iter_mut() {
        *entry = allocate(api, min + range.of(random.next()));
    }
    for k in (1..=entries.len()).rev() {
        entries.swap(k - 1, random.next() as usize % k);
    }
    for _ in 0..4 * entries.len() {
        let victim = random.next() as usize % entries.len();
        // SAFETY: a live block.
        unsafe { (api.free)(entries[victim].block) };
        entries[victim] = allocate(api, min + range.of(random.next()));
    }
    done.malloc += 5 * entries.len() as u64;
    done.free += 4 * entries.len() as u64;
}

/// Runs one round and returns the pairs and incarnations of all slots.
fn one_round(
    bench: &mut Bench,
    round: Round,
    shared: &LarsonContext,
    slots: &mut HarnessTable<Padded<LarsonSlot>>,
) -> (u64, u64) {
    for Padded(slot) in slots.iter_mut() {
        slot.shared = shared;
        slot.left = shared.incarnations;
        slot.tally = LarsonCounts {
            live_bytes: slot.tally.live_bytes,
            peak_bytes: slot.tally.peak_bytes,
            ..LarsonCounts::default()
        };
        // SAFETY: the slot lives until its last incarnation has posted the semaphore.
        unsafe { detach(first_incarnation, ptr::from_mut(slot).cast()) };
    }
    shared.gate.all_here(bench.threads);
    let began = shared.gate.open();
    if shared.timed {
        sys::sleep_until(now_ns() + (shared.seconds * 1e9) as u64);
        shared.stop.store(true, Relaxed);
    }
    for _ in 0..bench.threads {
        shared.finished.wait();
    }
    let purge_ns = bench.purge(shared.purges);
    let span = began.elapsed();
    let (mut pairs, mut lives) = (0, 0);
    for (index, slot) in slots.iter().enumerate() {
        let time = ThreadTime {
            wall_ns: slot.tally.ended_ns.saturating_sub(began.wall_ns()),
            cpu_ns: slot.tally.cpu_ns,
        };
        bench.thread_time(round, index, time);
        pairs += slot.tally.pairs;
        lives += slot.tally.incarnations;
    }
    bench.record_purged(
        round,
        span,
        purge_ns,
        if shared.idle { lives } else { 2 * pairs },
    );
    (pairs, lives)
}

extern "C" fn first_incarnation(slot: *mut c_void) -> *mut c_void {
    // SAFETY: the slot was handed over to this thread, its round lives until the slot is finished.
    let (larson_slot, shared) = unsafe {
        (
            &mut *slot.cast::<LarsonSlot>(),
            &*(*slot.cast::<LarsonSlot>()).shared,
        )
    };
    make_ready();
    shared.gate.wait();
    // CPU time spent waiting for the start is not part of the round; `incarnation` adds all CPU
    // time used.
    larson_slot.tally.cpu_ns = larson_slot
        .tally
        .cpu_ns
        .wrapping_sub(clock::thread_cpu_ns());
    incarnation(slot)
}

extern "C" fn incarnation(argument: *mut c_void) -> *mut c_void {
    // SAFETY: the predecessor handed the slot to this thread and no longer touches it.
    let slot = unsafe { &mut *argument.cast::<LarsonSlot>() };
    // SAFETY: the round lives until the last slot is finished.
    let shared = unsafe { &*slot.shared };
    if !shared.idle {
        replace_blocks(shared, slot);
    }
    slot.tally.incarnations += 1;
    slot.left -= 1;
    slot.tally.cpu_ns = slot.tally.cpu_ns.wrapping_add(clock::thread_cpu_ns());
    let goes_on = if shared.timed {
        !shared.stop.load(Relaxed)
    } else {
        slot.left > 0
    };
    if shared.timed {
        slot.left += 1;
    }
    if goes_on {
        // SAFETY: the successor takes the slot over.
        unsafe { detach(incarnation, argument) };
    } else {
        slot.tally.ended_ns = clock::now_ns();
        // Posting is the slot's last access to the state of the round.
        shared.finished.post();
    }
    ptr::null_mut()
}

/// Does the work of one incarnation: again and again, frees a random block of the pool and
/// allocates another in its place.
fn replace_blocks(shared: &LarsonContext, slot: &mut LarsonSlot) {
    let LarsonContext {
        min,
        range,
        chunks,
        timed,
        touch,
        ..
    } = *shared;
    let api = shared.api;
    let LarsonSlot {
        random,
        entries,
        tally,
        ..
    } = slot;
    let mut live = tally.live_bytes;
    let (mut peak, mut pairs, mut strange) = (tally.peak_bytes, 0u64, 0u8);
    for _ in 0..shared.pairs {
        // SAFETY: below `chunks`, and the entries are this slot's.
        let entry = unsafe { &mut *entries.add(chunks.of(random.next()) as usize) };
        // SAFETY: a live block.
        unsafe { (api.free)(entry.block) };
        let size = min + range.of(random.next());
        let block = api.allocate(size as usize);
        live = live + u64::from(size) - u64::from(entry.size);
        peak = peak.max(live);
        *entry = LarsonBlock { block, size };
        if touch {
            // SAFETY: the block has at least two bytes. Volatile: the accesses are part of the
            // load.
            unsafe {
                block.write_volatile(0);
                strange |= block.read_volatile();
                block.write_volatile(1);
            }
        }
        pairs += 1;
        if timed && shared.stop.load(Relaxed) {
            break;
        }
    }
    tally.live_bytes = live;
    tally.peak_bytes = peak;
    tally.pairs += pairs;
    if strange != 0 {
        fail!(
            "wrong-result",
            "a byte of a live block changed between write and read"
        );
    }
}

fn allocate(api: &Api, size: u32) -> LarsonBlock {
    LarsonBlock {
        block: api.allocate(size as usize),
        size,
    }
}
