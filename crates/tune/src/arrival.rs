//! Whether a setting reaches its allocator, and whether it has any effect. One process that is not timed is looked at while it
//! runs, and counted at its end.

use crate::setting::Setting;
use heapmark_core::build::libc_version;
use heapmark_which::settings::glibc::tunables;
use heapmark_which::settings::{Judged, Setting as Part, version};
use heapmark_which::{Given, SettingState};
use serde::{Deserialize, Serialize};

/// What was seen of a process that was not timed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Sight {
    /// The kernel's counts; `None` if another process stood in for the tuned one.
    pub counts: Option<Counts>,
    /// What became of the variables in the process.
    pub given: Vec<Given>,
    /// Lines of the process's stderr that an allocator or the dynamic linker has printed.
    pub complaints: Vec<String>,
    /// How the process ended, if not as it should.
    pub failure: Option<String>,
}

/// The kernel's counts for a process and all processes that it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of page faults without I/O.
    pub faults: u64,
    /// The peak of the resident set, in bytes.
    pub peak_bytes: u64,
    /// CPU time, in nanoseconds.
    pub cpu_ns: u64,
    /// From the start to the end, in nanoseconds.
    pub wall_ns: u64,
}

impl Counts {
    /// Returns the seconds from the start to the end.
    pub fn wall_s(&self) -> f64 {
        self.wall_ns as f64 / 1e9
    }

    /// Returns what one side of a pair takes of its time, in seconds. What sleeps is measured alone: a pair takes as long as its
    /// process, since one process of the default serves several pairs.
    pub fn side_s(&self) -> f64 {
        (self.cpu_ns as f64 / 1e9).max(self.wall_s() / 2.0)
    }
}

/// Whether a setting reached the allocator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "state", content = "why")]
pub enum Arrival {
    /// The value was read in the process.
    ReadBack,
    /// Nothing contradicts the value, but it cannot be read in the process.
    NotReadBack,
    /// The setting did not reach the allocator, or only in part.
    NotArrived(String),
}

/// Parts of stderr lines in which an allocator or the dynamic linker complains about its settings.
const SPEAKERS: [&str; 6] = [
    "<jemalloc>",
    "mimalloc: ",
    "tcmalloc",
    "WARNING: ld.so",
    "ERROR: ld.so",
    "ld.so: ",
];

/// Returns the lines of a stderr that an allocator or the dynamic linker has printed.
pub fn complaints(stderr: &str) -> Vec<String> {
    let speaks = |line: &&str| SPEAKERS.iter().any(|speaker| line.contains(speaker));
    let mut lines: Vec<String> = stderr.lines().filter(speaks).map(str::to_owned).collect();
    lines.dedup();
    lines
}

/// Whether the variables of a setting reached the allocator, judged by a process with them and by one without.
pub fn arrival(setting: &Setting, sight: &Sight, without: &Sight) -> Arrival {
    let own = tunables_of(setting);
    // What a variable sets twice, as by the allocator's entry and by the setting, has its last value.
    let is_overruled = |place: usize| {
        let given = &sight.given[place];
        let mut later = sight.given[place + 1..].iter();
        // Of a list of tunables the process may have left the first one alone.
        let mut own = own.iter().rev().filter(|_| given.place == TUNABLES);
        let last = own.find(|part| part.name == given.setting);
        !given.setting.is_empty()
            && later.any(|it| (&it.place, &it.setting) == (&given.place, &given.setting))
            || last.is_some_and(|last| last.value != given.value)
    };
    let of_setting: Vec<&Given> = (0..sight.given.len())
        .filter(|place| !is_overruled(*place))
        .map(|place| &sight.given[place])
        .filter(|given| setting.environment.contains_key(&given.place))
        .collect();
    let unseen = unseen(own, &of_setting);
    let mut why: Vec<String> = unseen.iter().filter_map(|reason| reason.clone()).collect();
    for given in of_setting.iter().filter(|given| given.state.is_lost()) {
        let place = match given.setting.as_str() {
            "" => String::new(),
            name if name == given.place => String::new(),
            name => format!(", {name}"),
        };
        why.push(format!(
            "{}{place}: {:?}: {}",
            given.place, given.value, given.why
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
    match unseen.is_empty()
        && !of_setting.is_empty()
        && of_setting
            .iter()
            .all(|given| given.state == SettingState::Taken)
    {
        true => Arrival::ReadBack,
        false => Arrival::NotReadBack,
    }
}

const TUNABLES: &str = "GLIBC_TUNABLES";

/// The tunables of malloc that a setting has.
fn tunables_of(setting: &Setting) -> Vec<Part> {
    let text = setting.environment.get(TUNABLES).map_or("", String::as_str);
    tunables(text, Some(version(&libc_version())))
}

/// Returns an item for each tunable that was not seen in the process: why it has no effect, if that is known. The dynamic linker
/// of glibc before 2.39 cuts the variable off after its first setting.
fn unseen(all: Vec<Part>, seen: &[&Given]) -> Vec<Option<String>> {
    let was_seen =
        |given: &Given, part: &Part| given.place == TUNABLES && given.setting == part.name;
    let unseen = all
        .into_iter()
        .filter(|part| !seen.iter().any(|given| was_seen(given, part)));
    let why = |part: Part| match part.judged {
        Judged::Refused(why) | Judged::Ignored(why) => Some(format!(
            "{TUNABLES}, {}: {:?}: {why}",
            part.name, part.value
        )),
        Judged::Accepted(_) | Judged::NotKnown(_) => None,
    };
    unseen.map(why).collect()
}

/// The smallest and the largest of each count, over several processes of the same kind.
pub struct CountRanges([(u64, u64); 2]);

impl CountRanges {
    /// Returns the ranges of these counts; `None` if there are none.
    pub fn of(all: &[Counts]) -> Option<CountRanges> {
        let range = |of: fn(&Counts) -> u64| {
            let values = || all.iter().map(of);
            Some((values().min()?, values().max()?))
        };
        Some(CountRanges([
            range(|counts| counts.faults)?,
            range(|counts| counts.peak_bytes)?,
        ]))
    }

    /// Whether these counts lie within the ranges.
    pub fn have(&self, counts: Option<Counts>) -> bool {
        counts.is_some_and(|counts| {
            let mut both = self.0.iter().zip([counts.faults, counts.peak_bytes]);
            both.all(|((least, most), value)| (least..=most).contains(&&value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(place: &str, setting: &str, state: SettingState) -> Given {
        Given {
            place: place.into(),
            setting: setting.into(),
            value: "x".into(),
            state,
            why: "because".into(),
        }
    }

    fn sight(given: Vec<Given>, complaints: &[&str]) -> Sight {
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
        let of = |given, lines: &[&str]| arrival(&setting, &sight(given, lines), &without);
        let taken = || given("MALLOC_CONF", "narenas", SettingState::Taken);
        assert_eq!(of(vec![taken()], &["<jemalloc>: hello"]), Arrival::ReadBack);
        let unread = given("MALLOC_CONF", "tcache", SettingState::Given);
        assert_eq!(of(vec![taken(), unread], &[]), Arrival::NotReadBack);
        let lost = given("MALLOC_CONF", "", SettingState::Refused);
        let why = "MALLOC_CONF: \"x\": because".to_owned();
        assert_eq!(of(vec![taken(), lost], &[]), Arrival::NotArrived(why));
        let outcome = of(vec![taken()], &["<jemalloc>: Malformed conf string"]);
        assert!(matches!(outcome, Arrival::NotArrived(why) if why.contains("Malformed")));
        // Behind the first tunable, which is all that the process has left of them.
        let list = "glibc.malloc.arena_max=2:glibc.malloc.top_pad=1".to_owned();
        let mut tunables = Setting::given("glibc", 1, "GLIBC_TUNABLES", &list);
        let seen = vec![given(
            "GLIBC_TUNABLES",
            "glibc.malloc.arena_max",
            SettingState::Taken,
        )];
        let seen = sight(seen, &[]);
        assert_eq!(arrival(&tunables, &seen, &without), Arrival::NotReadBack);
        let typo = list.replace("top_pad", "toppad");
        tunables.environment.insert("GLIBC_TUNABLES".into(), typo);
        let outcome = arrival(&tunables, &seen, &without);
        assert!(matches!(outcome, Arrival::NotArrived(why) if why.contains("toppad")));
        // What its allocator's entry sets comes first, and is overruled.
        let overruled = given("MALLOC_CONF", "tcache", SettingState::Changed);
        let last = given("MALLOC_CONF", "tcache", SettingState::Taken);
        assert_eq!(of(vec![overruled, last], &[]), Arrival::ReadBack);
        let mut of_entry = given(
            "GLIBC_TUNABLES",
            "glibc.malloc.arena_max",
            SettingState::Changed,
        );
        of_entry.value = "1".into();
        let list = "glibc.malloc.arena_max=2";
        let setting = Setting::given("glibc-arena1", 1, "GLIBC_TUNABLES", list);
        let outcome = arrival(&setting, &sight(vec![of_entry], &[]), &without);
        assert_eq!(outcome, Arrival::NotReadBack);
        // Of another variable.
        let other = given("GLIBC_TUNABLES", "", SettingState::Refused);
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
            ..Counts::default()
        };
        let ranges = CountRanges::of(&[counts(10, 100), counts(12, 90)]).unwrap();
        assert!(ranges.have(Some(counts(11, 100))));
        assert!(!ranges.have(Some(counts(13, 100))));
        assert!(!ranges.have(Some(counts(11, 89))));
        assert!(!ranges.have(None));
        assert!(CountRanges::of(&[]).is_none());
    }
}
