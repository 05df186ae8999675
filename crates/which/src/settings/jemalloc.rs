//! `MALLOC_CONF` of jemalloc: `name:value,name:value`, as `conf_next` and `malloc_conf_init` of
//! 5.3.0 and 5.3.1 read it. A refusal is in jemalloc's own words, which a test compares with what
//! jemalloc prints.

use super::number::leading;
use super::{Judged, Setting};

/// The values that an option takes.
pub enum OptionKind {
    /// `true` or `false`.
    Bool,
    /// A 32-bit number from the first to the last of these; a number outside is refused or set to
    /// the nearest bound, as `Beyond` defines.
    U32(u64, u64, Beyond),
    /// A 64-bit number, with bounds like those of `U32`.
    U64(u64, u64, Beyond),
    /// A signed number from the first to the last of these.
    Signed(i64, i64),
    /// One of these words.
    Words(&'static [&'static str]),
    /// Any prefix of one of these words, as `strncmp` compares.
    Beginnings(&'static [&'static str]),
    /// A number with decimals, up to this maximum.
    Fraction(f64),
    /// Ranges of sizes with a number each, as in `1-4096:17|…`.
    Ranges(&'static str),
    /// Any text.
    Text,
}

/// What happens to a number outside an option's bounds.
#[derive(Clone, Copy, PartialEq)]
pub enum Beyond {
    /// The parser refuses it.
    Refused,
    /// The nearest bound is taken.
    Nearest,
}

/// The versions and builds that have an option.
#[derive(Clone, Copy, PartialEq)]
pub enum In {
    /// Versions 5.3.0 and 5.3.1.
    Both,
    /// Version 5.3.0 only.
    Old,
    /// Version 5.3.1 only.
    New,
    /// Both versions, if the profiler was built in.
    Prof,
    /// Version 5.3.1, if the profiler was built in.
    NewProf,
    /// Only builds with the feature that the option is for, which the library does not show.
    SomeBuilds,
}

use Beyond::{Nearest, Refused};
use In::{Both, New, NewProf, Old, Prof, SomeBuilds};
use OptionKind::{Beginnings, Bool, Fraction, Ranges, Signed, Text, U32, U64, Words};

const ALL: u64 = u64::MAX;
/// The longest decay time: as many milliseconds as fit into jemalloc's 64-bit count of nanoseconds.
const LONGEST_MS: i64 = 18_446_744_072_000;
const HUGE_PAGE: u64 = 2 << 20;
const PAGE: u64 = 4096;

/// The options, in the order in which jemalloc compares names.
pub const OPTIONS: &[(&str, OptionKind, In)] = &[
    ("confirm_conf", Bool, Both),
    ("abort", Bool, Both),
    ("abort_conf", Bool, Both),
    ("cache_oblivious", Bool, New),
    ("trust_madvise", Bool, Both),
    ("experimental_hpa_start_huge_if_thp_always", Bool, New),
    ("experimental_hpa_enforce_hugify", Bool, New),
    ("huge_arena_pac_thp", Bool, New),
    (
        "metadata_thp",
        Beginnings(&["disabled", "auto", "always"]),
        Both,
    ),
    ("retain", Bool, Both),
    (
        "dss",
        Beginnings(&["disabled", "primary", "secondary"]),
        Both,
    ),
    ("narenas", U32(1, ALL, Refused), Both),
    ("narenas_ratio", Fraction(65536.0), Both),
    (
        "bin_shards",
        Ranges("Invalid settings for bin_shards"),
        Both,
    ),
    (
        "tcache_ncached_max",
        Ranges("Invalid settings for tcache_ncached_max"),
        New,
    ),
    ("mutex_max_spin", Signed(-1, i64::MAX), Both),
    ("dirty_decay_ms", Signed(-1, LONGEST_MS), Both),
    ("muzzy_decay_ms", Signed(-1, LONGEST_MS), Both),
    ("process_madvise_max_batch", U64(0, ALL, Nearest), New),
    ("stats_print", Bool, Both),
    ("stats_print_opts", Text, Both),
    ("stats_interval", Signed(-1, i64::MAX), Both),
    ("stats_interval_opts", Text, Both),
    ("junk", Words(&["true", "false", "alloc", "free"]), Both),
    ("zero", Bool, Both),
    ("utrace", Bool, SomeBuilds),
    ("xmalloc", Bool, SomeBuilds),
    ("experimental_infallible_new", Bool, Both),
    ("experimental_tcache_gc", Bool, New),
    ("tcache", Bool, Both),
    ("tcache_max", U64(0, 8 << 20, Nearest), Both),
    ("lg_tcache_max", U64(0, 23, Nearest), Both),
    ("lg_tcache_nslots_mul", Signed(-16, 16), Both),
    ("tcache_nslots_small_min", U32(1, 2048, Nearest), Both),
    ("tcache_nslots_small_max", U32(1, 2048, Nearest), Both),
    ("tcache_nslots_large", U32(1, 2048, Nearest), Both),
    ("tcache_gc_incr_bytes", U64(1024, ALL, Nearest), Both),
    ("tcache_gc_delay_bytes", U64(0, ALL, Refused), Both),
    ("lg_tcache_flush_small_div", U32(1, 16, Nearest), Both),
    ("lg_tcache_flush_large_div", U32(1, 16, Nearest), Both),
    ("debug_double_free_max_scan", U32(0, ALL, Refused), New),
    ("calloc_madvise_threshold", U64(0, LARGEST, Refused), New),
    ("oversize_threshold", U64(0, LARGEST, Refused), Both),
    ("lg_extent_max_active_fit", U64(0, 64, Refused), Both),
    (
        "percpu_arena",
        Beginnings(&["disabled", "percpu", "phycpu"]),
        Both,
    ),
    ("background_thread", Bool, Both),
    ("max_background_threads", U64(1, 4095, Nearest), Both),
    ("hpa", Bool, Both),
    ("hpa_slab_max_alloc", U64(PAGE, HUGE_PAGE, Nearest), Both),
    (
        "hpa_hugification_threshold",
        U64(PAGE, HUGE_PAGE, Nearest),
        Both,
    ),
    ("hpa_hugification_threshold_ratio", Fraction(1.0), Both),
    ("hpa_hugify_delay_ms", U64(0, ALL, Refused), Both),
    ("hpa_hugify_sync", Bool, New),
    ("hpa_min_purge_interval_ms", U64(0, ALL, Refused), Both),
    ("experimental_hpa_max_purge_nhp", Signed(-1, i64::MAX), New),
    ("hpa_purge_threshold", U64(PAGE, HUGE_PAGE, Nearest), New),
    ("hpa_purge_threshold_ratio", Fraction(1.0), New),
    ("hpa_min_purge_delay_ms", U64(0, ALL, Refused), New),
    (
        "hpa_hugify_style",
        Beginnings(&["auto", "none", "eager", "lazy"]),
        New,
    ),
    ("hpa_dirty_mult", Fraction(65536.0), Both),
    ("hpa_sec_nshards", U64(0, ALL, Nearest), Both),
    ("hpa_sec_max_alloc", U64(PAGE, ALL, Nearest), Old),
    ("hpa_sec_max_alloc", U64(PAGE, 8 << 20, Nearest), New),
    ("hpa_sec_max_bytes", U64(PAGE, ALL, Nearest), Old),
    ("hpa_sec_max_bytes", U64(256 << 10, ALL, Nearest), New),
    ("hpa_sec_bytes_after_flush", U64(PAGE, ALL, Nearest), Old),
    (
        "hpa_sec_batch_fill_extra",
        U64(0, HUGE_PAGE / PAGE, Nearest),
        Old,
    ),
    (
        "hpa_sec_batch_fill_extra",
        U64(1, HUGE_PAGE / PAGE, Nearest),
        New,
    ),
    (
        "slab_sizes",
        Ranges("Invalid settings for slab_sizes"),
        Both,
    ),
    ("prof", Bool, Prof),
    ("prof_prefix", Text, Prof),
    ("prof_active", Bool, Prof),
    ("prof_thread_active_init", Bool, Prof),
    ("lg_prof_sample", U64(0, 63, Nearest), Prof),
    ("prof_accum", Bool, Prof),
    ("prof_bt_max", U32(1, 256, Nearest), NewProf),
    ("lg_prof_interval", Signed(-1, 63), Prof),
    ("prof_gdump", Bool, Prof),
    ("prof_final", Bool, Prof),
    ("prof_leak", Bool, Prof),
    ("prof_leak_error", Bool, Prof),
    ("prof_log", Bool, Prof),
    ("prof_pid_namespace", Bool, NewProf),
    ("prof_recent_alloc_max", Signed(-1, i64::MAX), Prof),
    ("prof_stats", Bool, Prof),
    ("prof_sys_thread_name", Bool, Prof),
    ("prof_time_resolution", Words(&["default", "high"]), Prof),
    ("prof_unbias", Bool, Prof),
    ("log", Text, SomeBuilds),
    (
        "thp",
        Beginnings(&["default", "always", "never", "not supported"]),
        Both,
    ),
    ("zero_realloc", Words(&["alloc", "free", "abort"]), Both),
    ("lg_san_uaf_align", Signed(-1, 63), SomeBuilds),
    ("san_guard_small", U64(0, ALL, Refused), Both),
    ("san_guard_large", U64(0, ALL, Refused), Both),
    ("disable_large_size_classes", Bool, New),
];

/// The largest size class.
const LARGEST: u64 = 0x7000_0000_0000_0000;

const UNKNOWN: &str = "Invalid conf pair";
const INVALID: &str = "Invalid conf value";
const OUT_OF_RANGE: &str = "Out-of-range conf value";
const MALFORMED: &str = "Malformed conf string";
const ENDS_WITH_KEY: &str = "Conf string ends with key";
const ENDS_WITH_COMMA: &str = "Conf string ends with comma";

/// The build of jemalloc that reads the settings.
#[derive(Clone, Copy)]
pub struct Built {
    /// The version of jemalloc; `None` if it is not known.
    pub version: Option<(u32, u32, u32)>,
    /// Whether jemalloc's profiler was built in.
    pub has_prof: bool,
}

/// Judges each setting of `MALLOC_CONF`, in order. Text that follows malformed text is dropped with
/// it.
pub fn parse(conf: &str, built: Built) -> Vec<Setting> {
    let mut found = Vec::new();
    let mut rest = conf;
    while !rest.is_empty() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let Some(end) = rest.find(|c| !is_name(c)) else {
            found.push(Setting::new(
                rest,
                "",
                Judged::Refused(ENDS_WITH_KEY.into()),
            ));
            break;
        };
        let (name, behind) = rest.split_at(end);
        let Some(behind) = behind.strip_prefix(':') else {
            found.push(Setting::new("", rest, Judged::Refused(MALFORMED.into())));
            break;
        };
        let (value, next) = match behind.split_once(',') {
            Some((value, next)) => (value, Some(next)),
            None => (behind, None),
        };
        found.push(Setting::new(name, value, judge(name, value, built)));
        if next == Some("") {
            found.push(Setting::new(
                "",
                ",",
                Judged::Refused(ENDS_WITH_COMMA.into()),
            ));
        }
        rest = next.unwrap_or_default();
    }
    found
}

/// Options whose names may be abbreviated, since jemalloc compares only as many characters as were
/// given.
const ABBREVIATED: [&str; 4] = ["metadata_thp", "dss", "percpu_arena", "hpa_hugify_style"];

fn judge(name: &str, value: &str, built: Built) -> Judged {
    let is_meant =
        |known: &str| known == name || ABBREVIATED.contains(&known) && known.starts_with(name);
    let patch = match built.version {
        Some((5, 3, patch @ 0..=1)) => Some(patch),
        _ => None,
    };
    let mut why = match patch {
        Some(_) => Judged::Refused(UNKNOWN.into()),
        None => Judged::NotKnown("no option of jemalloc 5.3".into()),
    };
    for (known, kind, place) in OPTIONS.iter().filter(|(known, _, _)| is_meant(known)) {
        match (place, patch) {
            (Both, _) | (Old, Some(0)) | (New, Some(1)) => {}
            (Prof, _) | (NewProf, Some(1)) if built.has_prof => {}
            (SomeBuilds, _) => {
                why = Judged::NotKnown("only some builds of jemalloc have this option".into());
                continue;
            }
            (New | NewProf | Old, None) => {
                why = Judged::NotKnown("not all versions of jemalloc have this option".into());
                continue;
            }
            _ => continue,
        }
        let result = match (*known, value) {
            ("narenas" | "slab_sizes", "default") => Ok("default".into()),
            ("hpa_dirty_mult", "-1") => Ok("-1".into()),
            _ => kind.read(value),
        };
        return match result {
            Ok(taken) => Judged::Accepted(taken),
            Err(complaint) => Judged::Refused(complaint.into()),
        };
    }
    why
}

impl OptionKind {
    /// The value as jemalloc understands it, or jemalloc's complaint.
    fn read(&self, value: &str) -> Result<String, &'static str> {
        let number = || {
            let read = leading(value, 0).filter(|number| number.rest.is_empty());
            read.map(|number| number.value).ok_or(INVALID)
        };
        let word = |words: &[&str], fits: &dyn Fn(&str) -> bool| {
            let found = words.iter().find(|word| fits(word));
            found.map(|word| (*word).to_owned()).ok_or(INVALID)
        };
        match *self {
            Bool => word(&["true", "false"], &|choice| choice == value),
            Words(words) => word(words, &|choice| choice == value),
            Beginnings(words) => word(words, &|choice| choice.starts_with(value)),
            Text => Ok(value.to_owned()),
            U64(least, most, beyond) => within(number()?, (least, most), beyond),
            U32(least, most, beyond) => {
                // The number is compared before it is cut to 32 bits.
                let taken = within(number()?, (least, most), beyond)?;
                let cut = taken.parse::<u64>().map(|number| number as u32);
                Ok(cut.unwrap_or_default().to_string())
            }
            Signed(least, most) => {
                let number = number()? as i64;
                match (least..=most).contains(&number) {
                    true => Ok(number.to_string()),
                    false => Err(OUT_OF_RANGE),
                }
            }
            Fraction(most) => {
                let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
                let (whole, decimals) = value.split_once('.').unwrap_or((value, "0"));
                let is_one = is_digits(whole) && is_digits(decimals) && !decimals.is_empty();
                let number = value.parse::<f64>().ok();
                let fits =
                    number.is_some_and(|number| is_one && number <= most && number < 65536.0);
                fits.then(|| value.to_owned()).ok_or(INVALID)
            }
            Ranges(complaint) => {
                let is_range = |part: &str| {
                    let (sizes, count) = part.split_once(':')?;
                    let (first, last) = sizes.split_once('-')?;
                    let all = [first, last, count];
                    all.iter()
                        .all(|digits| {
                            leading(digits, 0).is_some_and(|number| number.rest.is_empty())
                        })
                        .then_some(())
                };
                let all = value.split('|').all(|part| is_range(part).is_some());
                all.then(|| value.to_owned()).ok_or(complaint)
            }
        }
    }
}

fn within(number: u64, (least, most): (u64, u64), beyond: Beyond) -> Result<String, &'static str> {
    match beyond {
        Refused if !(least..=most).contains(&number) => Err(OUT_OF_RANGE),
        _ => Ok(number.clamp(least, most).to_string()),
    }
}

/// The line that jemalloc prints about a setting that it refuses, if it prints a single line of its
/// own.
pub fn complaint(setting: &Setting) -> Option<String> {
    let Judged::Refused(words) = &setting.judged else {
        return None;
    };
    Some(match words.as_str() {
        MALFORMED | ENDS_WITH_KEY | ENDS_WITH_COMMA => format!("<jemalloc>: {words}"),
        _ => format!("<jemalloc>: {words}: {}:{}", setting.name, setting.value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: Built = Built {
        version: Some((5, 3, 0)),
        has_prof: false,
    };

    fn judged(conf: &str) -> Vec<Judged> {
        parse(conf, OLD)
            .into_iter()
            .map(|setting| setting.judged)
            .collect()
    }

    #[test]
    fn what_stands_behind_malformed_text_is_dropped() {
        let found = parse("narenas:2, tcache:true,thp:always", OLD);
        let last = Setting::new(
            "",
            " tcache:true,thp:always",
            Judged::Refused(MALFORMED.into()),
        );
        assert_eq!((found.len(), &found[1]), (2, &last));
        let found = parse("background_thread:true;metadata_thp:auto", OLD);
        assert_eq!(
            (found.len(), found[0].value.as_str()),
            (1, "true;metadata_thp:auto")
        );
        assert_eq!(parse("", OLD), []);
    }

    #[test]
    fn numbers_wrap_clip_and_are_refused_as_by_the_option() {
        let accepted = |value: &str| Judged::Accepted(value.into());
        assert_eq!(judged("narenas:-1"), [accepted("4294967295")]);
        assert_eq!(judged("narenas:0x10"), [accepted("16")]);
        assert_eq!(judged("tcache_nslots_large:9999"), [accepted("2048")]);
        assert_eq!(judged("dirty_decay_ms:-1"), [accepted("-1")]);
        assert_eq!(judged("thp:al"), [accepted("always")]);
        assert_eq!(judged("d:prim"), [accepted("primary")]);
        assert_eq!(judged("narenas:0"), [Judged::Refused(OUT_OF_RANGE.into())]);
        assert_eq!(judged("prof:true"), [Judged::Refused(UNKNOWN.into())]);
    }

    #[test]
    fn of_an_unknown_version_nothing_is_guessed() {
        let built = Built {
            version: Some((5, 2, 1)),
            has_prof: false,
        };
        let of = |conf| parse(conf, built).remove(0).judged;
        assert!(matches!(of("narenas:2"), Judged::Accepted(_)));
        assert!(matches!(
            of("calloc_madvise_threshold:0"),
            Judged::NotKnown(_)
        ));
        assert!(matches!(of("lg_chunk:21"), Judged::NotKnown(_)));
    }
}
