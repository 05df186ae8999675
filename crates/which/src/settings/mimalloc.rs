//! mimalloc's variables `MIMALLOC_*`, as `mi_option_init` of 2.x and 3.x reads them. mimalloc does
//! not report a name that it does not know, and a bad value only if it is verbose.

use super::number::leading;
use super::{Judged, Setting};

/// The message of mimalloc itself if `MIMALLOC_VERBOSE` is set.
const INVALID: &str = "environment option has an invalid value";
/// How many characters of a value mimalloc reads.
const READ: usize = 64;

/// Options that are sizes: their values may end with K, M or G, and mimalloc holds them in KiB.
const IN_KIB: [&str; 6] = [
    "reserve_os_memory",
    "arena_reserve",
    "minimal_purge_size",
    "arena_purge_min_size",
    "arena_purge_immediate_size",
    "arena_max_object_size",
];

/// The option that a variable is for: `purge_delay` for `MIMALLOC_PURGE_DELAY`.
pub fn option(variable: &str) -> Option<String> {
    let lower = variable.to_ascii_lowercase();
    lower.strip_prefix("mimalloc_").map(str::to_owned)
}

/// Judges a variable; `names` are the options of the mimalloc that reads the variable, including
/// their former names.
pub fn variable(variable: &str, value: &str, names: &[String]) -> Setting {
    let option = option(variable).unwrap_or_default();
    let judged = if !names.contains(&option) {
        Judged::Ignored("this mimalloc has no option of that name, and says nothing".into())
    } else {
        match read(&option, value) {
            Some(number) => Judged::Accepted(number.to_string()),
            None => Judged::Refused(format!("{INVALID} (said only with MIMALLOC_VERBOSE=1)")),
        }
    };
    Setting::new(variable, value, judged)
}

fn read(option: &str, value: &str) -> Option<i64> {
    let upper: String = value.chars().take(READ).collect();
    let upper = upper.to_ascii_uppercase();
    match upper.as_str() {
        "" | "1" | "TRUE" | "YES" | "ON" => return Some(1),
        "0" | "FALSE" | "NO" | "OFF" => return Some(0),
        _ => {}
    }
    let number = leading(&upper, 10)?;
    let mut rest = number.rest;
    let mut value = number.value as i64;
    if IN_KIB.contains(&option) {
        let bytes = match rest.chars().next() {
            Some('K') => 1 << 10,
            Some('M') => 1 << 20,
            Some('G') => 1 << 30,
            _ => 1,
        };
        if bytes > 1 {
            rest = &rest[1..];
        }
        rest = rest
            .strip_prefix("IB")
            .or(rest.strip_prefix('B'))
            .unwrap_or(rest);
        value = value.max(0).saturating_mul(bytes);
        value = value.saturating_add(1023) / 1024;
    }
    rest.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_must_be_an_option_and_a_value_a_number() {
        let names = ["purge_delay".to_owned(), "arena_reserve".to_owned()];
        let judged = |name, value| variable(name, value, &names).judged;
        assert_eq!(
            judged("MIMALLOC_PURGE_DELAY", "on"),
            Judged::Accepted("1".into())
        );
        assert_eq!(
            judged("mimalloc_purge_delay", "-1"),
            Judged::Accepted("-1".into())
        );
        assert_eq!(
            judged("MIMALLOC_ARENA_RESERVE", "64MiB"),
            Judged::Accepted("65536".into())
        );
        assert!(matches!(
            judged("MIMALLOC_PURGE_DELAY", "10ms"),
            Judged::Refused(_)
        ));
        assert!(matches!(
            judged("MIMALLOC_PURGE_DELAYS", "1"),
            Judged::Ignored(_)
        ));
    }
}
