//! Metrics of processes whose memory was sampled: what is resident for what is live.

use super::{Better, Judged, Metric, Sample, Unit, Value};
use crate::execute::Measurement;
use crate::observe::memory_profile::{MemoryPoint, MemoryProfile};

/// The least requested memory for which an overhead describes the allocator.
pub const OVERHEAD_FROM_BYTES: f64 = 1_048_576.0;

/// Milliseconds after the last free at which memory is read.
const AFTER: [u64; 4] = [0, 100, 1000, 5000];

const TIMES: Metric = Metric {
    key: "",
    alias: None,
    noun: "",
    unit: Unit::Times,
    better: Better::Lower,
    judged: Judged::No,
    about: "",
    of: Value::Row,
};

pub(super) const METRICS: &[Metric] = &[
    Metric {
        key: "peak_demand_bytes",
        noun: "live bytes at their peak",
        unit: Unit::Bytes,
        better: Better::Neither,
        about: "most requested bytes of live blocks in any sample",
        of: Value::Memory(|it| Some(it.peak_demand.live_bytes as f64)),
        ..TIMES
    },
    Metric {
        key: "overhead_at_peak_demand",
        noun: "overhead at peak demand",
        judged: Judged::ByRange,
        about: "resident heap / live bytes when most was live, if that is 1 MiB or more",
        of: Value::Memory(|it| overhead(&it.peak_demand)),
        ..TIMES
    },
    Metric {
        key: "overhead_at_peak_footprint",
        noun: "overhead at peak RSS",
        judged: Judged::ByRange,
        about: "resident heap / live bytes when most was resident",
        of: Value::Memory(|it| overhead(&it.peak_footprint)),
        ..TIMES
    },
    Metric {
        key: "peak_over_peak",
        noun: "peak over peak",
        about: "the highest resident heap / the most live bytes, independent of when each occurred",
        of: Value::Memory(|it| {
            overhead(&MemoryPoint {
                heap_bytes: most_heap_bytes(it),
                ..it.peak_demand
            })
        }),
        ..TIMES
    },
    Metric {
        key: "blow_up",
        noun: "blow-up",
        about: "the highest resident heap / that of one thread that makes the same calls; only of replays in memory mode",
        ..TIMES
    },
    Metric {
        key: "mean_overhead",
        noun: "mean overhead",
        judged: Judged::ByRange,
        about: "mean resident heap / mean live bytes while the workload ran",
        of: Value::Memory(mean_overhead),
        ..TIMES
    },
    Metric {
        key: "page_occupancy",
        noun: "page occupancy",
        unit: Unit::Share,
        better: Better::Higher,
        about: "live bytes / bytes of the pages that hold any, when most was live",
        of: Value::Memory(|it| ratio(it.peak_demand.live_bytes, it.peak_demand.occupied_bytes)),
        ..TIMES
    },
    Metric {
        key: "internal_fragmentation",
        noun: "internal fragmentation",
        unit: Unit::Share,
        about: "(usable - live) / live bytes when most was live; only of replays in memory mode, as the next three",
        of: Value::Memory(|it| Some(usable(it)? / overhead_base(&it.peak_demand)? - 1.0)),
        ..TIMES
    },
    Metric {
        key: "external_fragmentation",
        noun: "external fragmentation",
        unit: Unit::Share,
        about: "(resident heap - usable) / live bytes when most was live",
        of: Value::Memory(|it| {
            Some((it.peak_demand.heap_bytes as f64 - usable(it)?) / overhead_base(&it.peak_demand)?)
        }),
        ..TIMES
    },
    Metric {
        key: "tenth_page",
        noun: "occupancy of the tenth page",
        unit: Unit::Share,
        better: Better::Higher,
        about: "a tenth of the pages with live blocks hold at most this share of live bytes",
        of: Value::Memory(|it| Some(it.at_peak?.tenth_page_bytes as f64 / PAGE_BYTES)),
        ..TIMES
    },
    Metric {
        key: "sparse_pages",
        noun: "sparse pages",
        unit: Unit::Share,
        about: "share of the pages with live blocks that are less than a quarter full",
        of: Value::Memory(|it| {
            let pages = it.peak_demand.occupied_bytes as f64 / PAGE_BYTES;
            (pages > 0.0).then_some(it.at_peak?.sparse_pages as f64 / pages)
        }),
        ..TIMES
    },
    Metric {
        key: "huge_share",
        noun: "share of huge pages",
        unit: Unit::Share,
        better: Better::Neither,
        about: "growth of the memory in huge pages / the highest resident heap",
        of: Value::Sample(|sample| {
            let course = sample.memory?;
            // Memory in huge pages before the first operation is not due to the workload.
            let before = sample.measurement.footprint.as_ref()?.begin.anon_huge_bytes;
            ratio(
                course.most_anon_huge_bytes.saturating_sub(before),
                most_heap_bytes(course),
            )
        }),
        ..TIMES
    },
    retained("retained_bytes_0_ms", |sample| after(sample, AFTER[0])),
    retained("retained_bytes_100_ms", |sample| after(sample, AFTER[1])),
    retained("retained_bytes_1000_ms", |sample| after(sample, AFTER[2])),
    retained("retained_bytes_5000_ms", |sample| after(sample, AFTER[3])),
];

/// Growth of the resident set that is left so long after everything was freed.
const fn retained(key: &'static str, of: fn(&Sample) -> Option<f64>) -> Metric {
    Metric {
        key,
        noun: "retained memory",
        unit: Unit::Bytes,
        judged: Judged::ByRange,
        about: "growth of the resident set that is left so long after everything was freed, without a call",
        of: Value::Sample(of),
        ..TIMES
    }
}

fn after(sample: &Sample, after_ms: u64) -> Option<f64> {
    let footprint = sample.measurement.footprint.as_ref()?;
    let kept = footprint
        .retained
        .iter()
        .find(|it| it.after_ms == after_ms)?;
    Some(kept.resident.grown_since(&footprint.begin) as f64)
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

/// (Peak RSS - RSS before the first operation) / highest sum of requested bytes; `None` if the peak
/// lies below the start, or nothing was requested.
pub fn overhead_of(measurement: &Measurement) -> Option<f64> {
    let grown = measurement
        .peak_rss_bytes
        .checked_sub(measurement.baseline_rss_bytes)?;
    (measurement.requested_peak_bytes > 0)
        .then(|| grown as f64 / measurement.requested_peak_bytes as f64)
}
