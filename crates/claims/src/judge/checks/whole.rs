//! Checks with rules of their own: an order that two workloads share, the longest stop, and curves
//! of two machines.

use super::super::evidence::{Lack, Spot, find};
use super::super::judged::{Number, Verdict, fewest_samples};
use super::super::order::{between, verdict};
use super::super::scene::Scene;
use super::super::values::curves;
use super::CheckedPlaces;
use crate::document::Measure;
use heapmark_stats::{mean, median, rank_correlation};
use std::iter::zip;

/// The fewest rows for which a rank correlation means anything.
const LEAST_ROWS: usize = 5;
/// A rank correlation of at least this means that one order decides the other.
const STRONG: f64 = 0.7;
/// A rank correlation of at most this means that one order does not decide the other.
const WEAK: f64 = 0.3;
/// The least clear factor between release and pause, since each process records only its own.
const CLEAR_FACTOR: f64 = 2.0;
/// The number of points at which curves are compared.
const POINTS: usize = 21;
/// The largest mean distance of two curves of height 1 that have the same shape.
const SAME_SHAPE: f64 = 0.15;

impl CheckedPlaces<'_> {
    /// Every allocator of the runs counts, whether the document has it or not: the claim names no
    /// allocators.
    pub fn correlates(&mut self, with: &str) {
        for spot in self.spots() {
            let other = spot.on(with);
            let there = self.evidence.allocators(&other, self.measure);
            let (ours, theirs): (Vec<Number>, Vec<Number>) = self
                .evidence
                .allocators(&spot, self.measure)
                .into_iter()
                .filter_map(|ours| {
                    let theirs = there.iter().find(|theirs| theirs.row == ours.row)?;
                    Some((ours, theirs.clone()))
                })
                .unzip();
            if self.evidence.case(&other).is_none() {
                self.lack(format!("{other} is in no run"));
                continue;
            }
            let count = ours.len();
            if count < LEAST_ROWS {
                self.lack(format!(
                    "{count} allocators have values on {spot} and {other}: {LEAST_ROWS} are needed"
                ));
                continue;
            }
            let samples = fewest_samples(ours.iter().chain(&theirs));
            let medians = |numbers: &[Number]| -> Vec<f64> {
                numbers.iter().map(|number| number.median).collect()
            };
            let correlation = rank_correlation(&medians(&ours), &medians(&theirs)).unwrap_or(0.0);
            let verdict = verdict(samples, correlation >= STRONG, correlation <= WEAK);
            let sentence = said![
                format!("the order of {count} allocators and that on {other} correlate by"),
                Number::bare(correlation, samples)
            ];
            self.found(verdict, spot, sentence);
        }
    }

    /// Checks that the longest release exceeds the longest pause, each of processes that recorded
    /// their own.
    pub fn longest_release(&mut self, releases: &[String], collects: &[String]) {
        for spot in self.spots() {
            let mut longest = |rows: &[String], figure: &str| {
                let measure = Measure::Figure(figure.into());
                let mut found: Vec<Number> = Vec::new();
                let mut lacks = Vec::new();
                for row in rows {
                    let number = self.evidence.number(self.rows, row, &spot, &measure);
                    match number {
                        Ok(number) if number.median > 0.0 => found.push(number),
                        Ok(_) => lacks.push((row, Lack::Other(format!("{row} has no {measure}")))),
                        Err(lack) => lacks.push((row, lack)),
                    }
                }
                let most = found
                    .into_iter()
                    .max_by(|a, b| a.median.total_cmp(&b.median));
                // Rows without a value are left out, if other rows have one.
                for (row, lack) in lacks {
                    match most {
                        Some(_) => _ = self.findings.missing.insert(row.clone()),
                        None => self.lack(lack),
                    }
                }
                most
            };
            let release = longest(releases, "release_max_ns");
            let pause = longest(collects, "pause_max_ns");
            let Some((release, pause)) = release.zip(pause) else {
                continue;
            };
            let factor = release.median / pause.median;
            let holds = factor >= CLEAR_FACTOR;
            let fails = factor <= 1.0 / CLEAR_FACTOR;
            let samples = release.samples.min(pause.samples);
            let verdict = verdict(samples, holds, fails);
            let sentence = said!["longest release:", release, "; longest pause:", pause];
            self.found(verdict, &spot, sentence);
        }
    }

    /// Checks that curves have the shape of those of runs on another architecture.
    pub fn alike_elsewhere(&mut self, who: &[String], column: &str) {
        let evidence = self.evidence;
        let architecture = evidence.architecture();
        let there: Vec<&Scene> = evidence
            .elsewhere()
            .filter(|scene| !["", architecture].contains(&scene.fact("architecture")))
            .collect();
        if there.is_empty() {
            self.lack(format!(
                "it takes a run of another architecture beside this one ({architecture})"
            ));
            return;
        }
        let here: Vec<&Scene> = evidence.here().collect();
        for spot in self.spots() {
            let named: Vec<String> = if who.is_empty() {
                self.rows.keys().cloned().collect()
            } else {
                who.into()
            };
            let mut compared = 0;
            for row in named {
                let ours = self.scaled_curves(&here, &row, &spot, column);
                let theirs = self.scaled_curves(&there, &row, &spot, column);
                let Some((our_curve, their_curve)) = middle(&ours).zip(middle(&theirs)) else {
                    self.findings.missing.insert(row);
                    continue;
                };
                compared += 1;
                let apart: Vec<f64> = zip(our_curve, their_curve)
                    .map(|(a, b)| (a - b).abs())
                    .collect();
                let samples = ours.len().min(theirs.len());
                let distance = Number::bare(mean(&apart).unwrap_or(f64::NAN), samples);
                // Twice the limit is another shape; between the two is unclear.
                let verdict = match between(&distance, 0.0, SAME_SHAPE) {
                    Verdict::DoesNotHold if distance.median <= 2.0 * SAME_SHAPE => Verdict::Unclear,
                    verdict => verdict,
                };
                let sentence = said![format!("{row}: mean distance of the curves"), distance];
                self.found(verdict, &spot, sentence);
            }
            if compared == 0 {
                self.lack(format!(
                    "no row has {column} over time of {spot} on both machines"
                ));
            }
        }
    }

    /// The curves of a row's processes, each from its first point to its last, scaled from 0 at
    /// its start to 1 at its highest point.
    fn scaled_curves(
        &self,
        scenes: &[&Scene],
        row: &str,
        spot: &Spot,
        column: &str,
    ) -> Vec<Vec<f64>> {
        let mut all = Vec::new();
        let Some(entry) = self.rows.get(row) else {
            return all;
        };
        let is_at = self.evidence.is_at(spot);
        for scene in scenes {
            let tables = scene.tables.iter().filter(|table| is_at(table.case));
            for group in tables.filter_map(|table| find(entry, &table.groups)) {
                all.extend(curves(scene, group).filter_map(|(series, _)| {
                    resampled(&series.column("time_ns")?, &series.column(column)?)
                }));
            }
        }
        all
    }
}

/// Returns the median of the curves at each place; `None` without curves.
fn middle(curves: &[Vec<f64>]) -> Option<Vec<f64>> {
    (0..POINTS)
        .map(|place| {
            let values: Vec<f64> = curves.iter().map(|curve| curve[place]).collect();
            median(&values)
        })
        .collect()
}

/// Samples a curve at equal time intervals; at each of them, the last point before it counts.
fn resampled(times: &[u64], values: &[u64]) -> Option<Vec<f64>> {
    let start = *times.first()?;
    let end = *times.last()?;
    let first = *values.first()? as f64;
    let highest = values.iter().copied().max()? as f64 - first;
    if end <= start || highest <= 0.0 {
        return None;
    }
    Some(
        (0..POINTS)
            .map(|place| {
                let time =
                    start + ((end - start) as u128 * place as u128 / (POINTS - 1) as u128) as u64;
                let last = times.iter().rposition(|other| *other <= time).unwrap_or(0);
                (values[last] as f64 - first) / highest
            })
            .collect(),
    )
}
