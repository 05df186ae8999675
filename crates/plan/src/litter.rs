//! What ages a heap: blocks that are allocated, replaced and partly freed before a workload begins.

use super::distribution::FLEET;

/// The least bytes of litter, however little a workload itself has live.
const LEAST_BYTES: u64 = 32 << 20;
/// The most bytes of litter.
const MOST_BYTES: u64 = 1 << 30;
/// A size is left out if a block of it would take more than this fraction of the litter.
const LARGEST_PART: u64 = 16;
/// The sum of the weights of all sizes.
const SCALE: f64 = 1e9;

/// Figures of a process whose heap was aged: requested bytes of the litter that stays, by how much the litter has made the
/// process grow, and, for a command, how long it takes to give the litter back at the end.
pub const LITTER: [&str; 3] = [
    "litter_live_bytes",
    "litter_resident_bytes",
    "litter_give_back_ns",
];

/// Figure of a process whose heap was aged: 1 if the litter does not have the workload's own sizes.
pub const OTHER_SIZES: &str = "litter_other_sizes";

/// The litter of one process.
#[derive(Clone, Debug)]
pub struct Litter {
    /// How many of 100 blocks stay.
    pub stay: u8,
    /// Requested bytes before any are freed; 0 leaves the heap fresh.
    pub bytes: u64,
    /// The sizes of blocks and how often each is drawn: `SIZE:WEIGHT,SIZE:WEIGHT`.
    pub sizes: String,
    /// Whether several threads of the workload allocate.
    pub by_threads: bool,
    /// For a command: the program whose processes are aged, by device, inode and path.
    pub program: String,
}

impl Litter {
    /// Returns no litter, so that the heap stays fresh.
    pub fn none() -> Litter {
        Litter {
            stay: 100,
            bytes: 0,
            sizes: FLEET.to_owned(),
            by_threads: false,
            program: String::new(),
        }
    }

    /// Returns as much litter as a workload has live at most, in the sizes that the workload requests (`SIZE:COUNT,…`); in the sizes of
    /// servers if none of these can be used.
    pub fn of(stay: u8, most_live_bytes: u64, requests: &str, by_threads: bool) -> Litter {
        let bytes = most_live_bytes.clamp(LEAST_BYTES, MOST_BYTES);
        let sizes = weights(requests, bytes / LARGEST_PART);
        Litter {
            stay,
            bytes,
            sizes: sizes.unwrap_or_else(|| FLEET.to_owned()),
            by_threads,
            program: String::new(),
        }
    }

    /// Returns whether a heap is aged by other sizes than the workload's own.
    pub fn has_other_sizes(&self) -> bool {
        self.bytes > 0 && self.sizes == FLEET
    }
}

fn weights(requests: &str, largest: u64) -> Option<String> {
    let read = |class: &str| {
        let (size, count) = class.split_once(':')?;
        Some((size.parse::<u64>().ok()?, count.parse::<u64>().ok()?))
    };
    let classes: Vec<(u64, u64)> = requests
        .split(',')
        .filter_map(read)
        .filter(|(size, _)| (1..=largest).contains(size))
        .collect();
    let all: u64 = classes.iter().map(|(_, count)| count).sum();
    let weight = |count: u64| (count as f64 / all as f64 * SCALE).round() as u64;
    let weights: Vec<String> = classes
        .iter()
        .map(|(size, count)| (size, weight(*count)))
        .filter(|(_, weight)| *weight > 0)
        .map(|(size, weight)| format!("{size}:{weight}"))
        .collect();
    (!weights.is_empty()).then(|| weights.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_is_what_was_live_within_bounds() {
        let bytes = |most_live| Litter::of(50, most_live, "16:1", false).bytes;
        assert_eq!(
            [bytes(0), bytes(40 << 20), bytes(1 << 40)],
            [32 << 20, 40 << 20, 1 << 30]
        );
    }

    #[test]
    fn sizes_are_drawn_as_often_as_they_were_requested() {
        let sizes = |requests| Litter::of(50, 0, requests, false).sizes;
        assert_eq!(sizes("16:3,48:1"), "16:750000000,48:250000000");
        assert_eq!(
            sizes("0:5,16:3,4194304:1"),
            "16:1000000000",
            "no block is empty, and none is most of the litter"
        );
        assert_eq!(sizes("16:1,32:3000000000"), "32:1000000000");
        assert!(!Litter::of(50, 0, "16:1", false).has_other_sizes());
        for nothing in ["", "0:7", "x:y", "4194304:1"] {
            assert!(Litter::of(50, 0, nothing, false).has_other_sizes());
        }
        assert!(!Litter::none().has_other_sizes(), "a fresh heap");
    }
}
