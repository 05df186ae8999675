//! A run as text for a pull request: at most 12 lines that state what was compared, how sure the answer is, where it was measured, and how
//! to measure it again.

use super::again::again;
use super::conclusion::conclusion;
use super::document::Sheet;
use super::machine::machine_name;
use super::render::{escaped, row};
use super::text::{count, join, plain};
use super::{sheet, timed};
use crate::analyse::{Analysis, Role};
use crate::catalog::Source;
use crate::store::{AllocatorInfo, RunFile};

/// The most rows of the table: with verdict, headings, machine, versions and command, the text has twelve lines.
const MOST_ROWS: usize = 5;

/// The answer, the table of the only case or over all cases, what was measured where, and the command; empty without a table.
pub fn pr(run: &RunFile, analysis: &Analysis) -> String {
    let mut lines = vec![
        format!("**{}**", escaped(&conclusion(analysis))),
        String::new(),
    ];
    let Sheet { columns, rows, .. } = match analysis.only_case() {
        Some(case) => timed::in_brief(case, analysis),
        None => sheet::overall(analysis),
    };
    if rows.is_empty() {
        return String::new();
    }
    let line = |row: String| row.trim_end().to_owned();
    lines.extend([line(row(&columns)), "|---".repeat(columns.len()) + "|"]);
    lines.extend(rows.iter().take(MOST_ROWS).map(|cells| line(row(cells))));
    lines.push(String::new());
    let more = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("And {}. ", count(more, "more row")),
    };
    let (measured, releases) = (measured(run, analysis), releases(run));
    lines.push(format!("{more}{measured}; {releases}."));
    // Between backticks, no character can be escaped.
    let is_shown = |line: &String| plain(line) == *line && !line.contains('`');
    let line = again(run, &[]).filter(is_shown);
    lines.extend(line.map(|line| format!("Again: `{line}`")));
    lines.join("\n") + "\n"
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
