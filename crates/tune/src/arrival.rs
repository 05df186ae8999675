//! Does a setting arrive, and does it do anything? One process without a clock is looked at while it runs, and counted at its
//! end.

use crate::setting::Setting;
use heapmark_core::build::libc_version;
use heapmark_which::settings::glibc::tunables;
use heapmark_which::settings::{Judged, Setting as Part, version};
use heapmark_which::{Given, SettingState};
use serde::{Deserialize, Serialize};

/// A process that was looked at.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sight {
    /// What the kernel counted.
    pub counts: Counts,
    /// What became of the variables in it.
    pub given: Vec<Became>,
    /// Lines of its stderr in which an allocator or the dynamic linker speaks.
    pub complaints: Vec<String>,
    /// How it ended, if not as it should.
    pub failure: Option<String>,
}

/// What the kernel counted of a process and all that it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Page faults without I/O.
    pub faults: u64,
    /// The highest resident set.
    pub peak_bytes: u64,
    /// CPU time.
    pub cpu_ns: u64,
}

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Became {
    /// The variable.
    pub variable: String,
    /// The setting in it; empty if it is the variable itself.
    pub setting: String,
    /// As it was given.
    pub value: String,
    /// Whether it is known to do nothing.
    pub is_lost: bool,
    /// Whether its value was read in the process.
    pub is_read: bool,
    /// Why, or how that is known.
    pub why: String,
}

impl From<&Given> for Became {
    fn from(given: &Given) -> Became {
        Became {
            variable: given.place.clone(),
            setting: given.setting.clone(),
            value: given.value.clone(),
            is_lost: given.state.is_lost(),
            is_read: given.state == SettingState::Taken,
            why: given.why.clone(),
        }
    }
}

/// Whether a setting reached the allocator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum Arrival {
    /// Its value was read in the process.
    ReadBack,
    /// Nothing speaks against it, and its value cannot be read there.
    NotReadBack,
    /// It did not reach it, or not all of it.
    NotArrived(String),
}

/// Who speaks on stderr for himself.
const SPEAKERS: [&str; 6] = [
    "<jemalloc>",
    "mimalloc: ",
    "tcmalloc",
    "WARNING: ld.so",
    "ERROR: ld.so",
    "ld.so: ",
];

/// The lines of a stderr in which an allocator or the dynamic linker speaks.
pub fn complaints(stderr: &str) -> Vec<String> {
    let speaks = |line: &&str| SPEAKERS.iter().any(|speaker| line.contains(speaker));
    let mut said: Vec<String> = stderr.lines().filter(speaks).map(str::to_owned).collect();
    said.dedup();
    said
}

/// Whether the variables of a setting reached the allocator, by a process that had them and one that had not.
pub fn arrival(setting: &Setting, sight: &Sight, without: &Sight) -> Arrival {
    let own: Vec<&Became> = sight
        .given
        .iter()
        .filter(|it| setting.environment.contains_key(&it.variable))
        .collect();
    let unseen = unseen(setting, &own);
    let mut why: Vec<String> = unseen.iter().filter_map(|it| it.clone()).collect();
    for it in own.iter().filter(|it| it.is_lost) {
        let place = match it.setting.as_str() {
            "" => String::new(),
            name if name == it.variable => String::new(),
            name => format!(", {name}"),
        };
        why.push(format!(
            "{}{place}: {:?}: {}",
            it.variable, it.value, it.why
        ));
    }
    let new = sight
        .complaints
        .iter()
        .filter(|line| !without.complaints.contains(line));
    why.extend(new.take(2).map(|line| format!("stderr has {line:?}")));
    if !why.is_empty() {
        return Arrival::NotArrived(why.join("; "));
    }
    match unseen.is_empty() && !own.is_empty() && own.iter().all(|it| it.is_read) {
        true => Arrival::ReadBack,
        false => Arrival::NotReadBack,
    }
}

/// What stands in `GLIBC_TUNABLES` and was not seen in the process, each with why it does nothing if that is known: the dynamic
/// linker of glibc before 2.39 cuts the variable off behind its first setting.
fn unseen(setting: &Setting, own: &[&Became]) -> Vec<Option<String>> {
    const TUNABLES: &str = "GLIBC_TUNABLES";
    let text = setting.environment.get(TUNABLES).map_or("", String::as_str);
    let all = tunables(text, Some(version(&libc_version())));
    let was_seen = |it: &Became, part: &Part| it.variable == TUNABLES && it.setting == part.name;
    let unseen = all
        .into_iter()
        .filter(|part| !own.iter().any(|it| was_seen(it, part)));
    let why = |part: Part| match part.judged {
        Judged::Refused(why) | Judged::Ignored(why) => Some(format!(
            "{TUNABLES}, {}: {:?}: {why}",
            part.name, part.value
        )),
        Judged::Accepted(_) | Judged::NotKnown(_) => None,
    };
    unseen.map(why).collect()
}

/// Counts of processes of the same kind: the least and the most of each.
pub struct CountRanges([(u64, u64); 2]);

impl CountRanges {
    /// Those of the default, `None` without any.
    pub fn of(all: &[Counts]) -> Option<CountRanges> {
        let range = |of: fn(&Counts) -> u64| {
            let values = || all.iter().map(of);
            Some((values().min()?, values().max()?))
        };
        Some(CountRanges([
            range(|it| it.faults)?,
            range(|it| it.peak_bytes)?,
        ]))
    }

    /// Whether nothing tells these from them.
    pub fn have(&self, counts: &Counts) -> bool {
        let values = [counts.faults, counts.peak_bytes];
        self.0
            .iter()
            .zip(values)
            .all(|((least, most), value)| (least..=most).contains(&&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn became(variable: &str, setting: &str, is_lost: bool, is_read: bool) -> Became {
        Became {
            variable: variable.into(),
            setting: setting.into(),
            value: "x".into(),
            is_lost,
            is_read,
            why: "because".into(),
        }
    }

    fn sight(given: Vec<Became>, complaints: &[&str]) -> Sight {
        Sight {
            given,
            complaints: complaints.iter().map(ToString::to_string).collect(),
            ..Sight::default()
        }
    }

    #[test]
    fn what_half_arrives_has_not_arrived() {
        let setting = Setting::given("jemalloc", 1, "MALLOC_CONF", "narenas:2,tcache=1");
        let without = sight(Vec::new(), &["<jemalloc>: hello"]);
        let of = |given, said: &[&str]| arrival(&setting, &sight(given, said), &without);
        let taken = || became("MALLOC_CONF", "narenas", false, true);
        assert_eq!(of(vec![taken()], &["<jemalloc>: hello"]), Arrival::ReadBack);
        let unread = became("MALLOC_CONF", "tcache", false, false);
        assert_eq!(of(vec![taken(), unread], &[]), Arrival::NotReadBack);
        let lost = became("MALLOC_CONF", "", true, false);
        let why = "MALLOC_CONF: \"x\": because".to_owned();
        assert_eq!(of(vec![taken(), lost], &[]), Arrival::NotArrived(why));
        let said = of(vec![taken()], &["<jemalloc>: Malformed conf string"]);
        assert!(matches!(said, Arrival::NotArrived(why) if why.contains("Malformed")));
        // Behind the first tunable, which is all that the process has left of them.
        let list = "glibc.malloc.arena_max=2:glibc.malloc.top_pad=1".to_owned();
        let mut tunables = Setting::given("glibc", 1, "GLIBC_TUNABLES", &list);
        let seen = vec![became(
            "GLIBC_TUNABLES",
            "glibc.malloc.arena_max",
            false,
            true,
        )];
        let seen = sight(seen, &[]);
        assert_eq!(arrival(&tunables, &seen, &without), Arrival::NotReadBack);
        let typo = list.replace("top_pad", "toppad");
        tunables.environment.insert("GLIBC_TUNABLES".into(), typo);
        let told = arrival(&tunables, &seen, &without);
        assert!(matches!(told, Arrival::NotArrived(why) if why.contains("toppad")));
        // Of another variable.
        let other = became("GLIBC_TUNABLES", "", true, false);
        assert_eq!(of(vec![other], &[]), Arrival::NotReadBack);
    }

    #[test]
    fn allocators_are_told_from_the_program_on_stderr() {
        let stderr = "hello\n<jemalloc>: Malformed conf string\n<jemalloc>: Malformed conf string\nWARNING: ld.so: invalid\n";
        assert_eq!(complaints(stderr).len(), 2);
    }

    #[test]
    fn counts_within_the_defaults_own_are_no_effect() {
        let counts = |faults, peak_bytes| Counts {
            faults,
            peak_bytes,
            cpu_ns: 1,
        };
        let ranges = CountRanges::of(&[counts(10, 100), counts(12, 90)]).unwrap();
        assert!(ranges.have(&counts(11, 100)));
        assert!(!ranges.have(&counts(13, 100)));
        assert!(!ranges.have(&counts(11, 89)));
        assert!(CountRanges::of(&[]).is_none());
    }
}
