//! Spreads that are planted, and spreads by hand.

use super::noise::normal;
use crate::spreads;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[test]
fn by_hand() {
    let machines = [
        vec![vec![1.0, 3.0], vec![5.0, 7.0]],
        vec![vec![11.0, 13.0], vec![15.0, 17.0]],
    ];
    // Mean squares 200, 16 and 2.
    let found = spreads(&machines).unwrap();
    let variances =
        [found.machines, found.runs.unwrap(), found.blocks].map(|spread| spread * spread);
    for (variance, expected) in variances.iter().zip([46.0, 7.0, 2.0]) {
        assert!((variance - expected).abs() < 1e-9, "{variances:?}");
    }
}

#[test]
fn planted_spreads_are_found_in_groups_of_unlike_sizes() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let planted = [0.05, 0.02, 0.01];
    let mut draw = |spread: f64| spread * normal(&mut random);
    let machines: Vec<Vec<Vec<f64>>> = (0..2000)
        .map(|machine| {
            let of_machine = draw(planted[0]);
            let runs = 0..1 + machine % 3;
            runs.map(|run| {
                let of_run = of_machine + draw(planted[1]);
                (0..4 + run).map(|_| of_run + draw(planted[2])).collect()
            })
            .collect()
        })
        .collect();
    let found = spreads(&machines).unwrap();
    let found = [found.machines, found.runs.unwrap(), found.blocks];
    for (found, planted) in found.iter().zip(planted) {
        assert!((found / planted - 1.0).abs() < 0.1, "{found} {planted}");
    }
}

#[test]
fn what_cannot_be_told_apart_is_not() {
    let one_run_each = [vec![vec![1.0, 2.0]], vec![vec![4.0, 5.0]]];
    assert_eq!(spreads(&one_run_each).unwrap().runs, None);
    assert_eq!(spreads(&one_run_each[..1]), None);
    assert_eq!(spreads(&[vec![vec![1.0]], vec![vec![2.0]]]), None);
    assert_eq!(spreads(&[vec![vec![1.0, f64::NAN]], vec![vec![2.0]]]), None);
    assert_eq!(
        spreads(&[vec![vec![1.0, 2.0], vec![]], vec![vec![2.0]]]),
        None
    );
}
