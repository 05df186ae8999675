//! Checks of how a value changes as threads are added.

use super::super::judged::{Number, Said, Verdict, fewest_samples};
use super::super::order::{LEAST_SAMPLES, Order, order};
use super::{CheckedPlaces, Spot};
use crate::document::Shape;

impl CheckedPlaces<'_> {
    /// Checks that each of `who` has this shape.
    pub fn over_threads(&mut self, who: &[String], except: &[String], shape: Shape, from: u32) {
        let all = self.spots();
        for workload in self.workloads {
            let spots: Vec<&Spot> = all
                .iter()
                .filter(|spot| spot.workload == *workload && spot.threads >= from)
                .collect();
            let Some(last) = spots.last() else { continue };
            let counts: Vec<u32> = spots.iter().map(|spot| spot.threads).collect();
            if !is_shown(shape, &counts) {
                let counts: Vec<String> = counts.iter().map(u32::to_string).collect();
                self.lack(format!(
                    "{workload} has values with {} threads on cores of their own ({} usable): the claim takes more",
                    counts.join(" and "),
                    self.evidence.cores
                ));
                continue;
            }
            if let Err(lack) = self.of_one_size(spots.iter().copied()) {
                self.lack(lack);
                continue;
            }
            for (row, _) in self.chosen(who, except, last) {
                let numbers: Vec<Number> = spots
                    .iter()
                    .filter_map(|spot| self.named(&row, spot))
                    .collect();
                if numbers.len() < spots.len() {
                    continue;
                }
                let verdict = if fewest_samples(&numbers) < LEAST_SAMPLES {
                    Verdict::Unclear
                } else {
                    takes(shape, &counts, &numbers)
                };
                self.found(verdict, workload, sentence(&counts, numbers));
            }
        }
    }
}

/// Whether these thread counts, in ascending order, can show a shape. For a peak, one count must be
/// where the peak may be, one before it, and one after it.
fn is_shown(shape: Shape, counts: &[u32]) -> bool {
    let [first, .., last] = counts else {
        return false;
    };
    match shape {
        Shape::Rises => true,
        Shape::HighestFirst => *first == 1,
        Shape::Peaks(low, high) => {
            let is_inside = |count: &u32| (low..=high).contains(count);
            *first < low && counts.iter().any(is_inside) && *last > high
        }
        Shape::Wavers => counts.len() >= 3,
    }
}

fn takes(shape: Shape, counts: &[u32], numbers: &[Number]) -> Verdict {
    let first = &numbers[0];
    let last = &numbers[numbers.len() - 1];
    let steps: Vec<Order> = numbers
        .windows(2)
        .map(|pair| order(&pair[1], &pair[0]))
        .collect();
    match shape {
        Shape::Rises if steps.contains(&Order::Below) => Verdict::DoesNotHold,
        Shape::Rises => holds_if(order(last, first), Order::Above),
        Shape::HighestFirst => numbers[1..]
            .iter()
            .map(|number| holds_if(order(first, number), Order::Above))
            .max()
            .unwrap_or(Verdict::Unclear),
        Shape::Peaks(low, high) => {
            let inside = |count: &u32| (low..=high).contains(count);
            let points = || counts.iter().zip(numbers);
            let highest = points().max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
            let Some((at, peak)) = highest else {
                return Verdict::Unclear;
            };
            let mut rivals = points().filter(|(count, _)| inside(count) != inside(at));
            if !rivals.all(|(_, rival)| order(peak, rival) == Order::Above) {
                Verdict::Unclear
            } else if inside(at) {
                // No value outside the allowed range comes near, so a peak at the range's last
                // count is a peak, too.
                Verdict::Holds
            } else {
                Verdict::DoesNotHold
            }
        }
        Shape::Wavers => match (steps.contains(&Order::Above), steps.contains(&Order::Below)) {
            (true, true) => Verdict::Holds,
            _ if steps.contains(&Order::Level) => Verdict::Unclear,
            _ => Verdict::DoesNotHold,
        },
    }
}

fn holds_if(found: Order, wanted: Order) -> Verdict {
    match found {
        Order::Level => Verdict::Unclear,
        found if found == wanted => Verdict::Holds,
        _ => Verdict::DoesNotHold,
    }
}

/// The values at the thread counts, as in `glibc 5.1 Mops/s with 1 thread, 9.8 with 2`.
fn sentence(counts: &[u32], numbers: Vec<Number>) -> Vec<Said> {
    let mut words = Vec::new();
    for (place, (count, mut number)) in counts.iter().zip(numbers).enumerate() {
        if place > 0 {
            number.row.clear();
        }
        let comma = if place + 1 < counts.len() { "," } else { "" };
        words.extend([number.into(), format!("with {count}{comma}").into()]);
    }
    words.push("threads".into());
    words
}
