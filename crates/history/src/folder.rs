//! The directory of a history: `history.json`, and a stored run in `runs/N` for each time that it has grown.

use anyhow::{Context, Result, bail};
use heapmark_core::file::{self, PUBLIC, WithPath, make_folder, read_stored};
use heapmark_core::store;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FILE: &str = "history.json";
const SCHEMA: u32 = 1;

/// What a history measures, and what it has measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct History {
    schema: u32,
    /// The family; empty for builds of the user's own.
    pub family: String,
    /// The work of each version: what follows `heapmark run` or, with a command, `heapmark try`.
    /// All runs of a history have the same.
    pub work: Vec<String>,
    /// The user's command; empty for workloads.
    pub command: Vec<String>,
    /// The version that all others are compared with, in every run.
    pub reference: String,
    /// All versions, the oldest first.
    pub versions: Vec<SeriesVersion>,
    /// The history's runs, in order.
    pub runs: Vec<Part>,
}

/// A version of an allocator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeriesVersion {
    /// The version's name in tables.
    pub name: String,
    /// The word that stands for the version after `-a`.
    pub word: String,
}

/// A run of a history, in `runs/N`, N from 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The names of the versions that the run measures.
    pub versions: Vec<String>,
    /// Whether the run is complete.
    pub whole: bool,
}

impl History {
    /// A history that has measured nothing yet.
    pub fn new(family: String, work: Vec<String>, command: Vec<String>) -> History {
        History {
            schema: SCHEMA,
            family,
            work,
            command,
            reference: String::new(),
            versions: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// The subject of the history: the family, or builds.
    pub fn of_what(&self) -> &str {
        match self.family.as_str() {
            "" => "builds",
            family => family,
        }
    }

    /// Reads the history in a directory, if there is one. Its words are programs to start: those of
    /// another user are refused. A last run that was refused never began, and is left out.
    pub fn read(dir: &Path) -> Result<Option<History>> {
        let file = dir.join(FILE);
        if !file::is_there(&file) {
            return Ok(None);
        }
        store::refuse_of_others(dir, FILE, "go on with a copy of your own (cp -r)")?;
        let text = read_stored(&file).with_path("cannot read", &file)?;
        let mut history: History = serde_json::from_slice(&text)
            .with_context(|| format!("{} is no history", file.display()))?;
        if history.schema != SCHEMA {
            bail!(
                "{} has schema {}, and this heapmark knows {SCHEMA}",
                file.display(),
                history.schema
            );
        }
        while let Some(last) = history.runs.len().checked_sub(1)
            && !store::head_of(&run_in(dir, last)).is_file()
        {
            history.runs.pop();
        }
        Ok(Some(history))
    }

    /// Writes the history to a directory.
    pub fn keep(&self, dir: &Path) -> Result<()> {
        let runs = dir.join("runs");
        make_folder(&runs).with_path("cannot create", &runs)?;
        let file = dir.join(FILE);
        let text = serde_json::to_string_pretty(self)? + "\n";
        file::replace(&file, text.as_bytes(), PUBLIC).with_path("cannot write", &file)
    }

    /// Whether a run was to measure a version.
    pub fn has_tried(&self, version: &SeriesVersion) -> bool {
        let mut tried = self.runs.iter().flat_map(|run| &run.versions);
        tried.any(|name| *name == version.name)
    }

    /// Two known versions that have the other order in a list of versions, the one that is older here first.
    pub fn disordered<'v>(&self, asked: &'v [SeriesVersion]) -> Option<(&'v str, &'v str)> {
        let place = |version: &'v SeriesVersion| {
            let mut known = self.versions.iter();
            let place = known.position(|known| known.name == version.name)?;
            Some((place, version.name.as_str()))
        };
        let places: Vec<(usize, &str)> = asked.iter().filter_map(place).collect();
        let pair = places.windows(2).find(|pair| pair[0].0 > pair[1].0)?;
        Some((pair[1].1, pair[0].1))
    }

    /// Adds versions, each after the one that it follows in `order`, or at the beginning. Known versions get the words that
    /// were given last: a library may have moved.
    pub fn add(&mut self, order: &[SeriesVersion]) {
        let mut place = 0;
        for version in order {
            match self
                .versions
                .iter()
                .position(|known| known.name == version.name)
            {
                Some(known) => {
                    self.versions[known] = version.clone();
                    place = known + 1;
                }
                None => {
                    self.versions.insert(place, version.clone());
                    place += 1;
                }
            }
        }
    }
}

/// The directory of a run.
pub fn run_in(dir: &Path, number: usize) -> PathBuf {
    dir.join("runs").join((number + 1).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_core::file::Draft;

    fn versions(names: &[&str]) -> Vec<SeriesVersion> {
        let of = |name: &&str| SeriesVersion {
            name: name.to_string(),
            word: name.to_string(),
        };
        names.iter().map(of).collect()
    }

    #[test]
    fn what_is_added_stands_where_its_list_has_it() {
        let mut history = History::new("f".into(), Vec::new(), Vec::new());
        let mut grows = |added: &[&str], all: &[&str]| {
            history.add(&versions(added));
            assert_eq!(history.versions, versions(all));
        };
        grows(&["3", "5"], &["3", "5"]);
        grows(&["1", "3", "4", "5"], &["1", "3", "4", "5"]);
        grows(&["5", "6"], &["1", "3", "4", "5", "6"]);
        grows(&["0"], &["0", "1", "3", "4", "5", "6"]);
        let disordered = |asked: &[&str]| {
            let asked = versions(asked);
            let pair = history.disordered(&asked);
            pair.map(|(older, newer)| format!("{older} {newer}"))
        };
        assert_eq!(disordered(&["1", "2", "5"]), None);
        assert_eq!(disordered(&["5", "2", "1"]), Some("1 5".into()));
    }

    #[test]
    fn the_word_of_a_library_is_the_one_that_was_given_last() {
        let mut history = History::new(String::new(), Vec::new(), Vec::new());
        history.add(&versions(&["v1"]));
        let moved = SeriesVersion {
            name: "v1".into(),
            word: "v1=/elsewhere.so".into(),
        };
        history.add(std::slice::from_ref(&moved));
        assert_eq!(history.versions, [moved]);
    }

    #[test]
    fn a_run_that_never_began_is_none() {
        let folder = Draft::folder(&std::env::temp_dir()).unwrap();
        let dir = folder.path();
        let mut history = History::new("f".into(), Vec::new(), Vec::new());
        let part = |whole| Part {
            versions: vec!["v1".into()],
            whole,
        };
        history.runs = vec![part(true), part(false)];
        history.keep(dir).unwrap();
        let first = run_in(dir, 0);
        make_folder(&first).unwrap();
        std::fs::write(store::head_of(&first), "").unwrap();
        let read = History::read(dir).unwrap().unwrap();
        assert_eq!(read.runs.len(), 1);
        assert!(read.runs[0].whole);
    }
}
