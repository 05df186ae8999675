//! Metrics of processes whose memory was sampled: what is resident for what is live.

use super::Better::{Higher, Neither};
use super::Unit::{Bytes, Count, GibSeconds, Ns, Share, Times};
use super::{Metric, Sample, Value, described, figure};
use crate::execute::Measurement;
use crate::observe::memory_profile::{MemoryPoint, MemoryProfile};
use crate::plan::{LITTER, OTHER_SIZES};

/// The least requested memory for which an overhead describes the allocator.
pub const OVERHEAD_FROM_BYTES: f64 = 1_048_576.0;

pub const METRICS: &[Metric] = &[
    described(
        "peak_demand_bytes",
        "live bytes at their peak",
        Bytes,
        "most requested bytes of live blocks in any sample",
        Value::Memory(|it| Some(it.peak_demand.live_bytes as f64)),
    )
    .better(Neither),
    described(
        "seen_peak_share",
        "part of the peak seen",
        Share,
        "most live bytes in any sample / the most that the workload can have live, if that is 1 MiB or more; only of processes that another one samples",
        Value::Sample(|sample| {
            // A process that samples itself misses nothing.
            let memory = sample.memory.filter(|it| it.sampling_share > 0.0)?;
            let most = sample.measurement.requested_peak_bytes;
            (most as f64 >= OVERHEAD_FROM_BYTES)
                .then(|| memory.peak_demand.live_bytes as f64 / most as f64)
        }),
    )
    .better(Higher),
    described(
        "overhead_at_peak_demand",
        "overhead at peak demand",
        Times,
        "resident heap / live bytes when most was live, if that is 1 MiB or more",
        Value::Memory(|it| overhead(&it.peak_demand)),
    )
    .judged_by_range(),
    described(
        "overhead_at_peak_footprint",
        "overhead at peak RSS",
        Times,
        "resident heap / live bytes when most was resident",
        Value::Memory(|it| overhead(&it.peak_footprint)),
    )
    .judged_by_range(),
    described(
        "peak_over_peak",
        "peak over peak",
        Times,
        "the highest resident heap / the most live bytes, independent of when each occurred",
        Value::Memory(|it| {
            overhead(&MemoryPoint {
                heap_bytes: most_heap_bytes(it),
                ..it.peak_demand
            })
        }),
    ),
    described(
        "blow_up",
        "blow-up",
        Times,
        "the highest resident heap / that of one thread that makes the same calls; only of replays in memory mode",
        Value::Row,
    ),
    described(
        "mean_overhead",
        "mean overhead",
        Times,
        "mean resident heap / mean live bytes while the workload ran",
        Value::Memory(mean_overhead),
    )
    .judged_by_range(),
    described(
        "page_occupancy",
        "page occupancy",
        Share,
        "live bytes / bytes of the pages that hold any, when most was live",
        Value::Memory(|it| ratio(it.peak_demand.live_bytes, it.peak_demand.occupied_bytes)),
    )
    .better(Higher),
    described(
        "internal_fragmentation",
        "internal fragmentation",
        Share,
        "(usable - live) / live bytes when most was live; only of replays in memory mode, as the next three",
        Value::Memory(|it| Some(usable(it)? / overhead_base(&it.peak_demand)? - 1.0)),
    ),
    described(
        "external_fragmentation",
        "external fragmentation",
        Share,
        "(resident heap - usable) / live bytes when most was live",
        Value::Memory(|it| {
            Some((it.peak_demand.heap_bytes as f64 - usable(it)?) / overhead_base(&it.peak_demand)?)
        }),
    ),
    described(
        "tenth_page",
        "occupancy of the tenth page",
        Share,
        "a tenth of the pages with live blocks hold at most this share of live bytes",
        Value::Memory(|it| Some(it.at_peak?.tenth_page_bytes as f64 / PAGE_BYTES)),
    )
    .better(Higher),
    described(
        "sparse_pages",
        "sparse pages",
        Share,
        "share of the pages with live blocks that are less than a quarter full",
        Value::Memory(|it| {
            let pages = it.peak_demand.occupied_bytes as f64 / PAGE_BYTES;
            (pages > 0.0).then_some(it.at_peak?.sparse_pages as f64 / pages)
        }),
    ),
    described(
        "huge_share",
        "share of huge pages",
        Share,
        "growth of the memory in huge pages / the highest resident heap; it follows from the machine's rule and --thp",
        Value::Sample(|sample| {
            let course = sample.memory?;
            // Memory in huge pages before the first operation is not due to the workload.
            let before = sample.measurement.footprint.as_ref()?.begin.anon_huge_bytes;
            ratio(
                course.most_anon_huge_bytes.saturating_sub(before),
                most_heap_bytes(course),
            )
        }),
    )
    .better(Neither),
    figure(
        LITTER[0],
        "litter",
        Bytes,
        "with --age: requested bytes of the blocks that aged the heap and stay",
    )
    .better(Neither),
    figure(
        LITTER[1],
        "memory of the litter",
        Bytes,
        "with --age: growth of anonymous memory by all that aged the heap",
    ),
    figure(
        LITTER[2],
        "time to give the litter back",
        Ns,
        "try --age: what the end of the process takes to give the litter's pages back, estimated from pages given back beside; in the command's time",
    ),
    figure(
        OTHER_SIZES,
        "litter of other sizes",
        Count,
        "with --age: 1 if the litter has sizes as servers ask for, since none of the workload's own can be used",
    )
    .better(Neither),
    retained("retained_bytes_0_ms", |sample| after(sample, 0)),
    retained("retained_bytes_100_ms", |sample| after(sample, 100)),
    retained("retained_bytes_1000_ms", |sample| after(sample, 1000)),
    retained("retained_bytes_5000_ms", |sample| after(sample, 5000)),
    // Of kernels that take points themselves.
    figure(
        "worst_overhead",
        "overhead at its worst",
        Times,
        "highest resident heap / live bytes of any point that the kernel takes, if 1 MiB or more is live",
    )
    .judged_by_range(),
    figure(
        "no_reuse_ratio",
        "peak over peak without reuse",
        Times,
        "bytes requested in all / most bytes that are live (relay, and fan-in with one size: that can be): peak over peak if no byte that was freed were ever used again",
    )
    .better(Neither),
    figure(
        "packing_ratio",
        "packing",
        Times,
        "--packing: bytes of a packing of the trace's blocks that exists, without headers and with all lifetimes known / most live bytes",
    )
    .better(Neither),
    figure(
        "end_live_bytes",
        "live at the end",
        Bytes,
        "replays: requested bytes of the blocks that the program has not freed when it ends",
    )
    .better(Neither),
    figure(
        "end_heap_bytes",
        "heap at the end",
        Bytes,
        "replays: growth of the resident set when the program ends, before its last blocks are freed",
    ),
    figure(
        "rest_heap_bytes",
        "heap at rest",
        Bytes,
        "replays: the same after a second without a call",
    ),
    figure(
        "robson_ratio",
        "Robson's ratio",
        Times,
        "robson: resident heap / live bytes after the last step whose blocks are no larger than a page",
    )
    .better(Neither),
    figure(
        "bound_ratio",
        "bound",
        Times,
        "robson: the least that an allocator can hold there if it moves no blocks; stranded: the most that a test of tcmalloc's allows, 3 large blocks and 10 MiB above what is live",
    )
    .better(Neither),
    figure(
        "peak_over_peak_4_kib",
        "peak over peak of 4 KiB",
        Times,
        "pin-windows: highest resident heap / most live bytes with one survivor per 4 KiB",
    ),
    figure(
        "peak_over_peak_16_kib",
        "peak over peak of 16 KiB",
        Times,
        "pin-windows: the same per 16 KiB",
    ),
    figure(
        "peak_over_peak_64_kib",
        "peak over peak of 64 KiB",
        Times,
        "pin-windows: the same per 64 KiB",
    ),
    figure(
        "peak_over_peak_1024_kib",
        "peak over peak of 1 MiB",
        Times,
        "pin-windows: the same per MiB",
    ),
    figure(
        "worst_window_bytes",
        "worst window",
        Bytes,
        "pin-windows: the window of these with the highest ratio",
    )
    .better(Neither),
    figure(
        "cycle_growth_share",
        "growth of the last cycle",
        Share,
        "shift: growth of the resident heap from the end of the last cycle but one to the end of the last",
    ),
    figure(
        "growth_bytes_per_iteration",
        "growth per iteration",
        Bytes,
        "stranded, aligned-churn: growth of the resident heap above live bytes, per iteration of the second half",
    ),
    figure(
        "ratchet_ratio",
        "ratchet",
        Times,
        "ratchet: resident heap after the last request / live bytes of the requests at their largest, survivors included",
    )
    .judged_by_range(),
    figure(
        "ratchet_ratio_idle",
        "ratchet after idle time",
        Times,
        "ratchet: the same after the idle time",
    ),
    figure(
        "ratchet_ratio_purged",
        "ratchet after purging",
        Times,
        "ratchet: the same after the allocator was asked to purge; of one that cannot be asked, as before",
    ),
    figure(
        "bytes_per_idle_thread",
        "memory per idle thread",
        Bytes,
        "chain: growth of the resident heap from the first link to the last, per link, with the same bytes live",
    ),
    figure(
        "returned_share_100_ms",
        "returned in 0.1 s",
        Share,
        "idle-return: returned part of what was resident above live bytes, 0.1 s after a burst",
    )
    .better(Higher),
    figure(
        "returned_share_1000_ms",
        "returned in 1 s",
        Share,
        "idle-return: the same after 1 s",
    )
    .better(Higher),
    figure(
        "returned_share",
        "returned",
        Share,
        "idle-return: the same after the whole idle time",
    )
    .better(Higher),
    figure(
        "returned_share_purged",
        "returned after purging",
        Share,
        "idle-return: the same after the allocator was asked to purge; of one that cannot be asked, as before",
    )
    .better(Higher),
    figure(
        "above_live_gib_s",
        "memory above what is live over time",
        GibSeconds,
        "idle-return: resident heap above live bytes, summed up over the idle time",
    ),
    figure(
        "next_burst_ratio",
        "time of the next burst",
        Times,
        "idle-return: time of the second burst / of the first, in this process; one measurement, and another process may run beside it",
    ),
    figure(
        "next_burst_faults_ratio",
        "page faults of the next burst",
        Times,
        "idle-return: page faults of the second burst / of the first",
    ),
    figure(
        "peak_over_bound",
        "peak over the bound",
        Times,
        "fan-in, relay: highest resident heap / the most bytes that can be live; of fan-in with several sizes, that were live at any point",
    )
    .judged_by_range(),
    figure(
        "idle_over_bound",
        "bound after idle time",
        Times,
        "fan-in: resident heap 1 s after the end / the same bytes",
    ),
    figure(
        "copied_bytes",
        "memory that the child copies",
        Bytes,
        "fork-cow: growth of the memory that the child has alone, while it works",
    )
    .judged_by_range(),
    figure(
        "copy_amplification",
        "copied over freed",
        Times,
        "fork-cow: the same / bytes that the child frees",
    ),
    figure(
        "parent_copied_bytes",
        "memory that the parent copies",
        Bytes,
        "fork-cow: growth of the memory that the parent has alone, while it writes and the child has its heap",
    ),
    figure(
        "fork_ns",
        "time of fork",
        Ns,
        "fork-cow: time of the call of fork, the allocator's handlers included; one measurement",
    ),
    figure(
        "first_writes_ns",
        "time of the first writes",
        Ns,
        "fork-cow: time in which the parent replaces its first 1000 blocks while the child has its heap; one measurement",
    ),
    figure(
        "growth_bytes_per_thread",
        "growth per thread",
        Bytes,
        "thread-churn: growth of the resident heap over the second half of the threads, per thread",
    ),
    figure(
        "thread_ns",
        "time of a thread",
        Ns,
        "thread-churn: wall time of a generation of threads / threads in it, above the same of threads that do nothing; one measurement",
    ),
    figure(
        "start_ns",
        "time of a start",
        Ns,
        "start: time from the start of a process to its end, mean over those of a process; workload start as a timed run has verdicts",
    ),
    figure(
        "start_cpu_ns",
        "CPU time of a start",
        Ns,
        "start: CPU time of the same",
    ),
    figure(
        "start_faults",
        "page faults of a start",
        Count,
        "start: page faults of the same",
    ),
    figure(
        "start_system_calls",
        "system calls of a start",
        Count,
        "start: calls of the kernel by one more process, which the kernel stops at each; with it go their names",
    ),
    figure(
        "start_kernel_files",
        "kernel files of a start",
        Count,
        "start: files below /proc and /sys that it opens; with it go their paths",
    ),
    figure(
        "start_anonymous_bytes",
        "memory of a start",
        Bytes,
        "start: its resident memory that lies in no file, when all is freed",
    ),
    figure(
        "start_mapped_bytes",
        "address space of a start",
        Bytes,
        "start: its address space then (VmSize)",
    ),
    figure(
        "start_commit_bytes",
        "commit charge of a start",
        Bytes,
        "start: its private writable mappings then: what a kernel that never overcommits sets aside",
    ),
    figure(
        "start_mappings",
        "mappings of a start",
        Count,
        "start: its mappings then",
    ),
    figure(
        "smallest_address_space_bytes",
        "smallest RLIMIT_AS",
        Bytes,
        "start: smallest limit of the address space (ulimit -v) under which most starts succeed, to 1 % or a page; most are 3 of 3, or 5 of at most 9",
    ),
    figure(
        "smallest_data_bytes",
        "smallest RLIMIT_DATA",
        Bytes,
        "start: the same of private writable memory (ulimit -d)",
    ),
    figure(
        "late_free_ns",
        "time of a late free",
        Ns,
        "late-free: time of a call of free at the end of a process or a thread; workload late-free as a timed run has verdicts",
    ),
    figure(
        "early_free_ns",
        "time of an early free",
        Ns,
        "late-free: the same of a process that frees in main, or in the thread before its end",
    ),
    figure(
        "late_free_ratio",
        "late free",
        Times,
        "late-free: time of a call of free at the end / before it",
    ),
    figure(
        "pages_per_1000_nodes",
        "pages of 1000 nodes",
        Count,
        "traverse: distinct pages of 4 KiB that 1000 nodes in a row lie on, averaged; from their addresses",
    )
    .judged_by_range(),
    figure(
        "packed_pages_per_1000_nodes",
        "pages if packed",
        Count,
        "traverse: the same of a copy without gaps, in the order of the visits",
    ),
    figure(
        "scattered_pages_per_1000_nodes",
        "pages if scattered",
        Count,
        "traverse: the same of the scattered copy",
    ),
    figure(
        "lines_per_node",
        "cache lines",
        Count,
        "traverse: distinct cache lines of 64 bytes that are read of nodes and strings / nodes",
    ),
    figure(
        "regions_2_mib",
        "regions",
        Count,
        "traverse: distinct regions of 2 MiB in which these lie",
    ),
    figure(
        "tlb_64_misses_per_node",
        "misses of a small TLB",
        Count,
        "traverse: misses of a TLB of 64 pages that forgets the least recently used one, by the addresses of a second visit",
    ),
    figure(
        "tlb_1536_misses_per_node",
        "misses of a large TLB",
        Count,
        "traverse: the same of 1536 pages",
    ),
    figure(
        "cache_1_mib_misses_per_node",
        "misses of a cache",
        Count,
        "traverse: the same of a cache of 1 MiB in lines of 64 bytes",
    ),
    figure(
        "steady_overhead",
        "overhead in the steady state",
        Times,
        "steady: mean resident heap / mean live bytes, from the first birth on the clock to the last",
    )
    .judged_by_range(),
    figure(
        "tlb_64_misses_per_read",
        "misses of a small TLB per read",
        Count,
        "steady: misses of a TLB of 64 pages by reads of live blocks, as for traverse",
    ),
    figure(
        "tlb_1536_misses_per_read",
        "misses of a large TLB per read",
        Count,
        "steady: the same of 1536 pages",
    ),
    figure(
        "cache_1_mib_misses_per_read",
        "misses of a cache per read",
        Count,
        "steady: the same of a cache of 1 MiB in lines of 64 bytes",
    ),
];

/// What `steady` reports in a timed process, too.
pub const BY_OTHERS: &[Metric] = &[
    figure(
        "remote_share",
        "freed by others",
        Share,
        "steady: share of the blocks that other threads freed; where one could not take more, the owner freed them",
    )
    .better(Neither),
];

/// Resident heap that is left so long after everything was freed.
const fn retained(key: &'static str, of: fn(&Sample) -> Option<f64>) -> Metric {
    described(
        key,
        "retained memory",
        Bytes,
        "resident heap that is left so long after everything was freed, without a call",
        Value::Sample(of),
    )
    .judged_by_range()
}

/// The same, of a process; the guest reads its memory at a few moments after the last free.
fn after(sample: &Sample, after_ms: u64) -> Option<f64> {
    let footprint = sample.measurement.footprint.as_ref()?;
    let kept = footprint
        .retained
        .iter()
        .find(|it| it.after_ms == after_ms)?;
    let grown = kept
        .resident
        .grown_since(&footprint.begin, sample.measurement.held_before_bytes);
    Some(grown as f64)
}

fn mean_overhead(it: &MemoryProfile) -> Option<f64> {
    let mean_live = it.live_byte_points as f64 / it.points as f64;
    (mean_live >= OVERHEAD_FROM_BYTES)
        .then(|| it.heap_byte_points as f64 / it.live_byte_points as f64)
}

/// The highest resident heap: a sample at the peak of the footprint may have seen more.
fn most_heap_bytes(it: &MemoryProfile) -> u64 {
    it.most_heap_bytes.max(it.peak_footprint.heap_bytes)
}

/// What the allocator reports as usable in all live blocks, if the process asked.
fn usable(it: &MemoryProfile) -> Option<f64> {
    it.at_peak
        .map(|it| it.usable_bytes as f64)
        .filter(|usable| *usable > 0.0)
}

/// Pages of the map that records live blocks.
const PAGE_BYTES: f64 = 4096.0;

/// Live bytes, if they are enough for a ratio.
fn overhead_base(moment: &MemoryPoint) -> Option<f64> {
    Some(moment.live_bytes as f64).filter(|bytes| *bytes >= OVERHEAD_FROM_BYTES)
}

fn overhead(moment: &MemoryPoint) -> Option<f64> {
    Some(moment.heap_bytes as f64 / overhead_base(moment)?)
}

fn ratio(over: u64, under: u64) -> Option<f64> {
    (under > 0).then(|| over as f64 / under as f64)
}

/// The highest resident heap of several threads over that of one thread that made the same calls.
pub fn blow_up(several: &MemoryProfile, one: &MemoryProfile) -> Option<f64> {
    overhead_base(&several.peak_demand)?;
    ratio(most_heap_bytes(several), most_heap_bytes(one))
}

/// The allocator's memory at the peak of the resident set / highest sum of requested bytes; `None` if
/// the peak lies below the start, nothing was requested, or most of what has grown is litter.
pub fn overhead_of(measurement: &Measurement) -> Option<f64> {
    if measurement.figures.contains_key(LITTER[0]) {
        return None;
    }
    let heap = measurement.heap_peak_bytes()?;
    (measurement.requested_peak_bytes > 0)
        .then(|| heap as f64 / measurement.requested_peak_bytes as f64)
}
