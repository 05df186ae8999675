//! An aged heap: each thread makes exactly the calls that the litter's volume and size imply, beside those of its kernel, and the
//! sizes of which litter is made are those that a kernel requests.

use crate::kernels::counter::{Counter, case, job};
use heapmark::build::LITTER;
use heapmark::execute::Outcome;
use heapmark::plan::Litter;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Blocks of one size that a thread allocates: its part of the volume, which it then replaces three times.
fn blocks(volume: u64, size: u64, threads: u64) -> u64 {
    let filled = (volume / threads).div_ceil(size);
    filled + 3 * filled
}

#[test]
fn litter_makes_the_calls_that_its_volume_implies_and_all_of_it_is_freed() {
    let counter = Counter::new();
    for threads in [1, 2, 3] {
        for (bytes, size, stay) in [(1 << 20, 64, 50), (3_000_000, 1000, 25)] {
            let litter = Litter {
                stay,
                bytes,
                sizes: format!("{size}:7"),
                by_threads: false,
                program: String::new(),
            };
            for (workload, set, own) in [
                ("churn", &["objects=1000"][..], 1000),
                ("larson", &["chunks=10", "rounds=10", "incarnations=5"], 550),
            ] {
                let mut job = job(&case(workload, threads, set), 0, 1, false);
                job.exercise = false;
                job.litter = Some(litter.clone());
                let (counted, attempt) = counter.numbers(&job);
                assert_eq!(attempt.outcome, Outcome::Ok, "{workload} {threads}");
                let threads = u64::from(threads);
                let all = threads * (own + blocks(bytes, size, threads));
                // And the pair by which every guest wakes its allocator.
                assert_eq!(
                    counted,
                    [all + 1, all + 1, 0, 0, 0],
                    "{workload}, {threads} threads, {litter:?}"
                );
                let figures = attempt.measurement.unwrap().figures;
                let live = figures["litter_live_bytes"] as u64;
                let kept = threads * ((bytes / threads).div_ceil(size) * u64::from(stay) / 100);
                assert_eq!(live, kept * size, "{workload}, {threads} threads");
            }
        }
    }
}

#[test]
fn a_heap_without_litter_is_fresh() {
    let mut job = job(&case("churn", 1, &["objects=1000"]), 0, 1, false);
    job.exercise = false;
    job.litter = Some(Litter::none());
    let (counted, _) = Counter::new().numbers(&job);
    assert_eq!(counted[0], 1001);
}

#[test]
fn a_check_counts_the_sizes_that_are_requested_and_the_most_that_is_live() {
    let counter = Counter::new();
    let set = [
        "volume=40000",
        "min-size=100",
        "max-size=100",
        "layout=block",
    ];
    let mut job = job(&case("same-thread", 1, &set), 0, 1, true);
    job.counts_sizes = true;
    let (_, attempt) = counter.numbers(&job);
    assert_eq!(attempt.outcome, Outcome::Ok);
    let measurement = attempt.measurement.unwrap();
    let calls = measurement.calls["malloc"];
    let sizes = &measurement.notes["sizes"];
    let counts = sizes.split(',').map(|class| class.split_once(':').unwrap());
    let counts: Vec<(u64, u64)> = counts
        .map(|(size, count)| (size.parse().unwrap(), count.parse().unwrap()))
        .collect();
    assert_eq!(
        counts.iter().map(|(_, count)| count).sum::<u64>(),
        calls,
        "{sizes}"
    );
    assert!(counts.contains(&(100, calls - 2)), "{sizes}, of {calls}");
    assert_eq!(
        measurement.figures["most_live_bytes"] as u64,
        measurement.requested_peak_bytes
    );
}

/// Calls of malloc and free by a program, preloaded with these libraries.
fn calls_of_true(folder: &Path, order: &str) -> ([u64; 2], String) {
    let path = |name: &str| folder.join(name).display().to_string();
    std::fs::write(path("order"), order).unwrap();
    std::fs::write(path("counts"), [0; 40]).unwrap();
    // No heapmark listens at that address.
    let file = std::fs::metadata(path("order")).unwrap();
    let told = format!("{:057} {} {} {}", 0, file.dev(), file.ino(), path("order"));
    let mut program = Command::new("/bin/true");
    program
        .env("COUNTS", path("counts"))
        .env("COUNTS_OF", "all")
        .env("HEAPMARK_LITTER", told)
        // The last of them begins first: it must count by then.
        .env("LD_PRELOAD", path("litter.so") + ":" + &path("count.so"));
    assert!(program.status().unwrap().success());
    let counts = std::fs::read(path("counts")).unwrap();
    let count = |at: usize| u64::from_ne_bytes(counts[8 * at..][..8].try_into().unwrap());
    let said = std::fs::read_to_string(path("order")).unwrap();
    ([count(0), count(1)], said[order.len()..].to_owned())
}

#[test]
fn the_library_that_ages_programs_makes_the_litter_of_a_kernel_and_no_call_more() {
    let dir = tempfile::tempdir().unwrap();
    let counter = "../../programs/count-mallocs/count.c";
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-shared", "-fPIC", "-fno-builtin", "-pthread", "-o"])
        .arg(dir.path().join("count.so"))
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(counter));
    assert!(compiler.status().unwrap().success());
    std::fs::copy(LITTER.find().unwrap(), dir.path().join("litter.so")).unwrap();
    let exe = std::fs::metadata("/bin/true").unwrap();
    let litter = Litter::of(30, 0, "24:5,100:3,3000:1", false);
    let mut job = job(&case("churn", 1, &["objects=1000"]), 0, 1, false);
    job.litter = Some(litter.clone());
    let (_, attempt) = Counter::new().numbers(&job);
    let figures = attempt.measurement.unwrap().figures;

    let Litter { stay, sizes, .. } = litter;
    let order = |bytes: u64, threads: u32| {
        let (seed, device, inode) = (job.seed, exe.dev(), exe.ino());
        format!("{stay} {bytes} {threads} {seed} {device} {inode} {sizes}\n")
    };
    let ([mallocs, frees], nothing) = calls_of_true(dir.path(), &order(0, 1));
    assert_eq!(nothing, "", "a fresh heap");
    // Its weights add up to more than a number of 32 bits holds.
    let damaged = order(litter.bytes, 1).replace("24:", "24:4294967296,24:");
    let ([_, _], nothing) = calls_of_true(dir.path(), &damaged);
    assert_eq!(nothing, "", "an order that is none");
    for threads in [1, 2] {
        let ([more_mallocs, more_frees], said) =
            calls_of_true(dir.path(), &order(litter.bytes, threads));
        let numbers = said.trim().strip_prefix("litter=").unwrap().split(' ');
        let numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap()).collect();
        let (blocks, live) = (numbers[5], numbers[6]);
        assert_eq!(more_mallocs - mallocs, blocks);
        assert!(more_frees - frees < blocks && live > 0);
        let stayed = blocks - (more_frees - frees);
        assert!(
            (blocks * 7 / 100..blocks * 8 / 100).contains(&stayed),
            "30 % of a quarter: {stayed} of {blocks}"
        );
        if threads == 1 {
            assert_eq!(
                [blocks as f64, live as f64],
                [figures["litter_blocks"], figures["litter_live_bytes"]]
            );
        }
    }
}
