//! One number per process of a row, for each measure of a claim.

use super::scene::Scene;
use crate::document::Measure;
use heapmark_core::analyse::group::Group;
use heapmark_core::execute::{Iteration, Measurement};
use heapmark_core::metric::{Process, overhead_of};
use heapmark_core::store::{Columns, Purpose};
use heapmark_stats::mean;

/// The values of the processes of a row; processes without a value are left out.
pub fn values(scene: &Scene, group: &Group, measure: &Measure) -> Vec<f64> {
    let mean_of = |time: fn(&Iteration) -> u64| {
        group.values(move |process| mean_time(process.measurement, time))
    };
    match measure {
        Measure::Time => group.values(|process| Some(process.ns_per_op())),
        Measure::Mops => group.values(|process| Some(process.mops_per_s())),
        Measure::Wall => mean_of(|one| one.wall_ns),
        Measure::User => mean_of(|one| one.user_ns),
        Measure::Sys => mean_of(|one| one.sys_ns),
        Measure::Cpu => mean_of(cpu_ns),
        Measure::CpuPerWall => group.values(|process| {
            let mean = |time| mean_time(process.measurement, time);
            let wall = mean(|one| one.wall_ns).filter(|wall| *wall > 0.0)?;
            Some(mean(cpu_ns)? / wall)
        }),
        Measure::MinorFaults => mean_of(|one| one.minor_faults),
        Measure::Overhead => group.values(|process| {
            without_tables(process.measurement).or_else(|| overhead_of(process.measurement))
        }),
        Measure::Figure(name) => figure(group, name),
        Measure::HeapGrowth => of_curves(scene, group, "heap_bytes", |curve, measurement| {
            curve.grown / measurement.requested_peak_bytes as f64
        }),
        Measure::TotalGrowth => {
            of_curves(scene, group, "total_dynamic_bytes", |curve, _| curve.grown)
        }
        Measure::TotalFall => of_curves(scene, group, "total_dynamic_bytes", |curve, _| {
            // Memory that never grew cannot fall.
            if curve.grown > 0.0 {
                (curve.grown - curve.left) / curve.grown
            } else {
                0.0
            }
        }),
    }
}

/// Returns the function that reads a measure of time from one process, so that values compare as
/// the measure does; `None` for any other measure.
pub fn time_of(measure: &Measure) -> Option<fn(&Process) -> Option<f64>> {
    match measure {
        Measure::Time => Some(|process| Some(process.ns_per_op())),
        Measure::Mops => Some(|process| Some(process.mops_per_s())),
        Measure::User => Some(|process| process.user_ns_per_op()),
        Measure::Sys => Some(|process| process.kernel_ns_per_op()),
        Measure::Cpu => Some(|process| process.cpu_ns_per_op()),
        _ => None,
    }
}

fn cpu_ns(one: &Iteration) -> u64 {
    one.user_ns + one.sys_ns
}

/// The mean time of the measured iterations.
fn mean_time(measurement: &Measurement, time: fn(&Iteration) -> u64) -> Option<f64> {
    let times: Vec<f64> = measurement.measured().map(|one| time(one) as f64).collect();
    mean(&times)
}

/// The overhead as the document defines it, for a workload that reports the size of the tables that
/// it keeps in the allocator's memory.
fn without_tables(measurement: &Measurement) -> Option<f64> {
    let figure = |name| measurement.figures.get(name).copied();
    let arrays = figure("arrays_bytes")?;
    let requested = figure("requested_sum_bytes")?;
    let heap = measurement.heap_peak_bytes()? as f64;
    Some((heap - arrays) / requested).filter(|overhead| overhead.is_finite())
}

/// A figure of the timed processes; if only the check of the row reported it, it is a single
/// number.
fn figure(group: &Group, name: &str) -> Vec<f64> {
    let timed = group.values(|process| process.measurement.figures.get(name).copied());
    if timed.is_empty() {
        return group
            .check
            .and_then(|check| check.figures.get(name))
            .copied()
            .into_iter()
            .collect();
    }
    timed
}

/// How memory changed over a process's life.
struct Growth {
    /// Growth from the first point to the highest.
    grown: f64,
    /// Growth from the first point to the last.
    left: f64,
}

fn of_curves(
    scene: &Scene,
    group: &Group,
    column: &str,
    value: fn(Growth, &Measurement) -> f64,
) -> Vec<f64> {
    curves(scene, group)
        .filter_map(|(series, measurement)| {
            let points = series.column(column)?;
            let first = *points.first()? as f64;
            let last = *points.last()? as f64;
            let highest = *points.iter().max()? as f64;
            let growth = Growth {
                grown: highest - first,
                left: last - first,
            };
            Some(value(growth, measurement))
        })
        .filter(|value| value.is_finite())
        .collect()
}

/// Memory over time of the processes of a row.
pub fn curves<'s>(
    scene: &'s Scene,
    group: &'s Group,
) -> impl Iterator<Item = (&'s Columns, &'s Measurement)> {
    scene
        .records
        .of_row(group.case, group.allocator, Purpose::Sample)
        .into_iter()
        .filter(|record| group.failed.is_none() && record.purpose == Purpose::Sample)
        .filter_map(|record| {
            let series = scene.measured.series.get(&record.cell)?;
            Some((series, record.measurement.as_ref()?))
        })
}
