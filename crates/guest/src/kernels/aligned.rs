//! `aligned`: blocks of one alignment and one size from `posix_memalign`, replaced in random order:
//! how long that takes, and what the alignment costs in memory.

use super::replaced::{Made, Replaced, Written};
use super::*;

pub const KERNEL: Kernel = Kernel {
    calls: &["posix_memalign", "free"],
    ..Kernel::timed(
        "aligned",
        &["alignment", "size", "slots", "replacements", "thread"],
        run,
    )
};

fn run(bench: &mut Bench) {
    let (alignment, size) = (wanted_alignment(bench), bench.count("size").max(2));
    let (slots, replacements) = (bench.count("slots"), bench.count("replacements"));
    let draws = [replacements, 1];
    let mut replaced = Replaced::new(bench, slots, replacements, draws, |_, sizes| {
        sizes.fill(size as u32);
    });
    replaced.made = Made::Aligned(alignment);
    replaced.written = Written::Pages;
    replaced.run(bench);
}

/// Returns the parameter `alignment`, which must be one that `posix_memalign` accepts.
pub fn wanted_alignment(bench: &Bench) -> usize {
    let alignment = bench.count("alignment");
    if !alignment.is_power_of_two() || alignment < size_of::<*mut u8>() {
        fail!(
            "error",
            "alignment {alignment} is no power of two from 8 on"
        );
    }
    alignment
}
