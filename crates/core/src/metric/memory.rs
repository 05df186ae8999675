//! Metrics of processes whose memory was sampled: what is resident, compared with what is live.

use super::Better::{Higher, Neither};
use super::Unit::{Bytes, Count, Ns, Share, Times};
use super::definition::{Metric, Sample, Value, described, figure};
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
        Value::Memory(|profile| Some(profile.peak_demand.live_bytes as f64)),
    )
    .better(Neither),
    described(
        "seen_peak_share",
        "part of the peak seen",
        Share,
        "most live bytes in any sample / the most that the workload can have live, if that is 1 MiB or more; only of processes that another one samples",
        Value::Sample(|sample| {
            // A process that samples itself misses nothing.
            let memory = sample.memory.filter(|profile| profile.sampling_share > 0.0)?;
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
        Value::Memory(|profile| overhead(&profile.peak_demand)),
    )
    .judged_by_range(),
    described(
        "overhead_at_peak_footprint",
        "overhead at peak RSS",
        Times,
        "resident heap / live bytes when most was resident",
        Value::Memory(|profile| overhead(&profile.peak_footprint)),
    )
    .judged_by_range(),
    described(
        "peak_heap_bytes",
        "highest resident heap",
        Bytes,
        "the highest resident heap: growth of the resident set since the workload began",
        Value::Memory(|profile| Some(most_heap_bytes(profile) as f64)),
    ),
    described(
        "peak_over_peak",
        "peak over peak",
        Times,
        "the highest resident heap / the most live bytes, independent of when each occurred",
        Value::Memory(|profile| {
            overhead(&MemoryPoint {
                heap_bytes: most_heap_bytes(profile),
                ..profile.peak_demand
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
        Value::Memory(|profile| ratio(profile.peak_demand.live_bytes, profile.peak_demand.occupied_bytes)),
    )
    .better(Higher),
    described(
        "internal_fragmentation",
        "internal fragmentation",
        Share,
        "(usable - live) / live bytes when most was live; only of replays in memory mode, as the next three",
        Value::Memory(|profile| Some(usable(profile)? / overhead_base(&profile.peak_demand)? - 1.0)),
    ),
    described(
        "external_fragmentation",
        "external fragmentation",
        Share,
        "(resident heap - usable) / live bytes when most was live",
        Value::Memory(|profile| {
            Some((profile.peak_demand.heap_bytes as f64 - usable(profile)?) / overhead_base(&profile.peak_demand)?)
        }),
    ),
    described(
        "tenth_page",
        "occupancy of the tenth page",
        Share,
        "a tenth of the pages with live blocks hold at most this share of live bytes",
        Value::Memory(|profile| Some(profile.at_peak?.tenth_page_bytes as f64 / PAGE_BYTES)),
    )
    .better(Higher),
    described(
        "sparse_pages",
        "sparse pages",
        Share,
        "share of the pages with live blocks that are less than a quarter full",
        Value::Memory(|profile| {
            let pages = profile.peak_demand.occupied_bytes as f64 / PAGE_BYTES;
            (pages > 0.0).then_some(profile.at_peak?.sparse_pages as f64 / pages)
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
];

/// The resident heap that is left at some time after everything was freed.
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

/// Returns the resident heap of a process this long after its last free; the guest reads it at a few moments.
fn after(sample: &Sample, after_ms: u64) -> Option<f64> {
    let footprint = sample.measurement.footprint.as_ref()?;
    let kept = footprint
        .retained
        .iter()
        .find(|moment| moment.after_ms == after_ms)?;
    let grown = kept
        .resident
        .grown_since(&footprint.begin, sample.measurement.held_before_bytes);
    Some(grown as f64)
}

fn mean_overhead(profile: &MemoryProfile) -> Option<f64> {
    let mean_live = profile.live_byte_points as f64 / profile.points as f64;
    (mean_live >= OVERHEAD_FROM_BYTES)
        .then(|| profile.heap_byte_points as f64 / profile.live_byte_points as f64)
}

/// Returns the highest resident heap: the sample at the peak of the footprint may be higher than
/// the recorded maximum.
fn most_heap_bytes(profile: &MemoryProfile) -> u64 {
    profile
        .most_heap_bytes
        .max(profile.peak_footprint.heap_bytes)
}

/// The bytes that the allocator reports as usable in all live blocks, if the process asked for them.
fn usable(profile: &MemoryProfile) -> Option<f64> {
    profile
        .at_peak
        .map(|peak| peak.usable_bytes as f64)
        .filter(|usable| *usable > 0.0)
}

/// The size of the pages in the map that records live blocks.
const PAGE_BYTES: f64 = 4096.0;

/// The live bytes, if there are enough of them for a ratio.
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
