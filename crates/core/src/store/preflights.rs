//! `machine/before.json` and `machine/after.json`: the preflight at the start and at the end of a
//! run; `machine/prices.json`: what the machine's kernel cost at the start. Each contains a list,
//! because a resumed run begins and ends once more, and ends with a checksum, like each document of
//! the store.

use super::checksum::is_intact;
use super::files::keep;
use super::{Paths, sealed};
use crate::file::{WithPath, make_folder, read_stored};
use crate::observe::Prices;
use crate::observe::preflight::{Preflight, When};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::path::Path;

/// All preflights of a run, and the prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Preflights {
    /// Preflights before the first process of each part.
    pub before: Vec<Preflight>,
    /// Preflights after the last process of each part that ended by itself or by a signal.
    pub after: Vec<Preflight>,
    /// Prices before the first process of each part, if they were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Prices>,
}

impl Preflights {
    /// Names of the conditions that made numbers vary at any time, in the order they were seen;
    /// `None` if there was no preflight.
    pub fn warnings(&self) -> Option<Vec<String>> {
        let all: Vec<&Preflight> = self.before.iter().chain(&self.after).collect();
        let mut names: Vec<String> = Vec::new();
        for name in all.iter().flat_map(|look| look.warnings()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        (!all.is_empty()).then_some(names)
    }
}

/// Returns the preflights of a run directory.
pub(super) fn read(dir: &Path, paths: Paths) -> Result<Preflights> {
    Ok(Preflights {
        before: list(dir, BEFORE, paths)?,
        after: list(dir, AFTER, paths)?,
        prices: list(dir, PRICES, paths)?,
    })
}

/// Adds a preflight.
pub(super) fn add(dir: &Path, when: When, look: Preflight) -> Result<()> {
    let file = match when {
        When::Before => BEFORE,
        When::After => AFTER,
    };
    append(dir, file, look)
}

pub(super) const FOLDER: &str = "machine";

/// A file in the folder `machine`, and the key of the list in it.
type ListFile = (&'static str, &'static str);

const BEFORE: ListFile = ("machine/before.json", "preflights");
const AFTER: ListFile = ("machine/after.json", "preflights");
pub(super) const PRICES: ListFile = ("machine/prices.json", "prices");

/// Returns whether a file in the folder `machine` has the name of a list.
pub(super) fn is_list(file: &Path) -> bool {
    [BEFORE, AFTER, PRICES]
        .iter()
        .any(|(name, _)| file.ends_with(name))
}

/// Returns the list in a file; empty if there is no such file.
fn list<T: DeserializeOwned>(dir: &Path, (name, key): ListFile, paths: Paths) -> Result<Vec<T>> {
    let path = dir.join(name);
    let text = match read_stored(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_path("cannot read", &path)?,
    };
    parse(&text, key, paths).with_context(|| {
        format!(
            "{} is damaged: without it the run can be read, but without its {key}",
            path.display()
        )
    })
}

fn parse<T: DeserializeOwned>(text: &[u8], key: &str, paths: Paths) -> Result<Vec<T>> {
    ensure!(is_intact(text), "its checksum does not fit");
    let mut file: Map<String, Value> = serde_json::from_slice(&paths.of(text))?;
    Ok(serde_json::from_value(
        file.remove(key).unwrap_or_default(),
    )?)
}

/// Adds an entry to the list in a file.
pub(super) fn append<T: Serialize + DeserializeOwned>(
    dir: &Path,
    file: ListFile,
    one: T,
) -> Result<()> {
    let mut all = list(dir, file, Paths::Stored)?;
    all.push(one);
    let folder = dir.join(FOLDER);
    make_folder(&folder).with_path("cannot create", &folder)?;
    let (name, key) = file;
    let text = serde_json::to_string_pretty(&json!({ key: all }))?;
    keep(dir, name, sealed(&text))
}

/// The prices of a machine whose page faults cost this much when memory is taken again.
#[cfg(test)]
pub fn priced(fault_ns: f64) -> Prices {
    let price = crate::observe::machine::prices::Price {
        name: "page-fault-again".into(),
        median_ns: fault_ns,
        least_ns: 0.9 * fault_ns,
        most_ns: 1.5 * fault_ns,
        repetitions: 3,
        typical_ns: Some(1_000.0),
        means: String::new(),
    };
    Prices {
        measured: "2026-01-02T03:04:05Z".into(),
        prices: vec![price],
    }
}

#[cfg(test)]
mod tests {
    use super::read as read_with;
    use super::*;
    use crate::observe::preflight::{ItemState, PreflightItem};
    use std::fs;

    fn read(dir: &Path) -> Result<Preflights> {
        read_with(dir, Paths::Stored)
    }

    fn look(warnings: &[&str]) -> Preflight {
        let item = |name: &&str| PreflightItem {
            name: name.to_string(),
            found: None,
            state: ItemState::Warning,
            means: String::new(),
            change: String::new(),
        };
        Preflight {
            looked: String::new(),
            root: None,
            items: warnings.iter().map(item).collect(),
        }
    }

    #[test]
    fn each_part_of_a_run_adds_a_look_and_a_warning_is_named_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()).unwrap().warnings(), None);
        add(dir.path(), When::Before, look(&[])).unwrap();
        assert_eq!(read(dir.path()).unwrap().warnings(), Some(vec![]));
        add(dir.path(), When::Before, look(&["load", "swap"])).unwrap();
        add(dir.path(), When::After, look(&["governor", "swap"])).unwrap();
        let preflights = read(dir.path()).unwrap();
        assert_eq!((preflights.before.len(), preflights.after.len()), (2, 1));
        assert_eq!(
            preflights.warnings(),
            Some(["load", "swap", "governor"].map(String::from).to_vec())
        );
    }

    #[test]
    fn each_part_of_a_run_adds_its_prices_and_damage_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let stored = || read(dir.path()).map(|all| all.prices);
        assert_eq!(stored().unwrap(), []);
        for ns in [250.0, 4_400.0] {
            append(dir.path(), PRICES, priced(ns)).unwrap();
        }
        assert_eq!(stored().unwrap(), [priced(250.0), priced(4_400.0)]);
        assert_eq!(read(dir.path()).unwrap().warnings(), None);
        let path = dir.path().join(PRICES.0);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("4400", "4401")).unwrap();
        let error = stored().unwrap_err().to_string();
        assert!(
            error.contains("machine/prices.json is damaged") && error.ends_with("its prices"),
            "{error}"
        );
    }

    #[test]
    fn a_damaged_look_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(FOLDER)).unwrap();
        fs::write(dir.path().join("machine/after.json"), "[{").unwrap();
        assert!(
            read(dir.path())
                .unwrap_err()
                .to_string()
                .contains("machine/after.json is damaged")
        );
    }

    #[test]
    fn a_changed_word_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), When::Before, look(&["swap"])).unwrap();
        let before = dir.path().join("machine/before.json");
        let text = fs::read_to_string(&before).unwrap();
        fs::write(&before, text.replace("swap", "snap")).unwrap();
        assert!(
            format!("{:#}", read(dir.path()).unwrap_err()).contains("its checksum does not fit")
        );
        assert!(
            add(dir.path(), When::Before, look(&[])).is_err(),
            "no look is added to damage"
        );
    }
}
