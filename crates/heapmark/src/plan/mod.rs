//! Catalog + flags -> ordered, seeded, interleaved cells. Deterministic and pure: the same plan always has the same cells,
//! so a run is taken up again from the plan alone.

mod case;
mod distribution;

pub use case::{Case, Override, cases};

use crate::catalog::Iterations;
use rand::RngExt;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// What is measured, how often and in which order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Starts every random choice.
    pub seed: u64,
    /// How often each allocator runs each case.
    pub blocks: u32,
    /// Name of the allocator that the others are compared with; one of `allocators`.
    pub baseline: String,
    /// What one process should measure on the baseline, where a case is calibrated.
    pub target_ms: u32,
    /// Workloads at thread counts.
    pub cases: Vec<Case>,
    /// Names of the allocators.
    pub allocators: Vec<String>,
}

/// One process to run: holds all that is needed to run it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Unique in a plan: `larson@2/b03/jemalloc`.
    pub id: String,
    /// Index of its case.
    pub case: usize,
    /// Name of its allocator, or of its program's row.
    pub allocator: String,
    /// Block, from 0: pairs the processes that are compared.
    pub block: u32,
    /// Position in its block, from 0.
    pub position: u32,
    /// Random state of the workload: the same for every allocator of a block.
    pub seed: u64,
    /// Bytes of padding in the environment, which move the stack (0 to 4095).
    pub padding: u32,
}

/// Chance of a false alarm that a verdict accepts, over all its comparisons together.
pub const ALPHA: f64 = 0.05;

/// Blocks that a verdict over this many comparisons (cases x allocators) needs: with fewer, not even blocks that all agree
/// could pass the correction for so many.
pub fn blocks_needed(comparisons: usize) -> u32 {
    const LEAST: u32 = 10;
    let needed = 1.0 + (comparisons as f64 / ALPHA).log2();
    LEAST.max(needed.ceil() as u32)
}

/// Fixed environment padding and seed of processes that are not measured.
const UNMEASURED_SEED: u64 = 1;

impl Plan {
    /// All measured cells in the order they run. A block holds every case once, every case holds every allocator once: the
    /// processes that are compared are neighbours in time, and each case is spread over the whole session.
    pub fn cells(&self) -> Vec<Cell> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut cells = Vec::new();
        for block in 0..self.blocks {
            let mut cases: Vec<usize> = (0..self.cases.len()).collect();
            cases.shuffle(&mut random);
            for case in cases {
                let seed = random.random();
                let mut allocators: Vec<String> = self.cases[case].entrants(&self.allocators).cloned().collect();
                allocators.shuffle(&mut random);
                for (position, allocator) in allocators.into_iter().enumerate() {
                    cells.push(Cell {
                        id: format!("{}/b{block:02}/{allocator}", self.cases[case].label()),
                        case,
                        allocator,
                        block,
                        position: position as u32,
                        seed,
                        padding: random.random_range(0..4096),
                    });
                }
            }
        }
        cells
    }

    /// One checked process for every case and allocator: blocks held against each other, nothing timed.
    pub fn checks(&self) -> Vec<Cell> {
        let pairs = self.cases.iter().enumerate();
        let pairs = pairs.flat_map(|(place, case)| case.entrants(&self.allocators).map(move |name| (place, name)));
        pairs.map(|(case, name)| self.unmeasured(case, name, &format!("check/{name}"))).collect()
    }

    /// The process on the baseline that finds out how long this case takes.
    pub fn calibration(&self, case: usize) -> Cell {
        self.unmeasured(case, self.cases[case].baseline(&self.baseline), "calibration")
    }

    fn unmeasured(&self, case: usize, allocator: &str, kind: &str) -> Cell {
        Cell {
            id: format!("{}/{kind}", self.cases[case].label()),
            case,
            allocator: allocator.to_string(),
            block: 0,
            position: 0,
            seed: UNMEASURED_SEED,
            padding: 0,
        }
    }

    /// Measured iterations of one process, once the calibration has shown how long one takes on the baseline.
    pub fn iterations(&self, case: usize, one_iteration_ns: u64) -> u32 {
        match self.cases[case].iterations {
            Iterations::Fixed(count) => count,
            Iterations::Calibrated(_) => {
                let target_ns = u64::from(self.target_ms) * 1_000_000;
                let count = (target_ns + one_iteration_ns / 2) / one_iteration_ns.max(1);
                count.clamp(1, 10_000) as u32
            }
        }
    }

    /// Seconds the processes take if every allocator is as fast as the baseline, start-up included; and how many processes
    /// are not in it, because nobody knows how long their fixed work takes before the first one has run.
    pub fn estimate(&self) -> (f64, usize) {
        const START_S: f64 = 0.05;
        let process = |case: &Case| match case.iterations {
            Iterations::Calibrated(_) => Some(f64::from(self.target_ms) / 1e3 * 1.3 + START_S),
            Iterations::Fixed(count) => case.seconds().map(|seconds| seconds * f64::from(count) + START_S),
        };
        let (mut seconds, mut unknown) = (0.0, 0);
        for case in &self.cases {
            let processes = case.entrants(&self.allocators).count() * (self.blocks as usize + 1);
            match process(case) {
                Some(each) => seconds += each * processes as f64,
                None => unknown += processes,
            }
        }
        (seconds, unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn plan(seed: u64) -> Plan {
        let catalog = Catalog::load().unwrap();
        let workloads = [catalog.workloads("churn").unwrap(), catalog.workloads("larson").unwrap()].concat();
        Plan {
            seed,
            blocks: 4,
            baseline: "glibc".into(),
            target_ms: 250,
            cases: cases(&workloads, "quick", &[1, 2], 2, &[]).unwrap(),
            allocators: ["glibc", "jemalloc", "null"].map(String::from).to_vec(),
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
            assert!(
                group
                    .iter()
                    .all(|cell| (cell.case, cell.block, cell.seed) == (group[0].case, group[0].block, group[0].seed))
            );
        }
    }

    #[test]
    fn allocators_do_not_keep_their_places() {
        let cells = plan(7).cells();
        let places: std::collections::BTreeSet<_> =
            cells.iter().filter(|cell| cell.allocator == "glibc").map(|cell| cell.position).collect();
        assert_eq!(places.len(), 3);
    }

    #[test]
    fn calibration_fills_the_target_and_never_gives_zero() {
        let plan = plan(7);
        assert_eq!(plan.iterations(0, 50_000_000), 5);
        assert_eq!(plan.iterations(0, 60_000_000_000), 1);
        assert_eq!(plan.iterations(0, 0), 10_000);
    }
}
