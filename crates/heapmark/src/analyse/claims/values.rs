//! One number per process of a row, for each measure of a claim.

use super::scene::Scene;
use crate::analyse::group::Group;
use crate::catalog::claim::Measure;
use crate::execute::{Iteration, Measurement};
use crate::metric::overhead_of;
use crate::store::{Columns, Purpose};

/// The values of the processes of a row; those without one are left out.
pub(super) fn values(scene: &Scene, group: &Group, measure: &Measure) -> Vec<f64> {
    let iteration =
        |time: fn(&Iteration) -> u64| group.values(move |measurement, _| mean(measurement, time));
    match measure {
        Measure::Time => group.values(|_, process| Some(process.ns_per_op)),
        Measure::Mops => group.values(|_, process| Some(process.mops_per_s)),
        Measure::Wall => iteration(|one| one.wall_ns),
        Measure::User => iteration(|one| one.user_ns),
        Measure::Sys => iteration(|one| one.sys_ns),
        Measure::Cpu => iteration(|one| one.user_ns + one.sys_ns),
        Measure::CpuPerWall => group.values(|measurement, _| {
            let wall = mean(measurement, |one| one.wall_ns).filter(|wall| *wall > 0.0)?;
            Some(mean(measurement, |one| one.user_ns + one.sys_ns)? / wall)
        }),
        Measure::Overhead => group.values(|measurement, _| {
            without_tables(measurement).or_else(|| overhead_of(measurement))
        }),
        Measure::Figure(name) => figure(group, name),
        Measure::HeapGrowth => series(scene, group, |series, measurement| {
            let requested = measurement.requested_peak_bytes as f64;
            Some(growth(&series.column("heap_bytes")?)?.0 / requested)
                .filter(|share| share.is_finite())
        }),
        Measure::TotalGrowth => series(scene, group, |series, _| {
            Some(growth(&series.column("total_dynamic_bytes")?)?.0)
        }),
        Measure::TotalFall => series(scene, group, |series, _| {
            let (grown, left) = growth(&series.column("total_dynamic_bytes")?)?;
            // Memory that never grew cannot fall.
            Some(if grown > 0.0 {
                (grown - left) / grown
            } else {
                0.0
            })
        }),
    }
}

fn mean(measurement: &Measurement, time: fn(&Iteration) -> u64) -> Option<f64> {
    let measured = measurement.measured();
    let (sum, count) = measured.fold((0.0, 0.0), |(sum, count), one| {
        (sum + time(one) as f64, count + 1.0)
    });
    (count > 0.0).then(|| sum / count)
}

/// The document's overhead, for a workload that reports the size of its tables in the allocator's
/// memory.
fn without_tables(measurement: &Measurement) -> Option<f64> {
    let figure = |name| measurement.figures.get(name).copied();
    let (arrays, requested) = (figure("arrays_bytes")?, figure("requested_sum_bytes")?);
    let grown = measurement
        .peak_rss_bytes
        .checked_sub(measurement.baseline_rss_bytes)? as f64;
    Some((grown - arrays) / requested).filter(|overhead| overhead.is_finite())
}

/// Of the timed processes; a figure that only the check reported is one number.
fn figure(group: &Group, name: &str) -> Vec<f64> {
    let timed = group.values(|measurement, _| measurement.figures.get(name).copied());
    let told = group
        .check
        .filter(|_| timed.is_empty())
        .and_then(|check| check.figures.get(name));
    timed.into_iter().chain(told.copied()).collect()
}

fn series(
    scene: &Scene,
    group: &Group,
    value: impl Fn(&Columns, &Measurement) -> Option<f64>,
) -> Vec<f64> {
    curves(scene, group)
        .filter_map(|(series, measurement)| value(series, measurement))
        .collect()
}

/// Memory over time of the processes of a row.
pub(super) fn curves<'s>(
    scene: &'s Scene,
    group: &'s Group,
) -> impl Iterator<Item = (&'s Columns, &'s Measurement)> {
    let own = |record: &&crate::store::Record| {
        record.purpose == Purpose::Sample
            && record.allocator == group.allocator.name
            && (&record.workload, record.threads) == (&group.case.workload, group.case.threads)
    };
    let records = scene
        .records
        .iter()
        .copied()
        .filter(own)
        .filter(|_| group.failed.is_none());
    records.filter_map(|record| {
        Some((
            scene.measured.series.get(&record.cell)?,
            record.measurement.as_ref()?,
        ))
    })
}

/// From the first point to the highest, and from the first to the last.
fn growth(column: &[u64]) -> Option<(f64, f64)> {
    let (first, last) = (*column.first()? as f64, *column.last()? as f64);
    let highest = column.iter().copied().max()? as f64;
    Some((highest - first, last - first))
}
