//! How much of a command a preloaded allocator reaches: the part of its processes' anonymous memory that malloc serves,
//! counted by a library in a process of the baseline's check.

use crate::execute::handed::Handed;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Figure: how often the processes call the malloc family.
pub const CALLS: &str = "malloc_calls";
/// Figure: the anonymous memory of all processes that have much of it, each at its highest.
pub const ANONYMOUS: &str = "anonymous_bytes";
/// Figure: the part of that anonymous memory that malloc serves, at most.
pub const REACHED: &str = "reached_bytes";
/// Note: objects whose allocations bypass a preloaded allocator.
pub const BEYOND: &str = "beyond";
/// Note: objects through which blocks of two heaps get mixed, which may end the program under another allocator.
pub const MIXED: &str = "mixed_heaps";
/// Figure: calls of C++'s `delete` that state a size other than the block's.
pub const OTHER_SIZES: &str = "deletes_of_other_size";

/// Figure: malloc's live bytes at the end of the process that holds the most then; for a server, those of all its
/// processes when its client has ended.
pub const END_LIVE: &str = "malloc_live_at_end_bytes";
/// Note: the process whose live bytes at its end are reported, if there are several.
pub const END_OF: &str = "live_at_end_of";
/// Note: what is not known about live bytes at the end.
pub const END_UNKNOWN: &str = "end_unknown";

/// The number of bytes below which a process has only its loader, its stacks and its libraries' variables.
const MUCH_BYTES: i64 = 1 << 20;

/// Constants of `preloaded/reach.c`, in words of eight bytes.
const PROCESSES: usize = 4096;
const EACH: usize = 10;

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
    /// What was resident at the end; zero if the process did not end by itself.
    end_resident: i64,
    end_live: i64,
}

/// What all processes counted.
#[derive(Debug, Default, PartialEq)]
pub struct Reach {
    pub calls: u64,
    /// The anonymous memory of processes that have much of it, and the part of it that malloc serves at most.
    pub anonymous_bytes: u64,
    pub reached_bytes: u64,
    /// Whether more was freed than malloc had given.
    pub frees_of_others: bool,
    pub other_sizes: u64,
    /// The number of processes that counted.
    pub processes: usize,
    /// The process that held the most when it ended by itself, and what was live in it then.
    pub end: Option<(i32, u64)>,
    /// A process that had more memory than the one in `end`, and did not end by itself.
    pub untold_end: Option<i32>,
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

    /// Returns the live bytes of these processes now; `None` if none of them counts.
    pub fn live_bytes(&self, tree: &[i32]) -> Result<Option<u64>> {
        let words = self.0.words(EACH * (1 + PROCESSES));
        let words = words.context("reading what is live")?;
        let mut last = last_programs(&words);
        last.retain(|pid, _| tree.contains(pid));
        let live = last.values().map(|program| program.live.max(0) as u64);
        Ok((!last.is_empty()).then(|| live.sum()))
    }

    /// Reads what was counted. `anonymous` is the most anonymous memory that each process was seen to have. `passes`
    /// is set if some processes call libc's malloc directly, so that not all memory that libc has taken is reached.
    pub fn read(&self, anonymous: &BTreeMap<i32, u64>, passes: bool) -> Result<Reach> {
        let words = self.0.words(EACH * (1 + PROCESSES));
        Ok(sum(
            &words.context("reading what is reached")?,
            anonymous,
            passes,
        ))
    }
}

/// Returns each program that a process became, with the process's number.
fn counted(words: &[u64]) -> impl Iterator<Item = (i32, Counted)> {
    words[EACH..].chunks_exact(EACH).filter_map(|one| {
        let word = |place: usize| one[place] as i64;
        let counted = Counted {
            began_bytes: word(1),
            began_live: word(2),
            calls: word(3),
            live: word(4),
            most_live: word(5),
            taken: word(6),
            other_sizes: word(7),
            end_resident: word(8),
            end_live: word(9),
        };
        Some((word(0) as i32, counted)).filter(|(pid, _)| *pid != 0)
    })
}

/// Returns the last program that each process became.
fn last_programs(words: &[u64]) -> BTreeMap<i32, Counted> {
    counted(words).collect()
}

fn sum(words: &[u64], anonymous: &BTreeMap<i32, u64>, passes: bool) -> Reach {
    let mut reach = Reach::default();
    for (_, one) in counted(words) {
        reach.calls += one.calls as u64;
        reach.other_sizes += one.other_sizes as u64;
        reach.frees_of_others |= one.live < 0;
    }
    let last = last_programs(words);
    let ended = last.iter().filter(|(_, program)| program.end_resident > 0);
    let end = ended.max_by_key(|(_, program)| program.end_resident);
    reach.processes = last.len();
    reach.end = end.map(|(pid, program)| (*pid, program.end_live.max(0) as u64));
    // A tree in a namespace of its own has other process numbers, so its memory is unknown.
    let is_seen = |(pid, program): (&i32, &Counted)| {
        anonymous.contains_key(pid) || program.most_live - program.began_live < MUCH_BYTES
    };
    if !last.iter().all(is_seen) {
        return reach;
    }
    let has_told = |pid: &i32| {
        last.get(pid)
            .is_some_and(|program| program.end_resident > 0)
    };
    let most_told = reach.end.and_then(|(pid, _)| anonymous.get(&pid).copied());
    let more = most_told.unwrap_or(0).max(MUCH_BYTES as u64);
    let untold = anonymous
        .iter()
        .filter(|(pid, bytes)| !has_told(pid) && **bytes > more);
    reach.untold_end = untold.max_by_key(|(_, bytes)| **bytes).map(|(pid, _)| *pid);
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

    /// The words, with zeros for what is left out at the end.
    fn words(all: &[&[i64]]) -> Vec<u64> {
        let mut words = vec![0; EACH];
        for one in all {
            let rest = vec![0; EACH - one.len()];
            words.extend(one.iter().chain(&rest).map(|word| *word as u64));
        }
        words.extend([0; EACH]);
        words
    }

    #[test]
    fn what_malloc_serves_is_compared_with_what_a_process_took_since_it_began() {
        let mib = MIB as i64;
        // A shell that became a program, and its child, which only copied its memory.
        let all = words(&[
            &[7, 0, 0, 10, 5, 5, 9],
            &[7, mib, 0, 100, 0, 3 * mib, 4 * mib, 2],
            &[8, 9 * mib, 3 * mib, 1, 3 * mib, 3 * mib, 4 * mib],
        ]);
        let seen = BTreeMap::from([(7, 11 * MIB), (8, 9 * MIB + 1000)]);
        let reach = sum(&all, &seen, false);
        let wanted = Reach {
            calls: 111,
            anonymous_bytes: 10 * MIB,
            reached_bytes: 4 * MIB,
            frees_of_others: false,
            other_sizes: 2,
            processes: 2,
            end: None,
            untold_end: Some(7),
        };
        assert_eq!(reach, wanted);
        assert_eq!(sum(&all, &seen, true).reached_bytes, 3 * MIB);
        // Beside a process into which no library could be preloaded.
        let reach = sum(&all, &[(7, 11 * MIB), (8, 0), (9, 5 * MIB)].into(), false);
        assert_eq!(
            (reach.reached_bytes, reach.anonymous_bytes),
            (4 * MIB, 15 * MIB)
        );
        // Process numbers of another namespace.
        let reach = sum(&all, &[(4007, 11 * MIB)].into(), false);
        assert_eq!((reach.calls, reach.anonymous_bytes), (111, 0));
    }

    #[test]
    fn more_bytes_freed_than_given_are_blocks_of_another_heap() {
        let all = words(&[&[7, 0, 0, 4, -64, 32]]);
        assert!(sum(&all, &BTreeMap::new(), false).frees_of_others);
    }

    #[test]
    fn the_end_of_the_process_that_holds_the_most_counts_and_a_larger_one_without_an_end_is_named()
    {
        let mib = MIB as i64;
        let ended = |pid, resident, live| [pid, 0, 0, 9, 5, 5, 9, 0, resident, live];
        let (small, large) = (ended(7, mib, 1), ended(8, 30 * mib, 2));
        // The process became another program, which was killed.
        let all = words(&[&small, &large, &ended(9, 90 * mib, 3), &[9, 0, 0, 1]]);
        let of = |seen: &[(i32, u64)]| sum(&all, &seen.iter().copied().collect(), false);
        let reach = of(&[(7, MIB), (8, 20 * MIB), (9, 19 * MIB)]);
        assert_eq!(
            (reach.processes, reach.end, reach.untold_end),
            (3, Some((8, 2)), None)
        );
        assert_eq!(of(&[(8, 20 * MIB), (9, 21 * MIB)]).untold_end, Some(9));
        // A process number of another namespace.
        assert_eq!(of(&[(4009, 99 * MIB)]).untold_end, Some(4009));
    }
}
