//! How much of a command a preloaded allocator reaches: of the anonymous memory of its processes the
//! part that malloc serves, counted by a library in a process of the baseline's check.

use crate::execute::handed::Handed;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Figure: how often the processes call the malloc family.
pub const CALLS: &str = "malloc_calls";
/// Figure: the anonymous memory of processes that have much of it, each at its most.
pub const ANONYMOUS: &str = "anonymous_bytes";
/// Figure: what of that malloc serves, at most.
pub const REACHED: &str = "reached_bytes";
/// Note: objects that take memory past a preloaded allocator.
pub const BEYOND: &str = "beyond";
/// Note: how blocks of two heaps meet: what may end such a program under another allocator.
pub const MIXED: &str = "mixed_heaps";
/// Figure: deletes of C++ that state another size than the block has.
pub const OTHER_SIZES: &str = "deletes_of_other_size";

/// A process that takes less is its loader's, its stacks' and its libraries' variables.
const MUCH_BYTES: i64 = 1 << 20;

/// The numbers of `preloaded/reach.c`, in words of eight bytes.
const PROCESSES: usize = 4096;
const EACH: usize = 8;

/// The file in which the processes of a tree count.
pub struct ReachFile(Handed);

/// What one process counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    began_bytes: i64,
    began_live: i64,
    calls: i64,
    live: i64,
    most_live: i64,
    taken: i64,
    other_sizes: i64,
}

/// What all of them counted.
#[derive(Debug, Default, PartialEq)]
pub struct Reach {
    pub calls: u64,
    /// Of processes with much anonymous memory: that, and what of it malloc serves at most.
    pub anonymous_bytes: u64,
    pub reached_bytes: u64,
    /// Whether more was freed than malloc had given.
    pub frees_of_others: bool,
    pub other_sizes: u64,
}

impl ReachFile {
    pub fn new() -> Result<ReachFile> {
        let handed = Handed::new()?;
        handed
            .file()
            .set_len((8 * EACH * (1 + PROCESSES)) as u64)
            .context("cannot size a file for what is reached")?;
        Ok(ReachFile(handed))
    }

    pub fn variable(&self) -> (String, String) {
        ("HEAPMARK_REACH".into(), self.0.told())
    }

    /// With the most anonymous memory that each process was seen to have. `passes` says that some of
    /// them call libc's malloc directly: then what libc has taken is not all reached.
    pub fn read(&self, anonymous: &BTreeMap<i32, u64>, passes: bool) -> Result<Reach> {
        let words = self.0.words(EACH * (1 + PROCESSES));
        Ok(sum(
            &words.context("reading what is reached")?,
            anonymous,
            passes,
        ))
    }
}

fn sum(words: &[u64], anonymous: &BTreeMap<i32, u64>, passes: bool) -> Reach {
    let mut reach = Reach::default();
    // By process: the last program that it executed.
    let mut last: BTreeMap<i32, Counted> = BTreeMap::new();
    for one in words[EACH..].chunks_exact(EACH) {
        let word = |place: usize| one[place] as i64;
        let pid = word(0);
        if pid == 0 {
            continue;
        }
        let counted = Counted {
            began_bytes: word(1),
            began_live: word(2),
            calls: word(3),
            live: word(4),
            most_live: word(5),
            taken: word(6),
            other_sizes: word(7),
        };
        reach.calls += counted.calls as u64;
        reach.other_sizes += counted.other_sizes as u64;
        reach.frees_of_others |= counted.live < 0;
        last.insert(pid as i32, counted);
    }
    // A tree in a namespace of its own has other numbers: nothing can be said of its memory.
    let is_seen = |(pid, it): (&i32, &Counted)| {
        anonymous.contains_key(pid) || it.most_live - it.began_live < MUCH_BYTES
    };
    if !last.iter().all(is_seen) {
        return reach;
    }
    for (pid, bytes) in anonymous {
        let counted = last.get(pid).copied().unwrap_or_default();
        let grown = *bytes as i64 - counted.began_bytes;
        if grown < MUCH_BYTES {
            continue;
        }
        let live = counted.most_live - counted.began_live;
        let served = if passes {
            live
        } else {
            live.max(counted.taken)
        };
        reach.anonymous_bytes += grown as u64;
        reach.reached_bytes += served.clamp(0, grown) as u64;
    }
    reach
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn words(all: &[[i64; EACH]]) -> Vec<u64> {
        let mut words = vec![0; EACH];
        words.extend(all.iter().flatten().map(|it| *it as u64));
        words.extend([0; EACH]);
        words
    }

    #[test]
    fn what_malloc_serves_is_compared_with_what_a_process_took_since_it_began() {
        let mib = MIB as i64;
        // A shell that became a program, and its child, which only copied its memory.
        let all = words(&[
            [7, 0, 0, 10, 5, 5, 9, 0],
            [7, mib, 0, 100, 0, 3 * mib, 4 * mib, 2],
            [8, 9 * mib, 3 * mib, 1, 3 * mib, 3 * mib, 4 * mib, 0],
        ]);
        let seen = BTreeMap::from([(7, 11 * MIB), (8, 9 * MIB + 1000)]);
        let reach = sum(&all, &seen, false);
        let wanted = Reach {
            calls: 111,
            anonymous_bytes: 10 * MIB,
            reached_bytes: 4 * MIB,
            frees_of_others: false,
            other_sizes: 2,
        };
        assert_eq!(reach, wanted);
        assert_eq!(sum(&all, &seen, true).reached_bytes, 3 * MIB);
        // One that no library could be preloaded into.
        let reach = sum(&all, &[(7, 11 * MIB), (8, 0), (9, 5 * MIB)].into(), false);
        assert_eq!(
            (reach.reached_bytes, reach.anonymous_bytes),
            (4 * MIB, 15 * MIB)
        );
        // Numbers of another namespace.
        let reach = sum(&all, &[(4007, 11 * MIB)].into(), false);
        assert_eq!((reach.calls, reach.anonymous_bytes), (111, 0));
    }

    #[test]
    fn more_bytes_freed_than_given_are_blocks_of_another_heap() {
        let all = words(&[[7, 0, 0, 4, -64, 32, 0, 0]]);
        assert!(sum(&all, &BTreeMap::new(), false).frees_of_others);
    }
}
