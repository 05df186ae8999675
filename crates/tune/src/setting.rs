//! What enters the race: bundles of knobs with their values, from the allocators' entries.

use heapmark_core::catalog::{Allocator, Knob, Moved, knob, settings};
use heapmark_core::cmd::run::setting_row::SettingRow;
use serde::Serialize;
use std::collections::BTreeMap;

/// Settings of one allocator that are set together.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Setting {
    /// The setting's name in tables: `glibc+thresholds-1`; that of the allocator if nothing is set.
    pub name: String,
    /// The allocator's name.
    pub allocator: String,
    /// The bundles that are set; several if settings are combined.
    pub bundles: Vec<String>,
    /// The environment that sets them.
    pub environment: BTreeMap<String, String>,
    /// The knobs and their values; empty for a setting that was given as a variable.
    pub parts: Vec<(Knob, String)>,
}

impl Setting {
    /// Returns the allocator as it is, without settings.
    pub fn none(allocator: &str) -> Setting {
        Setting {
            name: allocator.into(),
            allocator: allocator.into(),
            ..Setting::default()
        }
    }

    /// Makes a setting of a variable that the user names, for an allocator.
    pub fn given(allocator: &str, number: usize, variable: &str, value: &str) -> Setting {
        Setting {
            name: format!("{allocator}+also-{number}"),
            allocator: allocator.into(),
            bundles: vec![format!("also-{number}")],
            environment: BTreeMap::from([(variable.into(), value.into())]),
            parts: Vec::new(),
        }
    }

    fn of_parts(
        name: String,
        allocator: &str,
        bundles: Vec<String>,
        parts: Vec<(Knob, String)>,
    ) -> Setting {
        let pairs = parts.iter().map(|(knob, value)| (knob, value.as_str()));
        Setting {
            name,
            allocator: allocator.into(),
            bundles,
            environment: knob::variables(pairs),
            parts,
        }
    }

    /// Combines both settings; `None` if they are of two allocators, or set the same thing.
    pub fn with(&self, other: &Setting) -> Option<Setting> {
        let is_shared = self
            .bundles
            .iter()
            .any(|bundle| other.bundles.contains(bundle));
        if self.allocator != other.allocator || is_shared || self.is_none() || other.is_none() {
            return None;
        }
        // The name keeps the number of the values: two values of a bundle make two pairs.
        let behind = other.name.strip_prefix(&*self.allocator)?;
        let name = format!("{}{behind}", self.name);
        let bundles = [&self.bundles[..], &other.bundles].concat();
        let parts = [&self.parts[..], &other.parts].concat();
        let mut both = Setting::of_parts(name, &self.allocator, bundles, parts);
        for given in [self, other]
            .into_iter()
            .filter(|setting| setting.parts.is_empty())
        {
            for (variable, value) in &given.environment {
                let known = both.environment.remove(variable);
                let value = match known {
                    Some(known) if settings::joined(variable, &known, value) == *value => {
                        return None;
                    }
                    Some(known) => settings::joined(variable, &known, value),
                    None => value.clone(),
                };
                both.environment.insert(variable.clone(), value);
            }
        }
        Some(both)
    }

    /// Returns a setting for each knob alone, if there are several knobs.
    pub fn alone(&self) -> Vec<Setting> {
        let one = |(knob, value): &(Knob, String)| {
            let name = format!("{}:{}", self.name, short(&knob.name));
            let parts = vec![(knob.clone(), value.clone())];
            Setting::of_parts(name, &self.allocator, self.bundles.clone(), parts)
        };
        match self.parts.len() {
            0 | 1 => Vec::new(),
            _ => self.parts.iter().map(one).collect(),
        }
    }

    /// Whether the setting sets nothing.
    pub fn is_none(&self) -> bool {
        self.environment.is_empty()
    }

    /// Whether all that the setting can change is counted.
    pub fn is_counted(&self) -> bool {
        let mut moves = self.parts.iter().flat_map(|(knob, _)| &knob.moves);
        !self.parts.is_empty() && moves.all(|moved| *moved != Moved::Time)
    }

    /// Returns the knobs with their values, `mmap_threshold=33554432 trim_threshold=67108864`, and the variables that no knob sets.
    pub fn words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for (knob, value) in &self.parts {
            words.push(format!("{}={value}", short(&knob.name)));
        }
        let parts = self.parts.iter();
        let made = knob::variables(parts.map(|(knob, value)| (knob, value.as_str())));
        let given = self.environment.iter();
        let given = given.filter(|(name, value)| made.get(*name) != Some(*value));
        words.extend(given.map(|(name, value)| format!("{name}={value}")));
        words.join(" ")
    }

    /// Returns the row that has this setting in a run.
    pub fn row(&self) -> SettingRow {
        SettingRow {
            name: self.name.clone(),
            allocator: self.allocator.clone(),
            environment: self.environment.clone(),
        }
    }
}

/// Returns the short name of a knob: `top_pad` for `glibc.malloc.top_pad`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The knobs of an allocator: its own, or those of the first entry of its family that has some.
pub fn knobs<'k>(allocator: &'k Allocator, known: &'k [Allocator]) -> &'k [Knob] {
    if !allocator.knobs.is_empty() {
        return &allocator.knobs;
    }
    let of_family =
        |other: &&Allocator| other.family == allocator.family && !other.knobs.is_empty();
    known
        .iter()
        .find(of_family)
        .map_or(&[], |other| &other.knobs)
}

/// Returns all settings worth trying: for each bundle, one for each place in the lists of its
/// values.
pub fn settings(allocator: &str, knobs: &[Knob]) -> Vec<Setting> {
    let mut bundles: Vec<&str> = Vec::new();
    for knob in knobs {
        if !bundles.contains(&&*knob.bundle) {
            bundles.push(&knob.bundle);
        }
    }
    let of_bundle = |bundle: &str| {
        let knobs_of_bundle: Vec<&Knob> =
            knobs.iter().filter(|knob| knob.bundle == bundle).collect();
        let tries = knobs_of_bundle[0].values.len();
        let setting = |place: usize| {
            let number = match tries {
                1 => String::new(),
                _ => format!("-{}", place + 1),
            };
            let parts = knobs_of_bundle
                .iter()
                .map(|knob| ((*knob).clone(), knob.values[place].clone()));
            Setting::of_parts(
                format!("{allocator}+{bundle}{number}"),
                allocator,
                vec![bundle.to_owned()],
                parts.collect(),
            )
        };
        (0..tries).map(setting).collect::<Vec<Setting>>()
    };
    bundles.into_iter().flat_map(of_bundle).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use heapmark_core::cmd::catalog;
    use heapmark_which::settings::{Judged, gperftools, jemalloc, mimalloc, version};

    /// A setting of one knob that is in a bundle of its own.
    pub fn planted(bundle: &str, moves: Moved) -> Setting {
        let knob = Knob {
            name: format!("KNOB_{}", bundle.to_uppercase()),
            bundle: bundle.into(),
            values: vec!["1".into()],
            moves: vec![moves],
            ..Knob::default()
        };
        settings("own", &[knob]).remove(0)
    }

    #[test]
    fn a_bundle_is_set_together_and_its_knobs_also_alone() {
        let knobs = &catalog().unwrap().allocator("glibc").unwrap().knobs;
        let all = settings("glibc", knobs);
        let thresholds = &all[0];
        assert_eq!(thresholds.name, "glibc+thresholds-1");
        assert_eq!(
            thresholds.environment["GLIBC_TUNABLES"],
            "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864"
        );
        assert!(thresholds.is_counted());
        let alone: Vec<String> = thresholds.alone().iter().map(Setting::words).collect();
        assert_eq!(
            alone,
            ["mmap_threshold=33554432", "trim_threshold=67108864"]
        );
        // Two of one bundle exclude each other; two bundles are joined.
        assert!(thresholds.with(&all[1]).is_none());
        let arenas = all
            .iter()
            .find(|setting| setting.name == "glibc+arenas-2")
            .unwrap();
        let both = thresholds.with(arenas).unwrap();
        assert_eq!(both.name, "glibc+thresholds-1+arenas-2");
        assert!(both.environment["GLIBC_TUNABLES"].ends_with(":glibc.malloc.arena_max=2"));
        assert!(!both.is_counted());
        let given = Setting::given("glibc", 1, "GLIBC_TUNABLES", "glibc.malloc.perturb=1");
        let joined = arenas.with(&given).unwrap();
        assert_eq!(
            joined.environment["GLIBC_TUNABLES"],
            "glibc.malloc.arena_max=2:glibc.malloc.perturb=1"
        );
        assert!(
            joined
                .words()
                .ends_with("GLIBC_TUNABLES=glibc.malloc.arena_max=2:glibc.malloc.perturb=1")
        );
    }

    /// What the family's own parser makes of a setting, a part each; nothing if it has no parser here.
    fn judged(family: &str, knob: &Knob, value: &str) -> Vec<Judged> {
        let all = match family {
            "glibc" | "tcmalloc" => {
                let text = format!("{}={value}", knob.name);
                heapmark_which::settings::glibc::tunables(&text, Some(version("2.39")))
            }
            "jemalloc" => {
                let built = jemalloc::Built {
                    version: Some(version("5.3.1")),
                    has_prof: false,
                };
                jemalloc::parse(&format!("{}:{value}", knob.name), built)
            }
            "mimalloc" => {
                let option = mimalloc::option(&knob.name).unwrap();
                vec![mimalloc::variable(&knob.name, value, &[option])]
            }
            "gperftools" => vec![gperftools::variable(&knob.name, value, |_| true)],
            _ => panic!("{family} has knobs, and no parser"),
        };
        all.into_iter().map(|setting| setting.judged).collect()
    }

    #[test]
    fn the_familys_own_parser_takes_each_value_of_each_knob() {
        let with_knobs: Vec<_> = catalog()
            .unwrap()
            .allocators
            .iter()
            .filter(|allocator| !allocator.knobs.is_empty())
            .collect();
        let names: Vec<&str> = with_knobs
            .iter()
            .map(|allocator| &*allocator.name)
            .collect();
        for name in [
            "glibc",
            "jemalloc",
            "mimalloc2",
            "mimalloc3",
            "gperftools",
            "tcmalloc",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        for allocator in with_knobs {
            for knob in &allocator.knobs {
                for value in &knob.values {
                    let all = judged(&allocator.family, knob, value);
                    // This tunable is of glibc's threads, not of its malloc.
                    let is_of_malloc = knob.name != "glibc.pthread.rseq";
                    assert_eq!(all.len(), usize::from(is_of_malloc), "{}", knob.name);
                    let is_taken = |judgement: &Judged| matches!(judgement, Judged::Accepted(_));
                    assert!(all.iter().all(is_taken), "{}={value}: {all:?}", knob.name);
                }
            }
        }
        // The check can fail.
        let typo = Knob {
            name: "glibc.malloc.arenas".into(),
            ..Knob::default()
        };
        assert!(matches!(
            judged("glibc", &typo, "1")[..],
            [Judged::Ignored(_)]
        ));
    }
}
