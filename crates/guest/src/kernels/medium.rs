//! `medium`: blocks larger than an allocator's small size classes, but smaller than the blocks it
//! gets from the kernel one by one, replaced in random order.

use super::replaced::{Replaced, Written};
use super::*;

pub const KERNEL: Kernel = Kernel::timed(
    "medium",
    &[
        "slots",
        "smallest",
        "largest",
        "spread",
        "write",
        "replacements",
        "thread",
    ],
    run,
);

/// The unit of `pages` sizes, in bytes, and how far `odd` sizes are above powers of two.
const PAGE: u64 = 4096;

fn run(bench: &mut Bench) {
    let [smallest, largest] = ["smallest", "largest"].map(|name| bench.number(name).max(2));
    let (slots, replacements) = (bench.count("slots"), bench.count("replacements"));
    let spread = bench.parameter("spread");
    let draws = [replacements, replacements.max(slots)];
    let mut replaced = Replaced::new(bench, slots, replacements, draws, |random, sizes| {
        for size in sizes {
            *size = draw(random, spread, smallest, largest.max(smallest)) as u32;
        }
    });
    replaced.written = match bench.parameter("write") {
        "nothing" => Written::Nothing,
        "pages" => Written::Pages,
        _ => Written::All,
    };
    replaced.run(bench);
}

/// Draws a size from a spread.
fn draw(random: &mut SplitMix, spread: &str, smallest: u64, largest: u64) -> u64 {
    let lowest = smallest.ilog2();
    // An octave ends below the power of two at which the next one begins.
    let last = if spread == "octaves" {
        largest - 1
    } else {
        largest
    };
    let highest = last.ilog2().max(lowest);
    let exponent = lowest + random.below(highest - lowest + 1);
    let power = 1u64 << exponent;
    let above = |random: &mut SplitMix, from: u64, to: u64| {
        from + u64::from(random.below((to - from + 1).min(u64::from(u32::MAX)) as u32))
    };
    match spread {
        "power-of-2" => power,
        "odd" => power + PAGE,
        // The octave is drawn first, then a size within the octave, uniformly.
        "octaves" => above(random, power.max(smallest), (2 * power - 1).min(largest)),
        "pages" => PAGE * above(random, smallest.div_ceil(PAGE), largest / PAGE),
        _ => above(random, smallest, largest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HarnessTable;

    #[test]
    fn sizes_are_of_their_spread() {
        let mut random = SplitMix::new(1, 0);
        for _ in 0..1000 {
            let mut size = |spread| draw(&mut random, spread, 32 << 10, 4 << 20);
            assert!(size("power-of-2").is_power_of_two());
            assert!((size("odd") - PAGE).is_power_of_two());
            assert_eq!(size("pages") % PAGE, 0);
            for spread in ["octaves", "uniform", "pages", "power-of-2"] {
                assert!((32 << 10..=4 << 20).contains(&size(spread)), "{spread}");
            }
        }
    }

    #[test]
    fn octaves_are_equally_frequent_and_no_size_is_drawn_often() {
        let mut random = SplitMix::new(1, 0);
        let mut sizes = HarnessTable::<u64>::zeroed(7000);
        sizes.fill_with(|| draw(&mut random, "octaves", 32 << 10, 4 << 20));
        sizes.sort_unstable();
        let mut octaves = 0;
        for octave in sizes.chunk_by(|one, other| one.ilog2() == other.ilog2()) {
            assert!((850..1150).contains(&octave.len()), "{}", octave.len());
            octaves += 1;
        }
        assert_eq!(octaves, 7);
        assert!(sizes.windows(6).all(|run| run[0] != run[5]));
    }

    #[test]
    fn octaves_may_begin_and_end_anywhere() {
        let mut random = SplitMix::new(1, 0);
        for (smallest, largest) in [(64, 64), (65, 65), (60, 64), (100, 5000)] {
            for _ in 0..1000 {
                let size = draw(&mut random, "octaves", smallest, largest);
                assert!((smallest..=largest).contains(&size), "{size}");
            }
        }
    }
}
