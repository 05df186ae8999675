//! The museum as a table and as a page.

use super::cell_of;
use crate::museum::{Exhibit, Exhibited};
use heapmark_core::report::document::{Block, Cell, Mark, Sheet};
use heapmark_core::report::page::head::Head;
use heapmark_core::report::page::lay_out;
use heapmark_core::report::page::section::Section;
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{self, count};
use serde::Serialize;
use std::path::Path;

/// A line for each exhibit.
pub fn museum(all: &[(Exhibit, Exhibited)]) -> Vec<Block> {
    let reasons = reasons(all);
    vec![
        Block::text(conclusion(all)),
        Block::Sheet(table(all, false)),
        Block::notes(reasons),
    ]
}

/// The museum in this directory as JSON, for programs.
pub fn museum_json(all: &[(Exhibit, Exhibited)], museum: &Path) -> String {
    #[derive(Serialize)]
    struct ExhibitRow<'a> {
        #[serde(flatten)]
        exhibit: &'a Exhibit,
        command: String,
        here: &'a Exhibited,
    }
    let rows = all.iter().map(|(exhibit, here)| ExhibitRow {
        exhibit,
        command: exhibit.command(museum),
        here,
    });
    text::json(&rows.collect::<Vec<_>>())
}

/// The museum in this directory as a page.
pub fn museum_page(all: &[(Exhibit, Exhibited)], museum: &Path) -> String {
    let head = Head {
        verdict: conclusion(all),
        says: "heapmark museum: each regression was published by its users or its authors".into(),
        ..Head::default()
    };
    let commands = all.iter().filter(|(exhibit, _)| exhibit.why_not.is_none());
    let commands = commands.map(|(exhibit, _)| vec![exhibit.name.clone(), exhibit.command(museum)]);
    let commands = Sheet::of_text("", &["exhibit", "command"], commands);
    let reasons = reasons(all).into_iter().map(|reason| vec![reason]);
    let sections = vec![
        Section::of_tables("exhibits", "Exhibits", [table(all, true)]),
        Section::of_tables("commands", "Each by one command", [commands]),
        Section::of_tables(
            "not-here",
            "What is not measured, and why",
            [Sheet::of_text("", &["why"], reasons)],
        ),
    ];
    lay_out(
        "heapmark museum: regressions that shipped",
        &[head],
        &[],
        vec!["museum".into()],
        sections,
    )
}

fn conclusion(all: &[(Exhibit, Exhibited)]) -> String {
    let of = |is: fn(&Exhibited) -> bool| all.iter().filter(|(_, shown)| is(shown)).count();
    format!(
        "{} of releases that shipped: {} shown on this machine, {} of these mended since, {} not shown, {} failed, {} not measured.",
        count(all.len(), "regression"),
        of(|shown| matches!(shown, Exhibited::Shown { .. })),
        of(|shown| matches!(shown, Exhibited::Shown { mended: true, .. })),
        of(|shown| matches!(shown, Exhibited::NotShown { .. })),
        of(|shown| matches!(shown, Exhibited::Failed { .. })),
        of(|shown| matches!(
            shown,
            Exhibited::NotMeasured | Exhibited::NotPossible { .. }
        )),
    )
}

fn table(all: &[(Exhibit, Exhibited)], with_thread: bool) -> Sheet {
    let mut table = SheetOf::new("", all);
    table.add("exhibit", |(exhibit, _)| &exhibit.name);
    table.add("releases", |(exhibit, _)| {
        let mended = exhibit
            .mended
            .as_ref()
            .map(|version| format!(", mended in {version}"));
        let Exhibit {
            family, good, bad, ..
        } = exhibit;
        format!("{family} {good} to {bad}{}", mended.unwrap_or_default())
    });
    if with_thread {
        table.add("what", |(exhibit, _)| Cell::text(exhibit.about.clone()));
        table.add("thread", |(exhibit, _)| {
            Cell::text(format!("{}, {}", exhibit.thread, exhibit.date))
        });
    }
    table.add("published", |(exhibit, _)| {
        Cell::text(exhibit.published.clone())
    });
    table.add("here", |(_, shown)| match shown {
        Exhibited::Shown { ratio, .. } | Exhibited::NotShown { ratio } => cell_of(*ratio),
        _ => Cell::default(),
    });
    table.add("outcome", |(_, shown)| {
        let (word, mark) = match shown {
            Exhibited::Shown { mended: true, .. } => ("shown, mended", Mark::Same),
            Exhibited::Shown { .. } => ("shown", Mark::Slower),
            Exhibited::NotShown { .. } => ("not shown here", Mark::Unclear),
            Exhibited::Failed { .. } => ("failed", Mark::Failed),
            Exhibited::NotMeasured => ("not measured yet", Mark::Gap),
            Exhibited::NotPossible { .. } => ("not measured", Mark::Gap),
        };
        Cell {
            mark,
            ..word.into()
        }
    });
    table.sheet
}

fn reasons(all: &[(Exhibit, Exhibited)]) -> Vec<String> {
    let reason = |(exhibit, shown): &(Exhibit, Exhibited)| match shown {
        Exhibited::NotPossible { why } | Exhibited::Failed { why } => {
            Some(format!("{}: {why}.", exhibit.name))
        }
        _ => None,
    };
    all.iter().filter_map(reason).collect()
}
