//! glibc's tunables: a list in the dynamic linker's memory, with one entry of a fixed size for each
//! tunable: its name, its bounds, its value, and whether that was set. The places of these within
//! an entry are found by bounds that are known.

use super::{Mapped, Values, half, word};
use crate::settings::glibc::{PREFIX, TUNABLES};
use memchr::memmem;

/// The fewest tunables that make a list.
const LEAST: usize = 10;

/// The tunables of malloc that were set; or why these are not known.
pub fn values(linker: &Mapped) -> Result<Values, String> {
    let lists = linker.mapped().filter_map(|(_, bytes)| List::of(bytes));
    let list = lists.into_iter().next();
    let list = list.ok_or("the dynamic linker's list of tunables was not recognised")?;
    Ok(list.values())
}

struct List {
    bytes: Vec<u8>,
    /// The places of the names.
    names: Vec<usize>,
    /// The distance from a tunable's name to its least value.
    least_at: usize,
    /// The distance from a tunable's name to its value.
    value_at: usize,
}

impl List {
    fn of(bytes: Vec<u8>) -> Option<List> {
        let is_first = |at: &usize| *at == 0 || bytes[at - 1] == 0;
        let mut names: Vec<usize> = memmem::find_iter(&bytes, b"glibc.")
            .filter(is_first)
            .collect();
        let size = names.get(1)? - names.first()?;
        names.truncate(
            1 + names
                .windows(2)
                .take_while(|pair| pair[1] - pair[0] == size)
                .count(),
        );
        if names.len() < LEAST {
            return None;
        }
        let entry = |name: &str| {
            let is_it = |at: &&usize| text(&bytes, **at) == format!("{PREFIX}{name}");
            names.iter().find(is_it).copied()
        };
        // These two tunables have bounds that no other tunables have in this order.
        let fits = |at: &usize, name: &str, least: u64, most: u64| {
            let place = entry(name)? + at;
            let found = (word(&bytes, place)?, word(&bytes, place + 8)?);
            (found == (least, most)).then_some(())
        };
        let is_place = |at: &usize| {
            fits(at, "perturb", 0, 255)
                .and(fits(at, "mmap_max", 0, i32::MAX as u64))
                .and(fits(at, "arena_max", 1, u64::MAX))
                .is_some()
        };
        let least_at = (8..size).step_by(8).find(is_place)?;
        // Since 2.39 a tunable also has its default value, which comes before its value.
        let is_flag = |value_at: &usize| {
            let flag = |name: &usize| bytes.get(name + value_at + 8).copied();
            let mut all = names.iter().map(flag);
            all.all(|flag| matches!(flag, Some(0 | 1)))
        };
        let value_at = [least_at + 16, least_at + 24].into_iter().find(is_flag)?;
        Some(List {
            bytes,
            names,
            least_at,
            value_at,
        })
    }

    fn values(&self) -> Values {
        let mut values = Values::new();
        for name in &self.names {
            let text = text(&self.bytes, *name);
            let short_name = text.strip_prefix(PREFIX);
            let Some(known) = short_name
                .and_then(|short_name| TUNABLES.iter().find(|tunable| tunable.name == short_name))
            else {
                continue;
            };
            let is_set = self.bytes.get(name + self.value_at + 8) == Some(&1);
            let value = word(&self.bytes, name + self.value_at);
            let Some(value) = value.filter(|_| is_set) else {
                continue;
            };
            // Bounds of 32 bits mean a number of 32 bits.
            let most = word(&self.bytes, name + self.least_at + 8);
            let value = match most.is_some_and(|most| most <= i32::MAX as u64) {
                true => u64::from(half(&self.bytes, name + self.value_at).unwrap_or(0)),
                false => value,
            };
            values.insert(text.clone(), value.to_string());
            if !known.variable.is_empty() {
                values.insert(known.variable.into(), value.to_string());
            }
        }
        values
    }
}

/// The text at a place, up to a zero byte.
fn text(bytes: &[u8], at: usize) -> String {
    let rest = bytes.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(0);
    String::from_utf8_lossy(&rest[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list as in 2.36, or with default values as in 2.39 and later.
    fn list(has_defaults: bool) -> Vec<u8> {
        let mut bytes = vec![0_u8; 16];
        let mut add = |name: &str, least: u64, most: u64, default: u64, set: Option<u64>| {
            let start = bytes.len();
            bytes.extend(name.bytes());
            bytes.resize(start + 48, 0);
            bytes.extend(least.to_ne_bytes());
            bytes.extend(most.to_ne_bytes());
            if has_defaults {
                bytes.extend(default.to_ne_bytes());
            }
            bytes.extend(set.unwrap_or(default).to_ne_bytes());
            bytes.extend([u8::from(set.is_some()), 0, 0, 0, 2, 0, 0, 0]);
            bytes.extend(b"MALLOC_\0");
        };
        add("glibc.malloc.perturb", 0, 255, 0, Some(7));
        add("glibc.malloc.mmap_max", 0, i32::MAX as u64, 0, None);
        add("glibc.malloc.arena_max", 1, u64::MAX, 0, Some(2));
        for at in 0..9 {
            add(&format!("glibc.other.x{at}"), 0, 100, 40 + at, None);
        }
        bytes
    }

    #[test]
    fn tunables_that_were_set_are_found_in_either_list() {
        for has_defaults in [false, true] {
            let values = List::of(list(has_defaults)).unwrap().values();
            let of = |name: &str| values.get(name).map(String::as_str);
            assert_eq!(of("glibc.malloc.perturb"), Some("7"));
            assert_eq!(of("MALLOC_ARENA_MAX"), Some("2"));
            assert_eq!(of("glibc.malloc.mmap_max"), None);
        }
    }

    #[test]
    fn a_list_that_is_laid_out_otherwise_is_not_read() {
        let mut other = list(false);
        let at = memmem::find(&other, b"glibc.malloc.arena_max").unwrap();
        other[at + 48] = 9;
        assert!(List::of(other).is_none());
    }
}
