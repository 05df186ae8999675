//! `medium`: blocks between an allocator's small classes and what it takes from the kernel block by
//! block, replaced in random order.

use super::replaced::{Replaced, Written};
use super::{Kernel, MemoryPoints};
use crate::bench::Bench;
use crate::rng::SplitMix;

pub const KERNEL: Kernel = Kernel {
    name: "medium",
    calls: &["malloc", "free"],
    parameters: &[
        "slots",
        "smallest",
        "largest",
        "spread",
        "write",
        "replacements",
        "thread",
    ],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

/// Bytes of the unit of `pages`, and of what `odd` sizes are above powers of two.
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

/// A size of a spread.
fn draw(random: &mut SplitMix, spread: &str, smallest: u64, largest: u64) -> u64 {
    let [lowest, highest] = [smallest, largest].map(u64::ilog2);
    let exponent = lowest + random.below(highest - lowest + 1);
    let power = 1u64 << exponent;
    let above = |random: &mut SplitMix, from: u64, to: u64| {
        from + u64::from(random.below((to - from + 1).min(u64::from(u32::MAX)) as u32))
    };
    match spread {
        "power-of-2" => power,
        "odd" => power + PAGE,
        // An octave, then uniform within it.
        "octaves" => above(random, power, 2 * power - 1).clamp(smallest, largest),
        "pages" => PAGE * above(random, smallest.div_ceil(PAGE), largest / PAGE),
        _ => above(random, smallest, largest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
