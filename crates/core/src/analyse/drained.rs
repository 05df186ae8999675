//! What a server holds after its load, and of which kind that memory is: a leak, freed memory that is kept, huge pages, arenas of
//! threads, files.

use super::group::CaseGroups;
use crate::execute::user_command::drain::{
    AREA, BEFORE, HALF, LITTLE_BYTES, MOST_THREADS, figure, moments,
};
use crate::execute::user_command::{MOMENT, PROBES, grown_under};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a row's server held before and after its load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drained {
    /// The row's name.
    pub row: String,
    /// What the server held just before the load.
    pub before: DrainMoment,
    /// What the server held after the load, in order; the last moment is the end of the drain.
    pub after: Vec<DrainMoment>,
    /// What was resident beyond what was live, summed over the drain: bytes times seconds.
    pub above_live_byte_s: Option<f64>,
    /// The kind of memory that explains most of the growth.
    pub growth: GrowthKind,
    /// How freed memory came to remain resident, if glibc keeps it and the probes ran.
    pub shape: Option<GrowthShape>,
}

/// How glibc came to keep freed memory, derived from the setting under which glibc does not keep it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct GrowthShape {
    /// The way of growing.
    pub way: GrowthWay,
    /// The growth in bytes without the setting and with it; for survivors, with the setting that left the least.
    pub grown_bytes: [f64; 2],
    /// The largest number of threads at any time during the load.
    pub most_threads: f64,
}

/// A way in which a server's memory grows under glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthWay {
    /// Threads that are still alive have arenas of their own.
    Arenas,
    /// Threads had arenas of their own, and most of these threads have ended.
    Turnover,
    /// Large blocks went into the heap, because blocks that large had been freed before.
    Drift,
    /// No probe ended the growth: blocks live on among freed ones, or the program maps the memory itself.
    Survivors,
}

/// The memory and the threads of a server at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DrainMoment {
    /// Seconds since the end of the load; also 0 for the moment before the load.
    pub after_s: f64,
    /// The resident set, summed over the server's processes.
    pub rss_bytes: f64,
    /// Proportional set size: pages that several processes share are divided among them.
    pub pss_bytes: f64,
    /// Resident bytes of the heap and of anonymous mappings.
    pub heap_bytes: f64,
    /// Heap bytes in glibc's arenas other than the main one.
    pub arena_bytes: f64,
    /// Resident bytes of files and of shared memory.
    pub file_bytes: f64,
    /// Resident bytes of any kind that are in huge pages.
    pub huge_bytes: f64,
    /// The number of threads.
    pub threads: f64,
    /// Bytes in live blocks of malloc, as glibc counts them in a separate process; `None` if that is not known.
    pub live_bytes: Option<f64>,
}

/// What is larger at the end of the drain than before the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrowthKind {
    /// Next to nothing has grown.
    None,
    /// Live memory, which grew until the end of the load.
    Leak,
    /// Live memory, which did not grow in the second half of the load.
    Data,
    /// Freed memory.
    Kept,
    /// Freed memory, most of it in huge pages.
    HugePages,
    /// Freed memory, most of it in arenas that threads have used.
    Threads,
    /// Files and shared memory.
    Files,
    /// The cause is not known: the live memory is unknown, or nothing explains most of the growth.
    Unknown,
}

/// A growth below this share of what was resident before is too small to mention, as is one below [`LITTLE_BYTES`].
const LITTLE: f64 = 0.1;
/// A part of at least this share counts as most of a growth.
const MOST: f64 = 0.5;
/// Live memory has stopped growing if less than this share of its growth came in the second half of the load.
const STOPPED: f64 = 0.15;

/// The drains of all rows whose servers were watched for this long.
pub fn drained(groups: &CaseGroups, length: Duration) -> Vec<Drained> {
    let figures = |row: usize| groups.groups[row].check.map(|check| &check.figures);
    let baselines = groups
        .baseline()
        .and_then(|group| group.check)
        .map(|check| &check.figures);
    let all = (0..groups.groups.len()).filter_map(|row| {
        let name = groups.groups[row].allocator.name.clone();
        of_row(name, figures(row)?, baselines, length)
    });
    all.collect()
}

/// The drain of a row, from the figures of its check; the live bytes are the baseline's if the row has none of its own.
fn of_row(
    row: String,
    figures: &BTreeMap<String, f64>,
    baselines: Option<&BTreeMap<String, f64>>,
    length: Duration,
) -> Option<Drained> {
    let live = |moment: &str| {
        let name = figure(moment, "live_bytes");
        let of = |figures: &BTreeMap<String, f64>| figures.get(&name).copied();
        of(figures).or_else(|| of(baselines?))
    };
    let at = |moment: &str, after_s: f64| {
        let value = |kind: &str| figures.get(&figure(moment, kind)).copied();
        Some(DrainMoment {
            after_s,
            rss_bytes: value("rss_bytes")?,
            pss_bytes: value("pss_bytes")?,
            heap_bytes: value("heap_bytes")?,
            arena_bytes: value("arena_bytes")?,
            file_bytes: value("file_bytes")?,
            huge_bytes: value("huge_bytes")?,
            threads: value("threads")?,
            live_bytes: live(moment),
        })
    };
    let before = at(BEFORE, 0.0)?;
    let after = moments(length).into_iter();
    let after: Option<Vec<DrainMoment>> = after
        .map(|(name, time)| at(&name, time.as_secs_f64()))
        .collect();
    let after = after.filter(|all| !all.is_empty())?;
    let growth = growth(&before, &after, live(HALF));
    let above_live_byte_s = figures.get(AREA).zip(live_area(&after));
    Some(Drained {
        growth,
        shape: shape(figures, growth, after.last()?.threads),
        above_live_byte_s: above_live_byte_s.map(|(all, live)| (all - live).max(0.0)),
        row,
        before,
        after,
    })
}

/// Returns how freed memory came to remain resident, by the figures of the row's own check; `threads` is
/// the number of those still alive.
fn shape(figures: &BTreeMap<String, f64>, growth: GrowthKind, threads: f64) -> Option<GrowthShape> {
    if !matches!(growth, GrowthKind::Kept | GrowthKind::Threads) {
        return None;
    }
    let at = |moment: &str| figures.get(&figure(moment, "rss_bytes")).copied();
    let plain = at(MOMENT)? - at(BEFORE)?;
    let under = |(way, _): (&str, _)| figures.get(&grown_under(way)).copied();
    let [arenas, drift] = PROBES.map(under);
    let (arenas, drift) = (arenas?, drift?);
    let most_threads = figures.get(MOST_THREADS).copied().unwrap_or(threads);
    let ends = |grown: f64| grown <= plain * MOST;
    let (way, grown) = match () {
        () if ends(arenas) && threads <= most_threads * MOST => (GrowthWay::Turnover, arenas),
        () if ends(arenas) => (GrowthWay::Arenas, arenas),
        () if ends(drift) => (GrowthWay::Drift, drift),
        () => (GrowthWay::Survivors, arenas.min(drift)),
    };
    Some(GrowthShape {
        way,
        grown_bytes: [plain, grown],
        most_threads,
    })
}

/// Returns the integral of live bytes over seconds, linear between two moments.
fn live_area(after: &[DrainMoment]) -> Option<f64> {
    let pairs = after.windows(2).map(|pair| {
        let live = (pair[0].live_bytes? + pair[1].live_bytes?) / 2.0;
        Some(live * (pair[1].after_s - pair[0].after_s))
    });
    pairs.sum()
}

fn growth(before: &DrainMoment, after: &[DrainMoment], half_live: Option<f64>) -> GrowthKind {
    let [first, .., last] = after else {
        return GrowthKind::Unknown;
    };
    let grown = last.rss_bytes - before.rss_bytes;
    if grown < LITTLE_BYTES.max(before.rss_bytes * LITTLE) {
        return GrowthKind::None;
    }
    if last.file_bytes - before.file_bytes >= grown * MOST {
        return GrowthKind::Files;
    }
    let (Some(live_before), Some(live_first), Some(live_last)) =
        (before.live_bytes, first.live_bytes, last.live_bytes)
    else {
        return GrowthKind::Unknown;
    };
    let live = live_last - live_before;
    if live >= grown * MOST {
        let stopped = |half: f64| live_first - half < (live_first - live_before) * STOPPED;
        return match half_live.is_some_and(stopped) {
            true => GrowthKind::Data,
            false => GrowthKind::Leak,
        };
    }
    let freed = (last.heap_bytes - before.heap_bytes - live.max(0.0)).max(0.0);
    if freed < grown * MOST {
        return GrowthKind::Unknown;
    }
    if last.huge_bytes - before.huge_bytes >= freed * MOST {
        return GrowthKind::HugePages;
    }
    if last.arena_bytes - before.arena_bytes >= freed * MOST {
        return GrowthKind::Threads;
    }
    GrowthKind::Kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::user_command::drain::KINDS;

    const MIB: f64 = (1 << 20) as f64;

    /// A moment by RSS, heap, arenas, files, huge pages and live bytes, in MiB.
    fn moment(of: [f64; 6]) -> DrainMoment {
        let [rss, heap, arena, file, huge, live] = of.map(|mib| mib * MIB);
        DrainMoment {
            rss_bytes: rss,
            heap_bytes: heap,
            arena_bytes: arena,
            file_bytes: file,
            huge_bytes: huge,
            threads: 9.0,
            live_bytes: Some(live),
            ..DrainMoment::default()
        }
    }

    #[test]
    fn each_kind_of_growth_is_told_from_the_others() {
        let before = moment([10.0, 5.0, 0.0, 5.0, 0.0, 2.0]);
        let of = |first_live: f64, half: f64, last: [f64; 6]| {
            let first = DrainMoment {
                live_bytes: Some(first_live * MIB),
                ..moment(last)
            };
            growth(&before, &[first, moment(last)], Some(half * MIB))
        };
        let (kept, live) = (
            [100.0, 95.0, 0.0, 5.0, 0.0, 3.0],
            [100.0, 95.0, 0.0, 5.0, 0.0, 90.0],
        );
        let in_arenas = [100.0, 95.0, 80.0, 5.0, 0.0, 3.0];
        let in_huge_pages = [100.0, 95.0, 0.0, 5.0, 90.0, 3.0];
        let in_files = [100.0, 6.0, 0.0, 94.0, 0.0, 3.0];
        for (first_live, half, last, expected) in [
            (90.0, 46.0, live, GrowthKind::Leak),
            (90.0, 90.0, live, GrowthKind::Data),
            (90.0, 46.0, kept, GrowthKind::Kept),
            (90.0, 46.0, in_arenas, GrowthKind::Threads),
            (3.0, 3.0, in_huge_pages, GrowthKind::HugePages),
            (3.0, 3.0, in_files, GrowthKind::Files),
            (
                90.0,
                46.0,
                [12.0, 7.0, 0.0, 5.0, 0.0, 3.0],
                GrowthKind::None,
            ),
        ] {
            assert_eq!(of(first_live, half, last), expected);
        }
    }

    #[test]
    fn how_freed_memory_came_to_stay_follows_from_what_ends_it() {
        let of = |arenas: f64, drift: f64, threads: f64, growth| {
            let figures = [
                (figure(BEFORE, "rss_bytes"), 10.0),
                (figure(MOMENT, "rss_bytes"), 110.0),
                (grown_under("arenas"), arenas),
                (grown_under("drift"), drift),
                (MOST_THREADS.into(), 9.0),
            ];
            shape(&figures.into(), growth, threads).map(|shape| (shape.way, shape.grown_bytes[1]))
        };
        let kept = GrowthKind::Kept;
        assert_eq!(of(20.0, 99.0, 9.0, kept), Some((GrowthWay::Arenas, 20.0)));
        assert_eq!(of(20.0, 99.0, 1.0, kept), Some((GrowthWay::Turnover, 20.0)));
        assert_eq!(of(99.0, 20.0, 1.0, kept), Some((GrowthWay::Drift, 20.0)));
        assert_eq!(
            of(99.0, 90.0, 1.0, kept),
            Some((GrowthWay::Survivors, 90.0))
        );
        assert_eq!(of(20.0, 20.0, 9.0, GrowthKind::Leak), None);
        assert_eq!(shape(&BTreeMap::new(), kept, 1.0), None);
    }

    #[test]
    fn without_what_is_live_only_files_are_named() {
        let unknown = |of| DrainMoment {
            live_bytes: None,
            ..moment(of)
        };
        let before = unknown([10.0, 5.0, 0.0, 5.0, 0.0, 0.0]);
        let grown = unknown([100.0, 95.0, 0.0, 5.0, 0.0, 0.0]);
        assert_eq!(growth(&before, &[grown, grown], None), GrowthKind::Unknown);
        let files = unknown([100.0, 5.0, 0.0, 95.0, 0.0, 0.0]);
        assert_eq!(growth(&before, &[files, files], None), GrowthKind::Files);
    }

    #[test]
    fn what_is_above_live_is_summed_over_the_drain() {
        let mut figures = BTreeMap::new();
        for (name, live) in [("before", 1.0), ("0", 2.0), ("1000", 4.0)] {
            figures.extend(KINDS.map(|kind| (figure(name, kind), 10.0)));
            figures.insert(figure(name, "live_bytes"), live);
        }
        figures.insert(AREA.into(), 10.0);
        let of = |figures: &_| of_row("glibc".into(), figures, None, Duration::from_secs(1));
        assert_eq!(of(&figures).unwrap().above_live_byte_s, Some(7.0));
        figures.remove("drain_1000_rss_bytes");
        assert_eq!(of(&figures), None);
    }
}
