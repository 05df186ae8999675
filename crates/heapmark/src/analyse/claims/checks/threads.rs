//! Checks of how a value changes as threads are added.

use super::super::evidence::Lack;
use super::super::judged::{Number, Said, Verdict};
use super::super::order::{LEAST_SAMPLES, Order, order};
use super::CheckedPlaces;
use crate::catalog::claim::Shape;

impl CheckedPlaces<'_> {
    /// Each of `who` has the shape.
    pub(super) fn over_threads(
        &mut self,
        who: &[String],
        except: &[String],
        shape: Shape,
        from: u32,
    ) {
        let all = self.spots();
        for workload in self.workloads {
            let spots: Vec<_> = all
                .iter()
                .filter(|spot| spot.workload == *workload && spot.threads >= from)
                .cloned()
                .collect();
            let Some(last) = spots.last() else { continue };
            let needed = fewest(shape);
            if spots.len() < needed || too_short(shape, last.threads) {
                let counts: Vec<String> =
                    spots.iter().map(|spot| spot.threads.to_string()).collect();
                self.lack(&Lack::Other(format!(
                    "{workload} has values with {} threads on cores of their own ({} usable): the claim takes more",
                    counts.join(" and "),
                    self.evidence.cores
                )));
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
                let counts: Vec<u32> = spots.iter().map(|spot| spot.threads).collect();
                let few = numbers.iter().any(|number| number.samples < LEAST_SAMPLES);
                let verdict = if few {
                    Verdict::Unclear
                } else {
                    takes(shape, &counts, &numbers)
                };
                self.found(verdict, workload, sentence(&counts, numbers));
            }
        }
    }
}

/// The fewest thread counts that can show a shape.
fn fewest(shape: Shape) -> usize {
    match shape {
        Shape::Rises | Shape::HighestFirst => 2,
        Shape::Peaks(..) | Shape::Wavers => 3,
    }
}

/// Whether the thread counts end before values would fall again.
fn too_short(shape: Shape, most: u32) -> bool {
    matches!(shape, Shape::Peaks(_, high) if most <= high)
}

fn takes(shape: Shape, counts: &[u32], numbers: &[Number]) -> Verdict {
    let (first, last) = (&numbers[0], &numbers[numbers.len() - 1]);
    let steps: Vec<Order> = numbers
        .windows(2)
        .map(|pair| order(&pair[1], &pair[0]))
        .collect();
    match shape {
        Shape::Rises if steps.contains(&Order::Below) => Verdict::DoesNotHold,
        Shape::Rises => holds_if(order(last, first), Order::Above),
        Shape::HighestFirst => {
            let orders = || numbers[1..].iter().map(|number| order(first, number));
            orders()
                .map(|found| holds_if(found, Order::Above))
                .max()
                .unwrap_or(Verdict::Unclear)
        }
        Shape::Peaks(low, high) => {
            let peak = (0..numbers.len())
                .max_by(|a, b| numbers[*a].median.total_cmp(&numbers[*b].median))
                .unwrap_or(0);
            let inside = (low..=high).contains(&counts[peak]);
            let rival =
                (0..numbers.len()).filter(|place| (low..=high).contains(&counts[*place]) != inside);
            let clear = rival
                .map(|place| order(&numbers[peak], &numbers[place]))
                .all(|found| found == Order::Above);
            match (inside, clear) {
                // No value outside comes near: the last of these is a peak.
                (true, true) => Verdict::Holds,
                (false, true) => Verdict::DoesNotHold,
                _ => Verdict::Unclear,
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

/// `glibc 5.1 Mops/s with 1 thread, 9.8 with 2`.
fn sentence(counts: &[u32], numbers: Vec<Number>) -> Vec<Said> {
    let mut said = Vec::new();
    for (place, (count, mut number)) in counts.iter().zip(numbers).enumerate() {
        if place > 0 {
            number.row.clear();
        }
        let comma = if place + 1 < counts.len() { "," } else { "" };
        said.extend([
            number.into(),
            format!("with {count}{comma}").as_str().into(),
        ]);
    }
    said.push("threads".into());
    said
}
