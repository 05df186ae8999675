//! The command line that repeats a measurement.

use super::text::{join, typed};
use crate::analyse::distinct;
use crate::catalog::Source;
use crate::execute::Subject;
use crate::plan::{AskedTurns, Case, OwnValue, Plan, ReadValue};
use crate::store::RunFile;

/// Returns the command line that repeats a measurement, with more flags; `None` if that needs flags that the run does not store.
pub fn again(run: &RunFile, more: &[String]) -> Option<String> {
    let plan = &run.plan;
    let is_git = |subject: &Subject| matches!(subject.allocator.source, Source::Git(_));
    let has_factor = plan.cases.iter().any(|case| case.factor.is_some());
    if !plan.mode.spec().plain
        || !plan.huge_pages.is_machines()
        || has_factor
        || run.subjects.iter().any(is_git)
    {
        return None;
    }
    let mut words = vec!["heapmark".to_owned()];
    let mut commands = plan.cases.iter().filter_map(|case| case.command());
    let Some(command) = commands.find(|command| command.real.is_none()) else {
        words.push("run".into());
        let has_own_threads = |case: &Case| case.is_replay() || case.is_real_program();
        match run.suite.as_str() {
            "custom" if plan.cases.iter().any(has_own_threads) => return None,
            "custom" => words.extend(chosen(run)?),
            // These runs are planned by other commands.
            "noise" | "selftest" => return None,
            suite => {
                words.push(suite.into());
                if !run.threads.is_empty() {
                    words.extend(["-t".to_owned(), join(&run.threads, ",")]);
                }
            }
        }
        for change in &run.set {
            words.extend(["--set".to_owned(), change.clone()]);
        }
        words.extend(["--preset".to_owned(), run.preset.clone()]);
        if plan.cases.iter().any(Case::is_calibrated) {
            words.extend(["--target-ms".to_owned(), plan.target_ms.to_string()]);
        }
        words.extend(turns(plan));
        words.extend(allocators(run));
        words.extend_from_slice(more);
        return Some(typed(words.iter().map(String::as_str)));
    };
    let is_fed = command.stdin.is_some() || command.piped.is_some();
    let is_served = command.client.is_some() || command.prepare.is_some();
    if is_fed || is_served || command.expect_exit.is_some() {
        return None;
    }
    words.push("try".into());
    let as_built = |subject: &Subject| matches!(subject.allocator.source, Source::AsCalled);
    if !run.subjects.iter().any(as_built) {
        words.extend(allocators(run));
    }
    words.extend(turns(plan));
    for value in &command.values {
        words.extend(of_value(value));
    }
    for variant in &command.variants {
        let line = command.as_variant(Some(variant)).line();
        words.extend(["--variant".to_owned(), format!("{}={line}", variant.name)]);
        for (name, value) in &variant.environment {
            words.extend([
                "--variant-env".to_owned(),
                format!("{}={name}={value}", variant.name),
            ]);
        }
    }
    words.extend_from_slice(more);
    let line = typed(words.iter().map(String::as_str));
    Some(match command.variants.is_empty() {
        true => format!("{line} -- {}", command.line()),
        false => line,
    })
}

/// Returns the flags for workloads that no suite has chosen; `None` if not all of them ran with the same threads.
fn chosen(run: &RunFile) -> Option<[String; 4]> {
    let timed = || run.plan.cases.iter().filter(|case| !case.beside);
    let names = distinct(timed().map(|case| case.workload.as_str()));
    let threads = distinct(timed().map(|case| case.threads));
    let is_all = names.len() * threads.len() == timed().count();
    is_all.then(|| {
        [
            "-w".into(),
            join(names, ","),
            "-t".into(),
            join(threads, ","),
        ]
    })
}

/// The flags that say who takes turns, unless that is as always.
fn turns(plan: &Plan) -> Vec<String> {
    let lengths_ms = plan.turn_lengths_ms.clone();
    if lengths_ms.is_empty() {
        return vec!["--alone".into()];
    }
    let by = plan.cases.iter().find_map(|case| case.turns);
    match by.map(|by| AskedTurns { by, lengths_ms }) {
        Some(asked) if asked != AskedTurns::default() => vec!["--turns".into(), asked.to_string()],
        _ => Vec::new(),
    }
}

/// What `-a` has for an allocator of this name that is no entry: a library's file, or a commit.
pub fn named(name: &str, subject: &Subject) -> String {
    match &subject.allocator.source {
        Source::Path { files } => {
            // A library that is refused has no file that was found.
            let found = subject.library.files.first();
            let file = found.or(files.first());
            file.map_or_else(
                || name.to_owned(),
                |file| format!("{name}={}", file.display()),
            )
        }
        Source::Git(commit) => {
            format!("{name}=git:{}@{}", commit.repository.display(), commit.hash)
        }
        _ => name.to_owned(),
    }
}

/// The flags that choose the allocators: `-a glibc,mine=/path/lib.so --baseline mine`.
fn allocators(run: &RunFile) -> Vec<String> {
    let words = run.plan.allocators.iter().filter_map(|row| {
        // The null allocator is added without a flag.
        let info = run.allocators.iter().find(|info| info.name == *row);
        if info.is_some_and(|info| info.tier == "floor") {
            return None;
        }
        let subject = run
            .subjects
            .iter()
            .find(|subject| subject.allocator.name == *row);
        // The row of a build has the name `build+allocator`.
        let name = row.split_once('+').map_or(row.as_str(), |(_, name)| name);
        Some(subject.map_or_else(|| name.to_owned(), |subject| named(name, subject)))
    });
    let names = join(distinct(words), ",");
    let mut words = vec!["-a".to_owned(), names];
    let baseline = run.plan.baseline.rsplit('+').next().unwrap_or_default();
    // All suites, and `try`, compare with glibc by default.
    if baseline != "glibc" {
        words.extend(["--baseline".to_owned(), baseline.to_owned()]);
    }
    words
}

fn of_value(value: &OwnValue) -> Vec<String> {
    let better = if value.higher { "higher" } else { "lower" };
    let unit = match value.unit.as_str() {
        "" => String::new(),
        unit => format!(":{unit}"),
    };
    let head = format!("{}:{better}{unit}", value.name);
    let mut words = match &value.read {
        ReadValue::Regex(text) => vec!["--value".to_owned(), format!("{head}={text}")],
        ReadValue::Json(path) => vec!["--value-json".to_owned(), format!("{head}={path}")],
        ReadValue::Tool { tool, benchmark } => {
            let benchmark = benchmark.iter().map(|name| format!(":{name}"));
            vec![
                "--value-of".to_owned(),
                tool.clone() + &benchmark.collect::<String>(),
            ]
        }
    };
    words.extend(["--value-from".to_owned(), value.from.to_string()]);
    words
}
