//! The release that an allocator's numbers belong to: name, version and date, as given in
//! sentences.

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The name, version and date of an allocator's sources. A file may give the date alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sources {
    /// The authors' name for the allocator, if it is not the family's name.
    pub of: String,
    /// The version, if the library does not report it.
    pub version: String,
    /// When the sources were written: a year, or a year and a month.
    pub date: String,
    /// For libraries from packages, whose version depends on the system: dates by version. `2.10`
    /// stands for 2.10.1, too.
    pub dates: BTreeMap<String, String>,
}

/// The keys of a table in a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    of: String,
    version: String,
    date: String,
    dates: BTreeMap<String, String>,
}

impl<'de> Deserialize<'de> for Sources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sources, D::Error> {
        deserializer.deserialize_any(DateOrTable)
    }
}

struct DateOrTable;

impl<'de> Visitor<'de> for DateOrTable {
    type Value = Sources;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a date as text, or a table of `of`, `version`, `date` and `dates`")
    }

    fn visit_str<E: de::Error>(self, date: &str) -> Result<Sources, E> {
        Ok(Sources {
            date: date.to_owned(),
            ..Sources::default()
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sources, A::Error> {
        let table = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Sources {
            of: table.of,
            version: table.version,
            date: table.date,
            dates: table.dates,
        })
    }
}

impl Sources {
    /// Returns the release, as in `mimalloc 2.5.2, 2026-09`. `told` is the version that the library
    /// reports, or that its package or commit has. The text is shorter if less is known:
    /// `Hoard, 2017`, or nothing.
    pub fn release(&self, family: &str, told: Option<&str>) -> String {
        let number = told.and_then(number_in).unwrap_or_default();
        let version = if number.is_empty() {
            &self.version
        } else {
            number
        };
        let date = if self.date.is_empty() {
            self.date_of(version)
        } else {
            &self.date
        };
        if version.is_empty() && date.is_empty() {
            return self.of.clone();
        }
        let name = if self.of.is_empty() { family } else { &self.of };
        joined(&joined(name, " ", version), ", ", date)
    }

    fn date_of(&self, version: &str) -> &str {
        let is_of = |known: &str| {
            let rest = version.strip_prefix(known);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut dates = self.dates.iter();
        dates
            .find(|(known, _)| is_of(known))
            .map_or("", |(_, date)| date)
    }

    /// Returns the date of the sources, or the first and the last of their dates.
    pub fn years(&self) -> String {
        let (first, last) = (self.dates.values().min(), self.dates.values().max());
        match (first, last) {
            (Some(first), Some(last)) => format!("{first} to {last}"),
            _ => self.date.clone(),
        }
    }
}

/// Returns the authors' version in what a library or a package reports: `gperftools 2.10`,
/// `1:19.1.7-3+b1`, `5.3.1-0-g81034ce1`. Returns `None` for `per-CPU caches` and
/// `in crate-sys 0.2.3`.
pub fn number_in(told: &str) -> Option<&str> {
    // Longer texts are of several programs.
    let last = match told.split_once(' ') {
        Some((_, rest)) if rest.contains(' ') => return None,
        Some((_, last)) => last,
        None => told,
    };
    let without_epoch = last.split_once(':').map_or(last, |(_, version)| version);
    let end = without_epoch.find(['-', '+', '~']);
    let version = &without_epoch[..end.unwrap_or(without_epoch.len())];
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(version)
}

fn joined(first: &str, between: &str, then: &str) -> String {
    match (first, then) {
        (one, "") | ("", one) => one.to_owned(),
        _ => format!("{first}{between}{then}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sources: &str) -> Sources {
        #[derive(Deserialize)]
        struct File {
            sources: Sources,
        }
        toml::from_str::<File>(&format!("sources = {sources}"))
            .unwrap()
            .sources
    }

    #[test]
    fn a_release_is_told_as_far_as_it_is_known() {
        let packaged = r#"{ dates = { "2.9" = "2021", "2.10" = "2022", "2.1" = "x" } }"#;
        for (sources, version, expected) in [
            (
                r#""2026-04""#,
                Some("5.3.1-0-g81034ce1"),
                "f 5.3.1, 2026-04",
            ),
            (r#""2017""#, None, "f, 2017"),
            (
                r#"{ of = "Doug's", version = "2.8.6", date = "2012" }"#,
                None,
                "Doug's 2.8.6, 2012",
            ),
            (
                r#"{ of = "G", date = "2025-06" }"#,
                Some("per-CPU caches"),
                "G, 2025-06",
            ),
            (packaged, Some("gperftools 2.10"), "f 2.10, 2022"),
            (packaged, Some("1:2.9.1-3~deb12u1"), "f 2.9.1, 2021"),
            (packaged, Some("2.16-1"), "f 2.16"),
            (packaged, None, ""),
            (r#""""#, None, ""),
        ] {
            assert_eq!(
                read(sources).release("f", version),
                expected,
                "{sources} {version:?}"
            );
        }
        assert_eq!(read(packaged).years(), "2021 to x");
        assert_eq!(read(r#"{ date = "2017" }"#).years(), "2017");
    }
}
