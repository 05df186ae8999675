//! Tables of a run that sampled memory. Medians over processes, with their range: memory hardly
//! differs between processes, so ranges that do not overlap count as different without a test.

use super::failure::Failed;
use super::group::RecordsByRow;
use super::role::Role;
use super::sample::sample;
use super::spread::Spread;
use crate::metric::{self, OVERHEAD_FROM_BYTES, Sample};
use crate::observe::memory_profile::MemoryProfile;
use crate::plan::{Case, Mode};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use serde::Serialize;

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct FootprintCase {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// More threads than usable CPUs.
    pub oversubscribed: bool,
    /// The row that the others are compared with.
    pub baseline: String,
    /// Least overhead at the peak of the footprint first.
    pub rows: Vec<FootprintRow>,
    /// Most CPU time that sampling a process took, as a share of a core.
    pub sampling_share: Option<f64>,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
}

/// An allocator in it.
#[derive(Clone, Debug, Serialize)]
pub struct FootprintRow {
    /// Its name.
    pub allocator: String,
    /// What it is in the comparison.
    pub role: Role,
    /// The memory that it held; `None` if it failed or nothing ran.
    pub footprints: Option<Footprints>,
    /// Processes that ended `ok` before a sample saw live bytes.
    pub unseen: usize,
    /// How it failed, if it did.
    pub failed: Option<Failed>,
}

/// The memory that the processes of a row held.
#[derive(Clone, Debug, Serialize)]
pub struct Footprints {
    /// Processes that are included.
    pub processes: usize,
    /// Most requested bytes of live blocks in any sample.
    pub peak_demand_bytes: Spread,
    /// Resident heap over live bytes when most was live; this and the other overheads are `None` if
    /// that is below 1 MiB.
    pub overhead_at_peak_demand: Option<Spread>,
    /// The same when most was resident.
    pub overhead_at_peak_footprint: Option<Spread>,
    /// Resident heap at its peak over live bytes at theirs, independent of when each peak occurred.
    pub peak_over_peak: Option<Spread>,
    /// The highest resident heap over that of one thread that made the same calls; `None` if no
    /// such processes ran.
    pub blow_up: Option<Spread>,
    /// Mean resident heap over mean live bytes while the workload ran.
    pub mean_overhead: Option<Spread>,
    /// Live bytes over the bytes of the pages that hold any, when most was live.
    pub page_occupancy: Option<Spread>,
    /// Internal fragmentation when most was live: usable bytes that were not requested, (usable -
    /// live) / live. This and the next three are `None` if the process did not sample itself.
    pub internal: Option<Spread>,
    /// All other memory that was resident then: (resident heap - usable) / live.
    pub external: Option<Spread>,
    /// A tenth of the pages with live blocks hold at most this share of live bytes.
    pub tenth_page: Option<Spread>,
    /// Share of the pages with live blocks that are less than a quarter full.
    pub sparse_pages: Option<Spread>,
    /// Growth of the memory in huge pages over the resident heap at its peak.
    pub huge_share: Option<Spread>,
    /// The relative error of the kernel's quick count of memory against its page tables, if it is
    /// more than 1 %. Figures of the count may be off by that much; `overhead_at_peak_demand` uses
    /// the page tables.
    pub count_off_by: Option<f64>,
    /// Memory that was still resident after everything was freed.
    pub retained: Vec<Kept>,
}

/// Memory that was still resident after a while.
#[derive(Clone, Debug, Serialize)]
pub struct Kept {
    /// Time without any operation.
    pub after_ms: u64,
    /// Growth of the resident set since just before the first operation.
    pub heap_bytes: Spread,
}

/// One table per case of the plan.
pub(super) fn cases(run: &RunFile, records: &RecordsByRow) -> Vec<FootprintCase> {
    run.plan
        .cases
        .iter()
        .map(|case| of_case(run, case, records))
        .collect()
}

fn of_case(run: &RunFile, case: &Case, records: &RecordsByRow) -> FootprintCase {
    let baseline = case.baseline(&run.plan.baseline);
    let alone = played_by_one(run, case);
    let mut sampling: Vec<f64> = Vec::new();
    let mut rows: Vec<FootprintRow> = Vec::new();
    for allocator in run.rows_of(case) {
        let (row, shares) = row(case, alone, allocator, baseline, records);
        rows.push(row);
        sampling.extend(shares);
    }
    let order = |row: &FootprintRow| {
        let overhead = row
            .footprints
            .as_ref()
            .and_then(|held| held.overhead_at_peak_footprint);
        overhead.map_or(f64::INFINITY, |overhead| overhead.median)
    };
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    FootprintCase {
        workload: case.workload.clone(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        baseline: baseline.to_string(),
        rows,
        sampling_share: sampling.into_iter().max_by(f64::total_cmp),
        caution: case.caution.clone(),
    }
}

/// The row, and the cost of sampling each of its processes.
fn row(
    case: &Case,
    alone: Option<&Case>,
    allocator: &AllocatorInfo,
    baseline: &str,
    records: &RecordsByRow,
) -> (FootprintRow, Vec<f64>) {
    let own = records.of_row(case, allocator, Purpose::Memory);
    let failed = Failed::among(&own);
    let followed = own
        .iter()
        .filter(|record| record.purpose == Purpose::Memory);
    let samples: Vec<Sample> = followed.filter_map(|record| sample(record)).collect();
    let held: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.measurement.footprint.is_some())
        .collect();
    let courses: Vec<&MemoryProfile> = held.iter().filter_map(|sample| sample.memory).collect();
    let footprints = Footprints::of(&held).filter(|_| failed.is_none());
    let by_one = alone
        .map(|alone| records.of_row(alone, allocator, Purpose::Memory))
        .unwrap_or_default();
    let row = FootprintRow {
        allocator: allocator.name.clone(),
        role: Role::of(allocator, baseline),
        footprints: footprints.map(|held| Footprints {
            blow_up: blow_up(&own, &by_one),
            ..held
        }),
        unseen: held.len() - courses.len(),
        failed,
    };
    (
        row,
        courses.iter().map(|course| course.sampling_share).collect(),
    )
}

impl Footprints {
    fn of(held: &[&Sample]) -> Option<Footprints> {
        let all = metric::of_mode(Mode::Memory);
        let over = |key: &str| {
            let metric = all.iter().find(|metric| metric.key == key)?;
            Spread::of(
                &held
                    .iter()
                    .filter_map(|sample| metric.value(sample))
                    .collect::<Vec<_>>(),
            )
        };
        Some(Footprints {
            processes: held.len(),
            peak_demand_bytes: over("peak_demand_bytes")?,
            overhead_at_peak_demand: over("overhead_at_peak_demand"),
            overhead_at_peak_footprint: over("overhead_at_peak_footprint"),
            peak_over_peak: over("peak_over_peak"),
            blow_up: None,
            mean_overhead: over("mean_overhead"),
            page_occupancy: over("page_occupancy"),
            internal: over("internal_fragmentation"),
            external: over("external_fragmentation"),
            tenth_page: over("tenth_page"),
            sparse_pages: over("sparse_pages"),
            huge_share: over("huge_share"),
            count_off_by: held
                .iter()
                .filter_map(|sample| count_off_by(sample.memory?))
                .max_by(f64::total_cmp),
            retained: retained(held),
        })
    }
}

/// The case in which one thread makes the calls of this one's threads.
pub(super) fn played_by_one<'a>(run: &'a RunFile, case: &Case) -> Option<&'a Case> {
    let mut of_workload = run
        .plan
        .cases
        .iter()
        .filter(|other| other.workload == case.workload);
    of_workload.find(|other| other.is_played_by_one() && !case.is_played_by_one())
}

/// Per block, the highest resident heap of several threads over that of one thread.
pub(super) fn blow_up(several: &[&Record], one: &[&Record]) -> Option<Spread> {
    if Failed::among(one).is_some() {
        return None;
    }
    let of_block = |ours: &&Record| {
        let theirs = one
            .iter()
            .filter(|record| record.block == ours.block)
            .find_map(|record| record.memory.as_deref());
        let (ours, theirs) = (ours.memory.as_deref()?, theirs?);
        metric::blow_up(ours, theirs)
    };
    Spread::of(&several.iter().filter_map(of_block).collect::<Vec<_>>())
}

/// The error of the count if the process read both values, and if it is too large.
fn count_off_by(course: &MemoryProfile) -> Option<f64> {
    const TOO_MUCH: f64 = 0.01;
    let enough = course
        .rss_cross_check
        .into_iter()
        .flatten()
        .filter(|it| it.walked_bytes as f64 >= OVERHEAD_FROM_BYTES);
    let shares =
        enough.map(|it| it.counted_bytes.abs_diff(it.walked_bytes) as f64 / it.walked_bytes as f64);
    shares
        .filter(|share| *share > TOO_MUCH)
        .max_by(f64::total_cmp)
}

fn retained(held: &[&Sample]) -> Vec<Kept> {
    let held: Vec<_> = held
        .iter()
        .filter_map(|sample| sample.measurement.footprint.as_deref())
        .collect();
    let moments = held
        .first()
        .map(|first| first.retained.iter().map(|it| it.after_ms))
        .into_iter()
        .flatten();
    let kept = |after_ms| {
        let bytes = held.iter().filter_map(|footprint| {
            let kept = footprint
                .retained
                .iter()
                .find(|it| it.after_ms == after_ms)?;
            Some(kept.resident.grown_since(&footprint.begin) as f64)
        });
        Some(Kept {
            after_ms,
            heap_bytes: Spread::of(&bytes.collect::<Vec<_>>())?,
        })
    };
    moments.filter_map(kept).collect()
}
