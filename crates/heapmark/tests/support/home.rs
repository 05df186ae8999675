//! A user with programs and workloads of their own. Asserts nothing about heapmark itself.

use super::live::processes_of;
use super::{End, copy_program, of_purpose, samples, word};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A user's configuration, and a place for results.
pub struct Home {
    dir: TempDir,
    /// Its programs are built in a cache of its own.
    own_cache: bool,
}

impl Home {
    pub fn new() -> Home {
        Home {
            dir: tempfile::tempdir().unwrap(),
            own_cache: true,
        }
    }

    /// With the cache that all tests share, for programs that take long to build.
    pub fn with_the_shared_cache() -> Home {
        Home {
            own_cache: false,
            ..Home::new()
        }
    }

    /// A path in the folder.
    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// A file of the user's configuration.
    pub fn write(&self, path: &str, text: &str) -> &Home {
        let path = self.at("config/heapmark").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A program of one file.
    pub fn program(&self, name: &str, toml: &str, file: &str, text: &str) -> &Home {
        self.write(
            &format!("programs/{name}/program.toml"),
            &format!("name = \"{name}\"\n{toml}"),
        );
        self.write(&format!("programs/{name}/{file}"), text)
    }

    /// A script in which `$NAP` is a `sleep` of this home alone.
    pub fn with_nap(&self, script: &str) -> String {
        copy_program("/bin/sleep", self.at("nap"));
        format!("NAP={}\n{script}", self.at("nap").display())
    }

    /// Whether one of these sleeps is still there.
    pub fn naps(&self) -> bool {
        processes_of(&self.at("nap")) > 0
    }

    /// heapmark in the caller's environment, in which the compilers of many languages look for their own things.
    pub fn heapmark(&self, arguments: &[&str]) -> End {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
        command.env("XDG_CONFIG_HOME", self.at("config"));
        if self.own_cache {
            command.env("HEAPMARK_CACHE", self.at("cache"));
        }
        End::of(
            command
                .args(arguments)
                .current_dir(self.dir.path())
                .output()
                .unwrap(),
        )
    }

    /// Runs so many blocks and nothing else, in place of an earlier run, and returns stdout and the records.
    pub fn run(&self, blocks: u32, arguments: &[&str]) -> (String, Vec<Value>) {
        let _ = fs::remove_dir_all(self.at("run"));
        let blocks = blocks.to_string();
        let plain = [
            "run",
            "-o",
            "run",
            "--seed",
            "1",
            "--no-aa-copy",
            "--no-floor",
            "--no-repeat",
            "--blocks",
            &blocks,
        ];
        let end = self.heapmark(&[&plain, arguments].concat());
        assert!(
            self.at("run/samples.jsonl").exists(),
            "{}{}",
            end.stdout,
            end.stderr
        );
        (end.stdout, samples(&self.at("run")))
    }

    /// What `heapmark list languages` says of each.
    pub fn programs(&self) -> BTreeMap<String, String> {
        let end = self.heapmark(&["list", "languages", "--format", "json"]);
        let list: Vec<Value> =
            serde_json::from_str(&end.stdout).unwrap_or_else(|_| panic!("{}", end.stderr));
        list.iter()
            .map(|one| (word(one, "name").into(), word(one, "state").into()))
            .collect()
    }
}

/// The record of a row that was run for this.
pub fn record<'a>(records: &'a [Value], purpose: &str, row: &str) -> &'a Value {
    let mut of_row = of_purpose(records, purpose)
        .into_iter()
        .filter(|record| record["allocator"] == row);
    of_row
        .next()
        .unwrap_or_else(|| panic!("no {purpose} of {row}"))
}

/// The outcomes of a purpose by row, in words.
pub fn outcomes(records: &[Value], purpose: &str) -> BTreeMap<String, String> {
    let words = |outcome: &Value| {
        let all = outcome
            .as_object()
            .unwrap()
            .iter()
            .filter(|(key, _)| *key != "threads");
        all.map(|(_, value)| value.as_str().map_or(value.to_string(), String::from))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let of_purpose = of_purpose(records, purpose).into_iter();
    of_purpose
        .map(|record| {
            (
                word(record, "allocator").to_string(),
                words(&record["outcome"]),
            )
        })
        .collect()
}
