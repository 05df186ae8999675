//! Variables of a caller's environment that configure allocators. If a program runs in its user's
//! own environment, they would make the rows' allocators different from their names, so they are
//! removed. The names are the allocators' own (`reads` in `allocators/*.toml`).

use super::knob::signs;
use super::malloc_api;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// The dynamic linker's variables that load libraries into each process, beside an allocator or in
/// place of it, or slow down calls.
const LINKER: [&str; 3] = ["LD_PRELOAD", "LD_AUDIT", "LD_PROFILE"];
/// The variable that holds the settings of several components of glibc, `NAME=VALUE:NAME=VALUE`:
/// only an allocator's settings are removed.
const TUNABLES: &str = "GLIBC_TUNABLES";

/// The patterns of such variables: names, `PREFIX_*`, or `GLIBC_TUNABLES:PREFIX.*`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Settings(BTreeSet<String>);

impl Settings {
    /// Returns the variables that any of these allocators reads: a variable that one allocator
    /// reads may be read by another, too.
    pub fn of(allocators: &[super::Allocator]) -> Settings {
        let read = allocators
            .iter()
            .flat_map(|allocator| allocator.reads.iter().cloned());
        Settings(read.chain(LINKER.map(String::from)).collect())
    }

    /// Divides an environment into what stays and what is removed.
    pub fn split(
        &self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> (Vec<(OsString, OsString)>, BTreeMap<String, String>) {
        let mut stays = Vec::new();
        let mut taken = BTreeMap::new();
        for (name, value) in environment {
            let text = value.to_string_lossy();
            match name.to_str() {
                Some(TUNABLES) => {
                    let is_taken = |one: &&str| {
                        let setting = one.split('=').next().unwrap_or(one);
                        self.has(&format!("{TUNABLES}:{setting}"))
                    };
                    let (out, rest): (Vec<&str>, Vec<&str>) = text.split(':').partition(is_taken);
                    if !out.is_empty() {
                        taken.insert(TUNABLES.to_owned(), out.join(":"));
                        if !rest.is_empty() {
                            stays.push((name, rest.join(":").into()));
                        }
                        continue;
                    }
                }
                Some(known) if self.has(known) && !text.is_empty() => {
                    taken.insert(known.to_owned(), text.into_owned());
                    continue;
                }
                _ => {}
            }
            stays.push((name, value));
        }
        (stays, taken)
    }

    fn has(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|pattern| malloc_api::matches(pattern, name))
    }
}

/// Merges two values of a variable: both count if the variable is a list of settings, else only the second.
pub fn joined(name: &str, first: &str, second: &str) -> String {
    match signs(name) {
        Some((_, and)) => format!("{first}{and}{second}"),
        None => second.to_owned(),
    }
}

/// Returns the removed variables, in words: their names, and for a list of settings also which of them.
pub fn named(taken: &BTreeMap<String, String>) -> Vec<String> {
    let words = |(name, value): (&String, &String)| {
        if name == TUNABLES {
            format!("{name} ({value})")
        } else {
            name.clone()
        }
    };
    taken.iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocators::load_with;

    fn split(variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let settings = Settings::of(&load_with(None).unwrap());
        let environment = variables
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let (stays, taken) = settings.split(environment);
        let stays = stays
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()));
        (
            stays.collect(),
            taken
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        )
    }

    #[test]
    fn what_configures_an_allocator_is_taken_out_and_nothing_else() {
        let others = [
            ("PATH", "/bin"),
            ("MALLOCATOR", "x"),
            ("LD_LIBRARY_PATH", "/x"),
            ("PYTHONMALLOC", "malloc"),
        ];
        let (stays, taken) = split(&others);
        assert_eq!((stays.len(), taken.len()), (others.len(), 0), "{taken:?}");
        for name in [
            "MALLOC_CONF",
            "MALLOC_ARENA_MAX",
            "MALLOC_PERTURB_",
            "MIMALLOC_PURGE_DELAY",
            "mimalloc_verbose",
            "TCMALLOC_RELEASE_RATE",
            "SNMALLOC_X",
            "SCUDO_OPTIONS",
            "TBB_MALLOC_USE_HUGE_PAGES",
            "LD_AUDIT",
            "LD_PROFILE",
            "LD_PRELOAD",
        ] {
            assert_eq!(
                split(&[(name, "1")]),
                (Vec::new(), vec![format!("{name}=1")])
            );
        }
    }

    #[test]
    fn of_glibcs_tunables_only_those_of_allocators_are_taken_out() {
        let (stays, taken) = split(&[(
            TUNABLES,
            "glibc.malloc.tcache_count=0:glibc.cpu.hwcaps=x:glibc.pthread.rseq=0",
        )]);
        assert_eq!(stays, ["GLIBC_TUNABLES=glibc.cpu.hwcaps=x"]);
        assert_eq!(
            taken,
            ["GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.pthread.rseq=0"]
        );
        assert_eq!(
            split(&[(TUNABLES, "glibc.malloc.hugetlb=1")]).0,
            Vec::<String>::new()
        );
        assert_eq!(
            split(&[(TUNABLES, "glibc.cpu.hwcaps=x")]).1,
            Vec::<String>::new()
        );
        assert_eq!(joined(TUNABLES, "a=1", "b=2"), "a=1:b=2");
        assert_eq!(joined("_RJEM_MALLOC_CONF", "a:1", "b:2"), "a:1,b:2");
        assert_eq!(joined("SCUDO_OPTIONS", "a=1", "b=2"), "a=1:b=2");
        assert_eq!(joined("MIMALLOC_PURGE_DELAY", "1", "2"), "2");
    }
}
