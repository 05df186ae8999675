//! A run as text for a pull request: at most 12 lines that state what was compared, how sure the answer is, where it was measured, and how
//! to measure it again.

use super::conclusion::conclusion;
use super::document::Sheet;
use super::machine::machine_name;
use super::render::{escaped, row};
use super::text::{count, join, typed};
use super::{sheet, timed};
use crate::analyse::{Analysis, Role, distinct};
use crate::catalog::{Source, Tier};
use crate::execute::Subject;
use crate::plan::{Case, OwnValue, ReadValue};
use crate::store::{AllocatorInfo, RunFile};

/// The most rows of the table: with verdict, headings, machine, versions and command, the text has twelve lines.
const MOST_ROWS: usize = 5;

/// The answer, a table, what was measured where, and the command.
pub fn pr(run: &RunFile, analysis: &Analysis) -> String {
    let mut lines = vec![
        format!("**{}**", escaped(&conclusion(analysis))),
        String::new(),
    ];
    lines.extend(table(analysis));
    lines.push(String::new());
    lines.push(format!("{}; {}.", measured(run, analysis), releases(run)));
    lines.extend(again(run).map(|line| format!("Again: `{line}`")));
    lines.join("\n") + "\n"
}

/// The table of the only case, or over all cases.
fn table(analysis: &Analysis) -> Vec<String> {
    let Sheet { columns, rows, .. } = match analysis.only_case() {
        Some(case) => timed::in_brief(case, analysis),
        None => sheet::overall(analysis),
    };
    let line = |row: String| row.trim_end().to_owned();
    let mut lines = vec![line(row(&columns)), "|---".repeat(columns.len()) + "|"];
    lines.extend(rows.iter().take(MOST_ROWS).map(|cells| line(row(cells))));
    let more = rows.len().saturating_sub(MOST_ROWS);
    if more > 0
        && let Some(last) = lines.last_mut()
    {
        *last += &format!(" and {}", count(more, "more row"));
    }
    lines
}

fn measured(run: &RunFile, analysis: &Analysis) -> String {
    let blocks = count(analysis.planned_blocks, "block");
    let machine = machine_name(&run.machine);
    let seen = &analysis.interference;
    let noise = match seen.timed_disturbed {
        0 => String::new(),
        disturbed => format!(", {disturbed} of {} disturbed", count(seen.timed, "part")),
    };
    format!("heapmark {}, {blocks} on {machine}{noise}", run.heapmark)
}

/// What each row is: release and variables of an allocator, or the command of a build.
fn releases(run: &RunFile) -> String {
    let is_companion = |info: &&AllocatorInfo| Role::of(info, &run.plan.baseline).is_companion();
    let infos = run.allocators.iter().filter(|info| !is_companion(info));
    let subject = |name: &str| {
        run.subjects
            .iter()
            .find(|subject| subject.allocator.name == name)
    };
    let texts = infos.map(|info| {
        let is_build = subject(&info.name)
            .is_some_and(|found| matches!(found.allocator.source, Source::AsCalled));
        let what = if is_build {
            info.origin.clone()
        } else {
            info.released()
        };
        let variables = info.environment.iter().filter(|_| !is_build);
        let variables = variables.map(|(name, value)| format!(" {name}={value}"));
        format!("{} is {what}{}", info.name, variables.collect::<String>())
    });
    escaped(&join(texts, ", "))
}

/// The flags for workloads that no suite has chosen.
fn chosen(run: &RunFile) -> [String; 4] {
    let timed = || run.plan.cases.iter().filter(|case| !case.beside);
    let names = distinct(timed().map(|case| case.workload.as_str()));
    let threads = distinct(timed().map(|case| case.threads));
    [
        "-w".into(),
        join(names, ","),
        "-t".into(),
        join(threads, ","),
    ]
}

/// Returns the command line that repeats the measurement; `None` if that needs flags that the run does not store.
fn again(run: &RunFile) -> Option<String> {
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
            "custom" => words.extend(chosen(run)),
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
        words.extend(allocators(&run.subjects, run));
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
        words.extend(allocators(&run.subjects, run));
    }
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
    let line = typed(words.iter().map(String::as_str));
    Some(match command.variants.is_empty() {
        true => format!("{line} -- {}", command.line()),
        false => line,
    })
}

/// The flags that choose the allocators: `-a glibc,mine=/path/lib.so --baseline mine`.
fn allocators(subjects: &[Subject], run: &RunFile) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // The null allocator is added without a flag.
    let is_compared = |subject: &&Subject| {
        let allocator = &subject.allocator;
        run.plan.allocators.contains(&allocator.name) && allocator.tier != Tier::Floor
    };
    let compared = subjects.iter().filter(is_compared);
    for subject in compared {
        let name = &subject.allocator.name;
        // The row of a build has the name `build+allocator`.
        let name = name.split_once('+').map_or(name.as_str(), |(_, name)| name);
        let file = subject.library.files.first();
        let word = match (&subject.allocator.source, file) {
            (Source::Path { .. }, Some(file)) => format!("{name}={}", file.display()),
            _ => name.to_owned(),
        };
        if !names.contains(&word) {
            names.push(word);
        }
    }
    let baseline = run.plan.baseline.rsplit('+').next().unwrap_or_default();
    let mut words = vec!["-a".to_owned(), names.join(",")];
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
