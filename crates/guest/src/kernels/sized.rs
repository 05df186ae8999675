//! `sized`: the same blocks freed without and with their size, in alternating laps of one process:
//! what an allocator gains if it is told the size.

use super::replaced::Replaced;
use super::{Kernel, MemoryPoints};
use crate::bench::Bench;
use crate::fail;
use crate::null;
use crate::sizes::Sizes;

pub const KERNEL: Kernel = Kernel {
    name: "sized",
    calls: &["malloc", "free"],
    parameters: &["slots", "replacements", "classes"],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

fn run(bench: &mut Bench) {
    let Some(frees) = bench.api.sized_frees(null::serves()) else {
        fail::give_up(
            "unsupported",
            format_args!("the library has no function that frees a block of known size"),
        );
    };
    let (slots, replacements) = (bench.count("slots"), bench.count("replacements"));
    let classes = Sizes::parse(bench.parameter("classes"));
    let draws = [replacements, replacements.max(slots)];
    let mut replaced = Replaced::new(bench, slots, replacements, draws, |random, sizes| {
        for size in sizes {
            *size = classes.draw(random).max(2);
        }
    });
    replaced.frees = Some(frees);
    let seen = replaced.run(bench);
    let of = |form: usize| {
        let spans = seen.spans.iter().skip(form).step_by(2);
        spans.map(|span| span.wall_ns as f64).sum::<f64>()
    };
    if of(0) > 0.0 {
        bench.figure("sized_ratio", of(1) / of(0));
    }
}
