//! `heapmark explain`: words of tables and documents. The binary carries the glossary, the metrics and
//! the outcomes; every row of a table there is an explanation of its first cell, and every item of a
//! list one of the words in bold. Workloads, allocators and
//! real programs explain themselves.

use super::{Exit, catalog, print};
use crate::catalog::{did_you_mean, real_program};
use crate::report;
use anyhow::Result;

/// Explain a word of the tables and documents: a term, a metric, a column
#[derive(clap::Args)]
pub struct ExplainArgs {
    /// The word, or several that are one term [default: all]
    word: Vec<String>,
}

/// Pages with tables of words.
const WORDS: &str = include_str!("../../../../docs/FAQ.md");
const METRICS: &str = include_str!("../../../../docs/METRICS.md");
const FORMAT: &str = include_str!("../../../../docs/FORMAT.md");

/// The section on outcomes of the page on files, whose other tables have keys and no words.
fn outcomes() -> &'static str {
    let (_, section) = FORMAT.split_once("\n## Outcomes\n").unwrap_or_default();
    section.split("\n#").next().unwrap_or_default()
}

/// A row of a table.
struct GlossaryEntry {
    /// The first cell: names, separated by commas.
    names: String,
    /// The cell below the heading `meaning`, or else the last cell; then the other cells, each with its heading.
    meaning: String,
}

impl GlossaryEntry {
    fn each_name(&self) -> impl Iterator<Item = &str> {
        self.names.split(", ")
    }

    fn is(&self, word: &str) -> bool {
        let is = |name: &str| name.to_lowercase() == word;
        is(&self.names) || self.each_name().any(is)
    }

    fn line(&self) -> String {
        format!("{}: {}\n", self.names, self.meaning)
    }
}

/// Runs `heapmark explain`.
pub fn run(args: ExplainArgs) -> Result<Exit> {
    let pages = [WORDS, &report::metrics(), METRICS, outcomes()];
    let mut all: Vec<GlossaryEntry> = pages.into_iter().flat_map(entries).collect();
    let word = plain(&args.word.join(" "));
    if !all.iter().any(|entry| entry.is(&word)) {
        all.extend(items(METRICS));
    }
    if !word.is_empty() && !all.iter().any(|entry| entry.is(&word)) {
        all.splice(0..0, of_catalogue()?);
    }
    let exact = || all.iter().filter(|entry| entry.is(&word));
    let found: Vec<&GlossaryEntry> = match exact().next() {
        Some(_) => exact().collect(),
        None => {
            let holds = |entry: &&GlossaryEntry| entry.names.to_lowercase().contains(&word);
            all.iter().filter(holds).collect()
        }
    };
    if found.is_empty() {
        let names = all.iter().flat_map(GlossaryEntry::each_name);
        let hint = did_you_mean(&word, names);
        refuse!("no explanation of `{word}`{hint}: see `heapmark explain`");
    }
    print(
        found
            .into_iter()
            .map(GlossaryEntry::line)
            .collect::<String>(),
    )?;
    Ok(Exit::Done)
}

/// A word as entries spell it: without what differs from row to row, as in `unclear (+14)`, `time / glibc [95 %]` and `[n = 5]`.
fn plain(word: &str) -> String {
    let word = word.to_lowercase().replace(" [95 %]", "");
    match word.split_once("(+") {
        Some((before, _)) => format!("{before}(+n)"),
        // It stands in the place of the ratio's interval.
        None if word.starts_with("[n = ") => "ratio".into(),
        None if word.starts_with("libc serves") => "libc serves n %".into(),
        None => word,
    }
}

/// An entry for each workload, allocator and real program, also in the spelling with spaces that tables may use: `jq group`.
fn of_catalogue() -> Result<Vec<GlossaryEntry>> {
    let catalog = catalog()?;
    let programs = real_program::load()?;
    let workloads = catalog
        .workloads
        .iter()
        .map(|workload| (&workload.name, &workload.about));
    let allocators = catalog
        .allocators
        .iter()
        .map(|allocator| (&allocator.name, &allocator.about));
    let programs = programs
        .iter()
        .map(|program| (&program.name, &program.about));
    let entry = |(name, about): (&String, &String)| {
        let apart = name.replace('-', " ");
        GlossaryEntry {
            names: if apart == *name {
                apart
            } else {
                format!("{name}, {apart}")
            },
            meaning: about.clone(),
        }
    };
    Ok(workloads
        .chain(allocators)
        .chain(programs)
        .map(entry)
        .collect())
}

/// The rows of all tables of a page.
fn entries(page: &str) -> Vec<GlossaryEntry> {
    let mut headings = Vec::new();
    let mut found = Vec::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(row) = cells(line) else { continue };
        if lines.next_if(|next| next.starts_with("|---")).is_some() {
            headings = row;
            continue;
        }
        let place = headings
            .iter()
            .position(|heading| heading == "meaning")
            .unwrap_or(row.len() - 1);
        let others = headings.iter().zip(&row).enumerate().skip(1);
        let others: Vec<String> = others
            .filter(|(at, (_, cell))| *at != place && !cell.is_empty())
            .map(|(_, (heading, cell))| format!("{heading} {cell}"))
            .collect();
        let (Some(names), Some(meaning)) = (row.first(), row.get(place)) else {
            continue;
        };
        found.push(GlossaryEntry {
            names: names.clone(),
            meaning: if others.is_empty() {
                meaning.clone()
            } else {
                format!("{meaning} ({})", others.join("; "))
            },
        });
    }
    found
}

/// The words in bold in the items of a page's lists, each with the rest of its item.
fn items(page: &str) -> Vec<GlossaryEntry> {
    let mut items: Vec<String> = Vec::new();
    let mut is_in_item = false;
    for line in page.lines() {
        let begin = line.strip_prefix("- ");
        let more = line.strip_prefix("  ").filter(|_| is_in_item);
        is_in_item = begin.or(more).is_some();
        match (begin, more, items.last_mut()) {
            (Some(begin), ..) => items.push(begin.to_owned()),
            (_, Some(more), Some(item)) => {
                item.push(' ');
                item.push_str(more);
            }
            _ => {}
        }
    }
    let entries = |item: &String| {
        let parts: Vec<&str> = item.split("**").collect();
        let entry = |place: usize| {
            let after = without_marks(&parts[place + 1..].concat());
            Some(GlossaryEntry {
                names: without_marks(parts[place]),
                meaning: after.strip_prefix(": ")?.into(),
            })
        };
        let names = (1..parts.len().saturating_sub(1)).step_by(2);
        names.filter_map(entry).collect::<Vec<_>>()
    };
    items.iter().flat_map(entries).collect()
}

/// The cells of a row, without Markdown marks.
fn cells(line: &str) -> Option<Vec<String>> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inside.split(" | ").map(without_marks).collect())
}

/// Removes Markdown marks from a cell: `[TEXT](TARGET)` becomes `TEXT`.
fn without_marks(cell: &str) -> String {
    let mut text = cell.trim().replace(['`', '\\'], "");
    while let Some(middle) = text.find("](") {
        let (Some(open), Some(length)) = (text[..middle].rfind('['), text[middle..].find(')'))
        else {
            break;
        };
        text.replace_range(middle..=middle + length, "");
        text.remove(open);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_two_and_of_more_columns_are_explanations_and_marks_are_none() {
        let page = "text | no row\n\n| term | meaning |\n|---|---|\n| `a_b`, c | see [D](E.md) and [F](G.md) |\n\n\
                    | metric | unit | meaning | error |\n|---|---|---|---|\n| x | ns | a time | none |\n";
        let lines: Vec<String> = entries(page).iter().map(GlossaryEntry::line).collect();
        assert_eq!(
            lines,
            ["a_b, c: see D and F\n", "x: a time (unit ns; error none)\n"]
        );
    }

    #[test]
    fn words_in_bold_of_a_list_are_explained_behind_their_colon() {
        let page = "**no**: item\n\n- **a**: one [thing](A.md)\n  and more. **b c**, **d**: two\n- **e** = three\n\n  other\n";
        let lines: Vec<String> = items(page).iter().map(GlossaryEntry::line).collect();
        assert_eq!(lines, ["a: one thing and more. b c, d: two\n", "d: two\n"]);
    }
}
