//! Checks with rules of their own: an order that two workloads share, the longest stop, and curves
//! of two machines.

use super::super::evidence::{Lack, Spot, find};
use super::super::judged::{JudgedPart, Number, Said, Verdict};
use super::super::order::{LEAST_SAMPLES, between};
use super::super::scene::Scene;
use super::super::values::curves;
use super::CheckedPlaces;
use crate::catalog::claim::Measure;
use heapmark_stats::{mean, median};

/// The fewest rows for which a rank correlation means anything.
const LEAST_ROWS: usize = 5;
/// A rank correlation of at least this means that one order decides the other.
const STRONG: f64 = 0.7;
/// A rank correlation of at most this means that it does not.
const WEAK: f64 = 0.3;
/// The pauses of one process only: less than this factor is not clear.
const CLEAR_FACTOR: f64 = 2.0;
/// Points of a curve that are compared.
const POINTS: usize = 21;
/// Mean distance of two curves of height 1 that have the same shape.
const SAME_SHAPE: f64 = 0.15;

impl CheckedPlaces<'_> {
    /// Every allocator of the runs counts, whether the document has it or not: the claim names no
    /// allocators.
    pub(super) fn correlates(&mut self, with: &str) {
        for spot in self.spots() {
            let other = Spot {
                workload: with.into(),
                ..spot.clone()
            };
            let there = self.evidence.allocators(&other, self.measure);
            let pair = |ours: Number| {
                Some((
                    there.iter().find(|theirs| theirs.row == ours.row)?.clone(),
                    ours,
                ))
            };
            let pairs: Vec<(Number, Number)> = self
                .evidence
                .allocators(&spot, self.measure)
                .into_iter()
                .filter_map(pair)
                .collect();
            if self.evidence.case(&other).is_none() {
                self.lack(&Lack::Workload(other.to_string()));
                continue;
            }
            if pairs.len() < LEAST_ROWS {
                let count = pairs.len();
                self.lack(&Lack::Other(format!(
                    "{count} allocators have values on {spot} and {other}: {LEAST_ROWS} are needed"
                )));
                continue;
            }
            let (theirs, ours): (Vec<Number>, Vec<Number>) = pairs.into_iter().unzip();
            let samples = ours
                .iter()
                .chain(&theirs)
                .map(|number| number.samples)
                .min()
                .unwrap_or(0);
            let correlation = correlation(&ranks(&ours), &ranks(&theirs));
            let verdict = match correlation {
                _ if samples < LEAST_SAMPLES => Verdict::Unclear,
                strong if strong >= STRONG => Verdict::Holds,
                weak if weak <= WEAK => Verdict::DoesNotHold,
                _ => Verdict::Unclear,
            };
            let words = format!(
                "the order of {} allocators and that on {other} correlate by",
                ours.len()
            );
            self.found(
                verdict,
                &spot.to_string(),
                vec![words.as_str().into(), plain(correlation, samples)],
            );
        }
    }

    /// The longest release against the longest pause, each of one process that recorded its own.
    pub(super) fn longest_release(&mut self, releases: &[String], collects: &[String]) {
        for spot in self.spots() {
            let mut longest = |rows: &[String], figure: &str| {
                let measure = Measure::Figure(figure.into());
                let found = rows
                    .iter()
                    .map(|row| self.evidence.number(self.document, row, &spot, &measure));
                let (found, lacks): (Vec<_>, Vec<_>) = found.partition(Result::is_ok);
                let most = found
                    .into_iter()
                    .flatten()
                    .max_by(|a, b| a.median.total_cmp(&b.median));
                if let (None, Some(Err(lack))) = (&most, lacks.into_iter().next()) {
                    self.lack(&lack);
                }
                most
            };
            let (release, pause) = (
                longest(releases, "release_max_ns"),
                longest(collects, "pause_max_ns"),
            );
            let (Some(release), Some(pause)) = (release, pause) else {
                continue;
            };
            let verdict = match release.median / pause.median {
                factor if factor >= CLEAR_FACTOR => Verdict::Holds,
                factor if factor <= 1.0 / CLEAR_FACTOR => Verdict::DoesNotHold,
                _ => Verdict::Unclear,
            };
            let said = vec![
                "longest release:".into(),
                release.into(),
                "; longest pause:".into(),
                pause.into(),
                "(each of one process)".into(),
            ];
            // Not counted as too few processes: only one process records pauses.
            self.parts.push(JudgedPart {
                verdict,
                place: spot.to_string(),
                said,
            });
        }
    }

    /// Curves compared with those of runs on another architecture.
    pub(super) fn alike_elsewhere(&mut self, who: &[String], column: &str) {
        let strangers = |scene: &&Scene| {
            let theirs = scene.measured.head.machine.get("architecture");
            theirs.is_some_and(|theirs| *theirs != self.evidence.architecture)
        };
        let there: Vec<&Scene> = self.evidence.elsewhere.iter().filter(strangers).collect();
        if there.is_empty() {
            let here = &self.evidence.architecture;
            self.lack(&Lack::Other(format!(
                "it takes a run of another architecture beside this one ({here})"
            )));
            return;
        }
        let here: Vec<&Scene> = self.evidence.here.iter().collect();
        for spot in self.spots() {
            let named: Vec<String> = if who.is_empty() {
                self.document.rows.keys().cloned().collect()
            } else {
                who.into()
            };
            let mut compared = 0;
            for row in named {
                let (Some(ours), Some(theirs)) = (
                    self.shape(&here, &row, &spot, column),
                    self.shape(&there, &row, &spot, column),
                ) else {
                    self.missing.insert(row);
                    continue;
                };
                compared += 1;
                let apart: Vec<f64> = ours
                    .curve
                    .iter()
                    .zip(&theirs.curve)
                    .map(|(a, b)| (a - b).abs())
                    .collect();
                let samples = ours.samples.min(theirs.samples);
                let distance = number(mean(&apart).unwrap_or(f64::NAN), samples);
                // Twice the limit is another shape; between the two is unclear.
                let verdict = match between(&distance, 0.0, SAME_SHAPE) {
                    Verdict::DoesNotHold if distance.median <= 2.0 * SAME_SHAPE => Verdict::Unclear,
                    verdict => verdict,
                };
                let said = vec![
                    format!("{row}: mean distance of the curves")
                        .as_str()
                        .into(),
                    Said::Number(distance),
                ];
                self.found(verdict, &spot.to_string(), said);
            }
            if compared == 0 {
                self.lack(&Lack::Other(format!(
                    "no row has {column} over time of {spot} on both machines"
                )));
            }
        }
    }

    /// The middle curve of a row's processes, from its first point to its last, scaled from 0 at
    /// its start to 1 at its highest point.
    fn shape(&self, scenes: &[&Scene], row: &str, spot: &Spot, column: &str) -> Option<Shape> {
        let entry = self.document.rows.get(row)?;
        let mut all: Vec<Vec<f64>> = Vec::new();
        for scene in scenes {
            for (_, groups) in scene.cases.iter().filter(|(case, _)| spot.is(case)) {
                let Some(group) = find(entry, groups) else {
                    continue;
                };
                let found = curves(scene, group).filter_map(|(series, _)| {
                    resampled(&series.column("time_ns")?, &series.column(column)?)
                });
                all.extend(found);
            }
        }
        let curve = (0..POINTS)
            .map(|place| median(&all.iter().map(|curve| curve[place]).collect::<Vec<_>>()));
        Some(Shape {
            curve: curve.collect::<Option<_>>()?,
            samples: all.len(),
        })
    }
}

struct Shape {
    curve: Vec<f64>,
    samples: usize,
}

/// At equal time intervals; the last point before each counts.
fn resampled(times: &[u64], values: &[u64]) -> Option<Vec<f64>> {
    let (start, end) = (*times.first()?, *times.last()?);
    let first = *values.first()? as f64;
    let highest = values.iter().copied().max()? as f64 - first;
    if end <= start || highest <= 0.0 {
        return None;
    }
    let at = |place: usize| {
        let time = start + ((end - start) as u128 * place as u128 / (POINTS - 1) as u128) as u64;
        let last = times.iter().rposition(|other| *other <= time).unwrap_or(0);
        (values[last] as f64 - first) / highest
    };
    Some((0..POINTS).map(at).collect())
}

/// 0 for the lowest median; equal ones share their ranks.
fn ranks(numbers: &[Number]) -> Vec<f64> {
    let count = |wanted: fn(&f64, &f64) -> bool, own: f64| {
        numbers
            .iter()
            .filter(|other| wanted(&other.median, &own))
            .count() as f64
    };
    let rank = |number: &Number| {
        count(|other, own| other < own, number.median)
            + (count(|other, own| other == own, number.median) - 1.0) / 2.0
    };
    numbers.iter().map(rank).collect()
}

/// Pearson's correlation; of ranks it is Spearman's.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (Some(mean_a), Some(mean_b)) = (mean(a), mean(b)) else {
        return 0.0;
    };
    let sum = |f: &dyn Fn(f64, f64) -> f64| {
        a.iter()
            .zip(b)
            .map(|(a, b)| f(a - mean_a, b - mean_b))
            .sum::<f64>()
    };
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    if scale > 0.0 {
        sum(&|a, b| a * b) / scale
    } else {
        0.0
    }
}

fn number(value: f64, samples: usize) -> Number {
    Number {
        row: String::new(),
        measure: None,
        median: value,
        min: value,
        max: value,
        samples,
    }
}

fn plain(value: f64, samples: usize) -> Said {
    Said::Number(number(value, samples))
}
