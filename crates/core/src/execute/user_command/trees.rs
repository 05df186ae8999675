//! Which programs a command executes, and how many of its processes end by themselves. Under every allocator both must be as
//! under the baseline: a compiler that exits with 0 but has started no assembler has done nothing, and a shell exits with 0
//! although a program of its pipeline has crashed. What varies between processes of the baseline is not compared.

use super::malloc_probe::Witnessed;
use std::collections::{BTreeMap, BTreeSet};

/// The most differences that are listed.
const TOLD: usize = 3;

/// What the baseline's processes had in common so far.
#[derive(Default)]
pub struct Trees {
    first: Option<Programs>,
    /// Programs whose count varied.
    unsteady: BTreeSet<String>,
    /// Whether some programs were executed in one process and not in another: then new names are
    /// allowed.
    names_change: bool,
    total_changes: bool,
    /// All numbers of processes that ended by themselves.
    ended: BTreeSet<usize>,
}

/// How often each program was executed in a tree.
pub type Programs = BTreeMap<String, usize>;

/// Counts the executions of each program.
pub fn programs(witnessed: &[Witnessed]) -> Programs {
    let mut programs = Programs::new();
    witnessed
        .iter()
        .for_each(|process| *programs.entry(process.program.clone()).or_default() += 1);
    programs
}

impl Trees {
    /// Adds the programs of one more process of the baseline, and how many of its tree ended by themselves.
    pub fn add(&mut self, programs: Programs, ended: usize) {
        self.ended.insert(ended);
        let Some(first) = &self.first else {
            self.first = Some(programs);
            return;
        };
        let names: BTreeSet<&String> = first.keys().chain(programs.keys()).collect();
        for name in names {
            let before = of(first, name);
            let now = of(&programs, name);
            if before != now {
                self.names_change |= before == 0 || now == 0;
                self.unsteady.insert(name.clone());
            }
        }
        self.total_changes |= total(first) != total(&programs);
    }

    /// Returns what is wrong with the ends of another tree, in words, if fewer of its processes ended by themselves than in
    /// each tree of the `baseline`.
    pub fn fewer_ended(&self, ended: usize, baseline: &str) -> Option<String> {
        let wanted = self.ended.first().filter(|_| self.ended.len() == 1)?;
        (ended < *wanted).then(|| {
            format!(
                "{wanted} of its processes ended by themselves under {baseline} each time, {ended} here: the others \
                 crashed or left by _exit"
            )
        })
    }

    /// Returns what another tree lacks or has in excess, in words; `None` if the tree may be the same.
    pub fn difference(&self, programs: &Programs) -> Option<String> {
        let first = self.first.as_ref()?;
        let steady = first.keys().filter(|name| !self.unsteady.contains(*name));
        let new = programs
            .keys()
            .filter(|name| !self.names_change && !first.contains_key(*name));
        let differing = steady.chain(new).filter_map(|name| {
            let times = of(programs, name);
            let wanted = of(first, name);
            (times != wanted).then(|| format!("{name} {times}x, not {wanted}x"))
        });
        let mut words: Vec<String> = differing.collect();
        if words.len() > TOLD {
            let more = words.split_off(TOLD).len();
            words.push(format!("{more} more"));
        }
        let ours = total(programs);
        let wanted = total(first);
        if words.is_empty() && !self.total_changes && ours != wanted {
            words.push(format!("{ours} programs in all, not {wanted}"));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

/// Returns how often a program was executed.
fn of(programs: &Programs, name: &str) -> usize {
    programs.get(name).copied().unwrap_or(0)
}

fn total(programs: &Programs) -> usize {
    programs.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(words: &str) -> Programs {
        let mut programs = Programs::new();
        words
            .split_whitespace()
            .for_each(|word| *programs.entry(word.to_owned()).or_default() += 1);
        programs
    }

    fn difference(baseline: &[&str], other: &str) -> Option<String> {
        let mut trees = Trees::default();
        baseline.iter().for_each(|words| trees.add(tree(words), 0));
        trees.difference(&tree(other))
    }

    #[test]
    fn programs_that_are_missing_or_too_many_are_named() {
        let difference_of = |other: &str| difference(&["gcc cc1 as", "gcc cc1 as"], other);
        assert_eq!(difference_of("as cc1 gcc"), None);
        assert_eq!(
            difference_of("gcc").unwrap(),
            "as 0x, not 1x, cc1 0x, not 1x"
        );
        assert_eq!(difference_of("gcc cc1 as as").unwrap(), "as 2x, not 1x");
        assert_eq!(difference_of("gcc cc1 as sh").unwrap(), "sh 1x, not 0x");
        assert!(
            difference_of("a b")
                .unwrap()
                .ends_with("gcc 0x, not 1x, 2 more"),
            "{:?}",
            difference_of("a b")
        );
    }

    #[test]
    fn what_is_not_the_same_each_time_under_the_baseline_is_no_fault_of_a_candidate() {
        // This program waits for an event by polling.
        assert_eq!(
            difference(&["sh sleep", "sh sleep sleep"], "sh sleep sleep sleep"),
            None
        );
        assert!(
            difference(&["sh sleep", "sh sleep sleep"], "sleep").is_some(),
            "sh was always there"
        );
        // This one executes files that it has just made, with generated names: the same number each
        // time.
        let made_up = ["sh /tmp/a1 /tmp/a2", "sh /tmp/b1 /tmp/b2"];
        assert_eq!(difference(&made_up, "sh /tmp/c1 /tmp/c2"), None);
        assert_eq!(
            difference(&made_up, "sh /tmp/c1").unwrap(),
            "2 programs in all, not 3"
        );
    }

    #[test]
    fn fewer_ends_count_only_against_a_number_that_is_the_same_each_time() {
        let told = |baseline: &[usize], ended| {
            let mut trees = Trees::default();
            baseline
                .iter()
                .for_each(|ended| trees.add(tree("sh"), *ended));
            trees.fewer_ended(ended, "glibc")
        };
        assert_eq!(
            told(&[3, 3], 1).unwrap(),
            "3 of its processes ended by themselves under glibc each time, 1 here: the others crashed or left by _exit"
        );
        for (baseline, ended) in [
            (&[3, 3][..], 3),
            (&[3], 4),
            (&[3, 2], 1),
            (&[0], 0),
            (&[], 0),
        ] {
            assert_eq!(told(baseline, ended), None, "{baseline:?}");
        }
    }
}
