//! Libraries that hook thread start or end must still see it after we chose what they export: otherwise each thread leaves
//! its heap behind, and every figure of a workload with many threads is wrong. (rpmalloc once kept 127 times what was
//! requested, because its `pthread_create` was not exported.)

use crate::support::{CATALOG, HUNG_AFTER};
use heapmark::build::{self, State};
use heapmark::catalog::{Allocator, Tier};
use heapmark::execute::{self, Guest, Job, Outcome, Subject};
use heapmark::plan::{Cell, cases};
use std::sync::atomic::AtomicBool;

#[test]
fn memory_does_not_grow_with_the_number_of_threads_that_have_ended() {
    let names = ["glibc", "mimalloc3", "rpmalloc"];
    it_does_not_grow(|allocator| names.contains(&allocator.name.as_str()));
}

#[test]
#[ignore = "make test-all"]
fn nor_does_it_under_any_allocator() {
    it_does_not_grow(|allocator| {
        let left_out = [Tier::Floor, Tier::Experimental, Tier::User];
        !left_out.contains(&allocator.tier) && !allocator.single_threaded
    });
}

fn it_does_not_grow(is_looked_at: impl Fn(&Allocator) -> bool) {
    let guest = Guest::find().unwrap();
    let catalog = &*CATALOG;
    let all = catalog.allocators.iter();
    let usable: Vec<_> = all.filter(|allocator| is_looked_at(allocator)).collect();
    build::build(
        &usable,
        &catalog.allocators,
        2,
        &indicatif::MultiProgress::new(),
    );
    let mut growing = Vec::new();
    for allocator in usable {
        let State::Ready(library) = build::state(allocator, &catalog.allocators) else {
            continue;
        };
        let subject = Subject {
            allocator: allocator.clone(),
            library,
            variant: None,
            refused: None,
        };
        let peak = |incarnations: u32, rounds: u32| {
            let set = [
                format!("larson.incarnations={incarnations}"),
                format!("larson.rounds={rounds}"),
            ];
            let set: Vec<_> = set.iter().map(|text| text.parse().unwrap()).collect();
            let cases = cases(
                &catalog.workloads("larson").unwrap(),
                "quick",
                &[1],
                2,
                &set,
            )
            .unwrap();
            let allocator = subject.allocator.name.clone();
            let cell = Cell {
                allocator,
                seed: 1,
                ..Cell::default()
            };
            let job = Job::new(&cases[0], &cell, 0, 1, false).unwrap();
            let stop = AtomicBool::new(false);
            let attempt = execute::run(&guest, &subject, &job, HUNG_AFTER, &stop, None).unwrap();
            assert_eq!(attempt.outcome, Outcome::Ok, "{}", subject.allocator.name);
            attempt.measurement.unwrap().peak_rss_bytes
        };
        // The same 800,000 pairs by 200 threads (enough to fill quarantines and every arena) or by 8000.
        let few = peak(200, 400);
        // A heap left behind costs at least a page: 30 MiB for 7800 of them. Half of that is more than the few heaps
        // (with segments of 4 MiB) which a busy machine lets live at the same time, but for moments that do not come ten times in turn.
        let most = few + (15 << 20);
        if (0..10).all(|_| peak(8000, 10) > most) {
            growing.push(format!(
                "{}: {few} bytes after 200 threads, more than {most} after 8000",
                allocator.name
            ));
        }
    }
    assert!(growing.is_empty(), "{}", growing.join("\n"));
}
