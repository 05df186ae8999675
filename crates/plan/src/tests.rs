//! Plans: the cells and their order.

use super::plan::MOST_IN_A_PART;
use super::*;
use heapmark_catalog::Catalog;

fn plan(seed: u64) -> Plan {
    let catalog = Catalog::load().unwrap();
    let workloads = [
        catalog.workloads("churn").unwrap(),
        catalog.workloads("larson").unwrap(),
    ]
    .concat();
    Plan {
        seed,
        blocks: 4,
        baseline: "glibc".into(),
        target_ms: 250,
        mode: Mode::Time,
        cases: cases(&workloads, "quick", &[1, 2], 2, &[]).unwrap(),
        allocators: ["glibc", "jemalloc"].map(String::from).to_vec(),
        floor: Some("null".into()),
        floors_elsewhere: Vec::new(),
        ..Plan::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_cells_and_another_seed_others() {
    assert_eq!(plan(7).cells(), plan(7).cells());
    assert_ne!(plan(7).cells(), plan(8).cells());
}

#[test]
fn every_block_holds_every_case_and_allocator_once_with_one_seed_per_case() {
    let cells = plan(7).cells();
    assert_eq!(cells.len(), 4 * 4 * 3);
    let ids: std::collections::BTreeSet<_> = cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(ids.len(), cells.len());
    for group in cells.chunks(3) {
        assert!(group.iter().all(|cell| (cell.case, cell.block, cell.seed)
            == (group[0].case, group[0].block, group[0].seed)));
    }
}

#[test]
fn allocators_do_not_keep_their_places() {
    let cells = plan(7).cells();
    let places: std::collections::BTreeSet<_> = cells
        .iter()
        .filter(|cell| cell.allocator == "glibc")
        .map(|cell| cell.position)
        .collect();
    assert_eq!(places.len(), 3);
}

#[test]
fn many_allocators_share_blocks_in_parts_that_each_repeat_the_baseline() {
    let names = || {
        ["glibc"]
            .into_iter()
            .map(String::from)
            .chain((0..12).map(|n| format!("a{n}")))
    };
    let plan = Plan {
        allocators: names().collect(),
        aa_copy: Some("glibc-copy".into()),
        ..plan(7)
    };
    let parts = plan.block(3);
    assert_eq!(
        parts.len(),
        4 * 3,
        "14 others besides the baseline make three parts of a case"
    );
    for case in 0..4 {
        let of_case: Vec<&Part> = parts.iter().filter(|part| part[0].case == case).collect();
        assert!(of_case.iter().all(|part| part.len() <= MOST_IN_A_PART));
        assert!(
            of_case
                .iter()
                .all(|part| part.iter().filter(|cell| cell.allocator == "glibc").count() == 1)
        );
        let mut others: Vec<&str> = of_case
            .iter()
            .flat_map(|part| part.iter())
            .map(|cell| cell.allocator.as_str())
            .collect();
        others.retain(|name| *name != "glibc");
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), 14);
    }
    assert_eq!(parts, plan.block(3), "a block depends on no other one");
    let again = plan.again(&plan.again(&parts[0]));
    assert!(
        again
            .iter()
            .all(|cell| cell.id.contains("~2/") && !cell.id.contains("~1")),
        "{}",
        again[0].id
    );
}

#[test]
fn an_aged_row_runs_beside_the_same_row_with_a_fresh_heap() {
    let fresh = plan(7);
    let with_aged = |case: &Case| [case.clone(), case.under(Factor::Age(50))];
    let plan = Plan {
        cases: fresh.cases.iter().flat_map(with_aged).collect(),
        allocators: (0..9)
            .map(|n| format!("a{n}"))
            .chain(["glibc".into()])
            .collect(),
        ..fresh
    };
    let cells = plan.cells();
    let ids: std::collections::BTreeSet<_> = cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(ids.len(), cells.len());
    let name = |cell: &Cell| (plan.plain(cell.case), cell.part, cell.allocator.clone());
    for block in 0..plan.blocks {
        for part in plan.block(block) {
            let compared: Vec<&Cell> = part
                .iter()
                .filter(|cell| cell.allocator != "null")
                .collect();
            for pair in compared.chunks(2) {
                assert_eq!(name(pair[0]), name(pair[1]));
                assert_ne!(pair[0].case, pair[1].case);
                assert_eq!(pair[0].seed, pair[1].seed);
            }
            let null = part.iter().find(|cell| cell.allocator == "null");
            assert!(null.is_none_or(|null| plan.cases[null.case].factor.is_none()));
        }
    }
    let aged_first = cells.iter().filter(|cell| cell.position == 0);
    let aged_first = aged_first.filter(|cell| plan.cases[cell.case].factor.is_some());
    assert!((1..cells.len()).contains(&aged_first.count()));
}

#[test]
fn calibration_fills_the_target_and_never_gives_zero() {
    let plan = plan(7);
    assert_eq!(plan.iterations(0, 50_000_000), 5);
    assert_eq!(plan.iterations(0, 60_000_000_000), 1);
    assert_eq!(plan.iterations(0, 0), 10_000);
}
