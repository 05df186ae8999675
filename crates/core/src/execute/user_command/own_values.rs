//! Reads the numbers that a process reports about itself. A number that is missing, or that cannot be part of a ratio,
//! is a fault of the process and never left out.

use super::tools::{self, Named, by_regex, json, number};
use super::{CommandRunner, Outcome};
use crate::execute::Measurement;
use crate::execute::exit::End;
use crate::execute::memory_file::text;
use crate::plan::{OwnValue, ReadValue, ValueFrom};
use heapmark_stats::median;
use regex_lite::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Figure: the first of the command's numbers if less of it is better, otherwise its reciprocal.
pub const VALUE_COST: &str = "value_cost";

/// The state of files before a process wrote its numbers.
pub(super) struct Before {
    stdout: Option<File>,
    files: Vec<(PathBuf, Option<Written>)>,
}

impl CommandRunner<'_> {
    /// Notes the state of files; to be called before a process starts.
    pub(super) fn before_values(&self, stdout: Option<File>) -> Before {
        let file = |value: &OwnValue| match &value.from {
            ValueFrom::File(file) => Some(self.command.folder.join(file)),
            _ => None,
        };
        let files = self.command.values.iter().filter_map(file);
        let state = |file: PathBuf| {
            let state = state(&file);
            (file, state)
        };
        Before {
            stdout,
            files: files.map(state).collect(),
        }
    }

    /// Returns whether a file is needed for what the command prints.
    pub(super) fn reads_values_of_stdout(&self) -> bool {
        let mut values = self.command.values.iter();
        values.any(|value| value.from == ValueFrom::Stdout)
    }

    /// Adds the numbers of a process to its figures; returns a fault if one is missing.
    pub(super) fn valued(
        &self,
        before: Option<&Before>,
        end: &End,
        measurement: &mut Measurement,
    ) -> Option<Outcome> {
        for (place, value) in self.command.values.iter().enumerate() {
            let read = self
                .text_of(value, before, end)
                .and_then(|text| read(value, &text));
            let (number, count) = match read {
                Ok(read) => read,
                Err(why) => {
                    let what = format!("no value {}: {why}", value.name);
                    return Some(Outcome::WrongResult { what });
                }
            };
            let figures = &mut measurement.figures;
            figures.insert(value.figure(), number);
            if count > 1 {
                figures.insert(value.repetitions(), count as f64);
            }
            if place == 0 {
                let cost = if value.higher { number.recip() } else { number };
                figures.insert(VALUE_COST.into(), cost);
            }
        }
        None
    }

    fn text_of(
        &self,
        value: &OwnValue,
        before: Option<&Before>,
        end: &End,
    ) -> Result<String, String> {
        let before = before.ok_or("nothing was kept of it")?;
        match &value.from {
            ValueFrom::Stdout => {
                let file = before.stdout.as_ref().ok_or("its stdout was not kept")?;
                Ok(text(file, 0))
            }
            ValueFrom::Stderr => Ok(end.stderr()),
            ValueFrom::File(file) => {
                let file = self.command.folder.join(file);
                let known = before.files.iter().find(|(known, _)| *known == file);
                let read = fs::read_to_string(&file)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
                match known {
                    Some((_, state)) if *state == self::state(&file) => Err(format!(
                        "{} was not written by this process",
                        file.display()
                    )),
                    _ => Ok(read),
                }
            }
        }
    }
}

/// What changes when a file is written: its inode, and the time in seconds and nanoseconds.
#[derive(PartialEq)]
struct Written(u64, i64, i64);

fn state(file: &Path) -> Option<Written> {
    let of = |metadata: Metadata| Written(metadata.ino(), metadata.mtime(), metadata.mtime_nsec());
    file.metadata().ok().map(of)
}

/// Reads a number from a text: the median of its repetitions there, and how many there are.
fn read(value: &OwnValue, text: &str) -> Result<(f64, usize), String> {
    let from = &value.from;
    let (found, benchmark) = match &value.read {
        ReadValue::Regex(expression) => (by_regex(expression, text)?, None),
        ReadValue::Json(path) => (by_path(path, &json(text)?)?, None),
        ReadValue::Tool { tool, benchmark } => {
            let tool = tools::named(tool).ok_or("an unknown tool")?;
            ((tool.read)(text)?, benchmark.as_deref())
        }
    };
    let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let listed = || names.iter().copied().collect::<Vec<_>>().join(", ");
    let wanted = match (benchmark, names.first()) {
        (_, None) => return Err(format!("nothing like it in {from}")),
        (Some(wanted), _) if names.contains(wanted) => wanted,
        (Some(wanted), _) => return Err(format!("no benchmark {wanted} in {from}: {}", listed())),
        (None, Some(only)) if names.len() == 1 => *only,
        (None, _) => {
            return Err(format!(
                "several benchmarks in {from}, of which one must be named: {}",
                listed()
            ));
        }
    };
    let repetitions = found.iter().filter(|(name, _)| name == wanted);
    let numbers: Vec<f64> = repetitions.map(|(_, number)| *number).collect();
    match median(&numbers) {
        Some(number) if number.is_finite() && number > 0.0 => Ok((number, numbers.len())),
        Some(number) => Err(format!("{number} in {from}, of which nothing is a ratio")),
        None => Err(format!("nothing like it in {from}")),
    }
}

/// Returns all numbers at a path of a JSON document: `results[0].times`, `benchmarks[*].real_time`.
fn by_path(path: &str, document: &Value) -> Result<Named, String> {
    let mut found = vec![document];
    for step in steps(path) {
        found = found.iter().flat_map(|value| at(value, step)).collect();
        if found.is_empty() {
            return Err(format!("nothing at {step} of {path}"));
        }
    }
    let numbers = found.iter().map(|value| match value {
        Value::Array(many) => many.iter().map(|one| of_json(one, path)).collect(),
        one => Ok(vec![of_json(one, path)?]),
    });
    let numbers: Result<Vec<Vec<f64>>, String> = numbers.collect();
    let all = numbers?.into_iter().flatten();
    Ok(all.map(|number| (String::new(), number)).collect())
}

fn of_json(value: &Value, path: &str) -> Result<f64, String> {
    match value {
        Value::String(text) => number(text),
        value => value
            .as_f64()
            .ok_or_else(|| format!("{value} at {path} is no number")),
    }
}

/// Returns the names and places of a path.
fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.split(['.', '[', ']']).filter(|step| !step.is_empty())
}

fn at<'v>(value: &'v Value, step: &str) -> Vec<&'v Value> {
    match value {
        Value::Array(many) if step == "*" => many.iter().collect(),
        Value::Object(many) if step == "*" => many.values().collect(),
        Value::Array(many) => step
            .parse()
            .ok()
            .and_then(|at: usize| many.get(at))
            .into_iter()
            .collect(),
        value => value.get(step).into_iter().collect(),
    }
}

/// Returns why no number could ever be read in this way; `None` if one may be.
pub fn unreadable(read: &ReadValue) -> Option<String> {
    match read {
        ReadValue::Regex(expression) => match Regex::new(expression) {
            Err(error) => Some(format!("{expression:?} is no regular expression: {error}")),
            Ok(regex) if regex.captures_len() != 2 => Some(format!(
                "{expression:?} has {} groups: put the number, and only it, in parentheses",
                regex.captures_len() - 1
            )),
            Ok(_) => None,
        },
        ReadValue::Json(path) => steps(path).next().is_none().then(|| "an empty path".into()),
        ReadValue::Tool { .. } => None,
    }
}
