//! `glibc-thread`: glibc's own benchmark of malloc with threads, turned into a fixed amount of
//! work. Each thread replaces blocks in slots of its own; order and sizes come from short tables.

use super::replaced::{Made, Replaced, Written};
use super::*;

pub const KERNEL: Kernel = Kernel {
    calls: &["malloc", "calloc", "free"],
    ..Kernel::timed(
        "glibc-thread",
        &["replacements", "make", "touch", "thread"],
        run,
    )
};

/// As in `benchtests/bench-malloc-thread.c`: slots of each thread, and lengths of the thread's two
/// tables.
const SLOTS: usize = 1024;
const ORDER: usize = 4096;
const SIZES: usize = 8000;
const SMALLEST: f64 = 4.0;
const LARGEST: f64 = 32768.0;

fn run(bench: &mut Bench) {
    let replacements = bench.count("replacements");
    let draws = [ORDER, SIZES];
    let mut replaced = Replaced::new(bench, SLOTS, replacements, draws, |random, sizes| {
        sizes.fill_with(|| inverse_square(random));
    });
    if bench.parameter("make") == "calloc" {
        replaced.made = Made::Calloc;
    }
    if bench.flag("touch") {
        replaced.written = Written::Pages;
    }
    replaced.run(bench);
}

/// Draws a size; a size's frequency falls with its square.
fn inverse_square(random: &mut SplitMix) -> u32 {
    let uniform = f64::from(random.below(u32::MAX)) / f64::from(u32::MAX);
    (1.0 / (1.0 / SMALLEST - uniform * (1.0 / SMALLEST - 1.0 / LARGEST))) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_quantiles_of_their_distribution() {
        let mut random = SplitMix::new(1, 0);
        let mut sizes = [0; 100_000];
        sizes.fill_with(|| inverse_square(&mut random));
        sizes.sort_unstable();
        assert_eq!(sizes[0], 4);
        assert!((7..=8).contains(&sizes[50_000]), "{}", sizes[50_000]);
        assert!((38..=41).contains(&sizes[90_000]), "{}", sizes[90_000]);
        assert!((360..=430).contains(&sizes[99_000]), "{}", sizes[99_000]);
        assert!(sizes[99_999] <= 32768);
    }
}
