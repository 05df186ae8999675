//! glibc's `GLIBC_TUNABLES`, `name=value:name=value`, and its older variables `MALLOC_*`, as the
//! dynamic linker of 2.36 reads them, with the changes of later versions. glibc before 2.39 does
//! not report what it drops.

use super::number::leading;
use super::{Judged, Setting};

/// A setting of malloc.
pub struct Tunable {
    /// The tunable's name without `glibc.malloc.`.
    pub name: &'static str,
    /// The older variable for the tunable; empty if there is none.
    pub variable: &'static str,
    /// The least and the greatest value that the dynamic linker takes.
    pub bounds: (u64, u64),
    /// The greatest value that malloc itself takes.
    pub most_of_malloc: u64,
}

const fn tunable(name: &'static str, variable: &'static str, bounds: (u64, u64)) -> Tunable {
    Tunable {
        name,
        variable,
        bounds,
        most_of_malloc: u64::MAX,
    }
}

const ANY: (u64, u64) = (0, u64::MAX);
const ONE_AND_MORE: (u64, u64) = (1, u64::MAX);

/// The tunables of malloc.
pub const TUNABLES: [Tunable; 13] = [
    tunable("arena_max", "MALLOC_ARENA_MAX", ONE_AND_MORE),
    tunable("arena_test", "MALLOC_ARENA_TEST", ONE_AND_MORE),
    tunable("check", "MALLOC_CHECK_", (0, 3)),
    tunable("hugetlb", "", ANY),
    tunable("mmap_max", "MALLOC_MMAP_MAX_", (0, i32::MAX as u64)),
    Tunable {
        // Half of an arena's heap.
        most_of_malloc: 32 << 20,
        ..tunable("mmap_threshold", "MALLOC_MMAP_THRESHOLD_", ANY)
    },
    Tunable {
        // 80 * sizeof(size_t) / 4.
        most_of_malloc: 160,
        ..tunable("mxfast", "", ANY)
    },
    tunable("perturb", "MALLOC_PERTURB_", (0, 255)),
    Tunable {
        most_of_malloc: 65535,
        ..tunable("tcache_count", "", ANY)
    },
    Tunable {
        // The largest of 64 classes of small blocks.
        most_of_malloc: 1032,
        ..tunable("tcache_max", "", ANY)
    },
    tunable("tcache_unsorted_limit", "", ANY),
    tunable("top_pad", "MALLOC_TOP_PAD_", ANY),
    tunable("trim_threshold", "MALLOC_TRIM_THRESHOLD_", ANY),
];

/// The prefix of the names of malloc's tunables.
pub const PREFIX: &str = "glibc.malloc.";
/// From this version on, one fault makes the dynamic linker drop the whole variable and report it.
const STRICT: (u32, u32, u32) = (2, 39, 0);
/// From this version on, `MALLOC_CHECK_` works only with a separate library.
const CHECK_APART: (u32, u32, u32) = (2, 34, 0);
/// From this version on, threads may also cache large blocks.
const CACHES_LARGE: (u32, u32, u32) = (2, 42, 0);

/// Judges each setting of malloc in `GLIBC_TUNABLES`; other components' settings are left out.
pub fn tunables(text: &str, version: Option<(u32, u32, u32)>) -> Vec<Setting> {
    let is_strict = version.is_none_or(|version| version >= STRICT);
    let has_fault = |one: &str| !one.is_empty() && one.split('=').count() != 2;
    if is_strict && text.split(':').any(has_fault) {
        let why =
            "a part of it is not name=value, and glibc from 2.39 on drops the whole variable then";
        let judged = match version {
            Some(_) => Judged::Refused(why.into()),
            None => Judged::NotKnown(why.into()),
        };
        return vec![Setting::new("", text, judged)];
    }
    let judge = |one: &str| {
        let Some((name, value)) = one.split_once('=') else {
            let why = "it is not name=value; glibc drops it without a word";
            return Setting::new("", one, Judged::Ignored(why.into()));
        };
        let short_name = name.strip_prefix(PREFIX);
        let judged = match short_name
            .and_then(|name| TUNABLES.iter().find(|tunable| tunable.name == name))
        {
            Some(tunable) => tunable.judge(value, version),
            None => Judged::Ignored("glibc has no tunable of this name, and says nothing".into()),
        };
        Setting::new(name, value, judged)
    };
    let parts = text.split(':').filter(|one| !one.is_empty());
    let of_malloc = |one: &&str| !one.contains('=') || one.starts_with(PREFIX);
    parts.filter(of_malloc).map(judge).collect()
}

/// Judges one of the variables `MALLOC_*`.
pub fn variable(name: &str, value: &str, version: Option<(u32, u32, u32)>) -> Setting {
    let known = TUNABLES
        .iter()
        .find(|tunable| tunable.variable == name && !name.is_empty());
    let judged = match known {
        Some(tunable) => tunable.judge(value, version),
        None => Judged::Ignored("glibc has no variable of this name, and says nothing".into()),
    };
    Setting::new(name, value, judged)
}

impl Tunable {
    fn judge(&self, value: &str, version: Option<(u32, u32, u32)>) -> Judged {
        if self.name == "check" && version.is_some_and(|version| version >= CHECK_APART) {
            let why = "from glibc 2.34 on it works only where libc_malloc_debug.so.0 is preloaded";
            return Judged::Ignored(why.into());
        }
        let read = leading(value, 0);
        let may_cache_large = version.is_none_or(|version| version >= CACHES_LARGE);
        let most_of_malloc = match self.name {
            "tcache_max" if may_cache_large => u64::MAX,
            _ => self.most_of_malloc,
        };
        let (least, most) = self.bounds;
        let words = || format!("glibc takes {least} to {most}, and says nothing");
        match read {
            Some(number)
                if !number.rest.is_empty() && version.is_some_and(|version| version >= STRICT) =>
            {
                Judged::Refused(format!("no number: glibc says that {value:?} is invalid"))
            }
            // Text without digits counts as 0.
            _ => {
                let number = read.map_or(0, |number| number.value);
                if !(least..=most).contains(&number) {
                    Judged::Ignored(words())
                } else if number > most_of_malloc {
                    Judged::Ignored(format!(
                        "malloc takes {most_of_malloc} at most, and says nothing"
                    ))
                } else {
                    Judged::Accepted(number.to_string())
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Option<(u32, u32, u32)> = Some((2, 36, 0));

    #[test]
    fn what_glibc_drops_without_a_word_is_told() {
        let text = "glibc.malloc.arena_max=2:glibc.malloc.arenamax=2:glibc.malloc.perturb=256:glibc.cpu.hwcaps=x:nonsense";
        let found = tunables(text, OLD);
        let states: Vec<bool> = found
            .iter()
            .map(|setting| matches!(setting.judged, Judged::Accepted(_)))
            .collect();
        assert_eq!(states, [true, false, false, false]);
        assert_eq!(found[1].name, "glibc.malloc.arenamax");
        let accepted = |name, value| variable(name, value, OLD).judged;
        assert_eq!(
            accepted("MALLOC_ARENA_MAX", "2x"),
            Judged::Accepted("2".into())
        );
        assert_eq!(
            accepted("MALLOC_TOP_PAD_", "x"),
            Judged::Accepted("0".into())
        );
        assert!(matches!(
            accepted("MALLOC_ARENA_MAX", "0"),
            Judged::Ignored(_)
        ));
        assert!(matches!(
            accepted("MALLOC_ARENAS_MAX", "2"),
            Judged::Ignored(_)
        ));
        assert!(matches!(accepted("MALLOC_CHECK_", "3"), Judged::Ignored(_)));
    }

    #[test]
    fn a_thread_caches_blocks_up_to_the_largest_class_of_its_glibc() {
        let judged = |value: u32, version| {
            let text = format!("glibc.malloc.tcache_max={value}");
            tunables(&text, version).remove(0).judged
        };
        assert_eq!(judged(1032, OLD), Judged::Accepted("1032".into()));
        assert!(matches!(judged(1033, OLD), Judged::Ignored(_)));
        let later = Some((2, 42, 0));
        assert_eq!(judged(1033, later), Judged::Accepted("1033".into()));
        assert_eq!(judged(1033, None), Judged::Accepted("1033".into()));
    }

    #[test]
    fn one_fault_costs_a_later_glibc_the_whole_variable() {
        let found = tunables("glibc.malloc.arena_max=2:nonsense", Some((2, 39, 0)));
        assert!(matches!(
            &found[..],
            [Setting {
                judged: Judged::Refused(_),
                ..
            }]
        ));
    }
}
