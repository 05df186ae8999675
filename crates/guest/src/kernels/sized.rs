//! `sized`: the same blocks freed without and with their size, in laps of one process: how much an
//! allocator gains if a free passes the size.

use super::replaced::{self, Replaced};
use super::*;

pub const KERNEL: Kernel = Kernel::timed("sized", &["slots", "replacements", "classes"], run);

fn run(bench: &mut Bench) {
    let Some(frees) = bench.api.sized_frees(null::serves()) else {
        fail!(
            "unsupported",
            "the library has no function that frees a block of known size"
        );
    };
    let (slots, replacements) = (bench.count("slots"), bench.count("replacements"));
    let classes = bench.sizes();
    let draws = [replacements, replacements.max(slots)];
    let mut replaced = Replaced::new(bench, slots, replacements, draws, |random, sizes| {
        for size in sizes {
            *size = classes.draw(random).max(2);
        }
    });
    replaced.frees = Some(frees);
    let seen = replaced.run(bench);
    if let Some(ratio) = sized_ratio(&seen.spans) {
        bench.figure("sized_ratio", ratio);
    }
}

/// Returns the time of the laps with sizes divided by that of the laps without, leaving out the
/// very first lap.
fn sized_ratio(laps: &[Span]) -> Option<f64> {
    let [plain, sized] = [false, true].map(|is_sized| {
        let laps = laps.iter().enumerate().skip(1);
        laps.filter(|(lap, _)| replaced::is_sized(*lap) == is_sized)
            .map(|(_, lap)| lap.wall_ns as f64)
            .sum::<f64>()
    });
    (plain > 0.0).then_some(sized / plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lap_is_left_out_and_a_steady_drift_cancels() {
        let laps = |times: &[u64]| -> Option<f64> {
            let mut spans = [Span::default(); 5];
            let both = spans.iter_mut().zip(times);
            both.for_each(|(span, time)| span.wall_ns = *time);
            sized_ratio(&spans)
        };
        assert_eq!(laps(&[90, 1, 10, 30, 3]), Some(10.0));
        assert_eq!(laps(&[90, 1, 2, 3, 4]), Some(1.0));
        assert_eq!(laps(&[1, 0, 1, 1, 0]), None);
    }
}
