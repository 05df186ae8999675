//! Verdicts on what documents claim of hardening, as a table on the terminal, as Markdown and as
//! JSON.

use crate::document::HardeningDocument;
use crate::judge::{HardeningVerdict, JudgedHardening, SeenCell};
use crate::report::LEFT_OUT;
use comfy_table::{ColumnConstraint, Width};
use heapmark_check::definition::Form;
use heapmark_check::report::size;
use heapmark_core::analyse::distinct;
use heapmark_core::report::Screen;
use heapmark_core::report::Section;
use heapmark_core::report::markdown::row;
use heapmark_core::report::page::section::PageTable;
use heapmark_core::report::text::{count, join, json, markdown, plain};

/// Cells that a reason lists; the others are in the JSON.
const MOST_CELLS: usize = 3;

/// The head of the table.
const COLUMNS: [&str; 6] = [
    "id",
    "verdict",
    "allocator",
    "claimed",
    "feature",
    "what was seen",
];

/// One row per claim that can be judged, or per claim if `whole` documents are shown; then the
/// documents of these rows, and a line that counts the verdicts.
pub fn claims(
    all: &[JudgedHardening],
    documents: &[HardeningDocument],
    whole: bool,
    screen: Screen,
) -> String {
    let shown: Vec<&JudgedHardening> = all.iter().filter(|one| whole || is_tested(one)).collect();
    let mut out = String::new();
    if !shown.is_empty() {
        let mut table = screen.table(COLUMNS);
        let lines = shown.iter().map(|one| cells(one).map(|cell| plain(&cell)));
        table.add_rows(lines);
        let share = |percent| ColumnConstraint::UpperBoundary(Width::Percentage(percent));
        table.set_constraints([
            ColumnConstraint::ContentWidth,
            ColumnConstraint::ContentWidth,
            ColumnConstraint::ContentWidth,
            share(10),
            share(25),
        ]);
        out += &format!("{}\n\n", table.trim_fmt());
        for line in sources(documents, &shown) {
            out += &format!("{}\n", screen.wrap(&line, 2));
        }
        out.push('\n');
    }
    out += &format!("{}\n", summary(all));
    if shown.len() < all.len() {
        out += &format!("{LEFT_OUT}\n");
    }
    out
}

/// The same as a Markdown table of all claims.
pub fn claims_markdown(all: &[JudgedHardening], documents: &[HardeningDocument]) -> String {
    let mut out = row(COLUMNS) + &row(COLUMNS.map(|_| ":--"));
    out.extend(all.iter().map(|one| row(cells(one))));
    let shown: Vec<&JudgedHardening> = all.iter().collect();
    for line in sources(documents, &shown) {
        out += &format!("\n{}\n", markdown(&line));
    }
    format!("{out}\n{}\n", summary(all))
}

/// All claims, each with its reason as a sentence.
pub fn claims_json(all: &[JudgedHardening]) -> String {
    let entries = all.iter().map(|one| {
        let mut entry = serde_json::json!(one);
        entry["reason"] = reason(one).into();
        entry
    });
    json(&entries.collect::<Vec<_>>())
}

/// Whether the result could tell.
fn is_tested(one: &JudgedHardening) -> bool {
    one.verdict != HardeningVerdict::NotTestable
}

/// A line below the head. An allocator that was checked is called as in the result.
fn cells(one: &JudgedHardening) -> [String; 6] {
    [
        one.id.clone(),
        one.verdict.words().into(),
        one.entry.as_ref().unwrap_or(&one.allocator).clone(),
        one.claimed.words().into(),
        format!("{}: {}", one.feature, one.says),
        reason(one),
    ]
}

/// The documents of some claims: where they lie, and of which state.
fn sources(documents: &[HardeningDocument], shown: &[&JudgedHardening]) -> Vec<String> {
    let has_rows = |it: &&HardeningDocument| shown.iter().any(|one| one.document == it.name);
    let documents = documents.iter().filter(has_rows);
    documents
        .map(|it| {
            let remark = it.remark.iter().map(|remark| format!(" {remark}"));
            format!(
                "{}: {}; {}, {}, {}.{}",
                it.short,
                it.title,
                it.source,
                it.version,
                it.date,
                join(remark, "")
            )
        })
        .collect()
}

/// `Of 250 claims: 60 confirmed, 7 contradicted, 183 not testable here.`
fn summary(all: &[JudgedHardening]) -> String {
    let of = |wanted| all.iter().filter(|one| one.verdict == wanted).count();
    format!(
        "Of {}: {} confirmed, {} contradicted, {} not testable here. Facts about these programs, and no score.",
        count(all.len(), "claim"),
        of(HardeningVerdict::Confirmed),
        of(HardeningVerdict::Contradicted),
        of(HardeningVerdict::NotTestable)
    )
}

/// What the cells say that decided, or what is missing; for a contradicted claim the command that
/// shows it.
pub fn reason(one: &JudgedHardening) -> String {
    let mut words = Vec::new();
    match &one.why_not {
        Some(why) => words.push(why.clone()),
        None => {
            let said = distinct(one.cells.iter().map(sentence));
            let more = said.len().saturating_sub(MOST_CELLS);
            words.extend(said.into_iter().take(MOST_CELLS));
            if more > 0 {
                words.push(format!("and {more} more"));
            }
        }
    }
    words.extend(one.again.iter().map(|again| format!("again: {again}")));
    join(words, "; ")
}

/// `double-free 24 B: absorbed`.
fn sentence(cell: &SeenCell) -> String {
    let form = match cell.form {
        Form::Naive => "",
        Form::Informed => " informed",
    };
    format!(
        "{} {}{form}: {}",
        cell.check,
        size(cell.size_bytes),
        cell.said
    )
}

/// What documents say of hardening; nothing if the result can judge none of it.
pub fn section(documents: &[HardeningDocument], claims: &[JudgedHardening]) -> Section {
    let tested = claims.iter().filter(|one| is_tested(one));
    let tested: Vec<&JudgedHardening> = tested.collect();
    // A page has less room beside each other than a terminal: what belongs together is one cell.
    let rows = tested.iter().map(|one| {
        let [id, verdict, allocator, claimed, feature, seen] = cells(one);
        vec![
            allocator,
            claimed,
            format!("{id} {feature}"),
            format!("{verdict}: {seen}"),
        ]
    });
    let columns = ["allocator", "claimed", "feature", "verdict"];
    let table = PageTable {
        notes: sources(documents, &tested),
        ..PageTable::of_words("", &columns, rows)
    };
    Section {
        text: vec![
            "What documents say of the hardening of these allocators, held against this result; claims that it cannot test are left \
             out. One that is contradicted is followed by the command that shows it (docs/CLAIMS.md)."
                .into(),
        ],
        legend: vec![summary(claims)],
        ..Section::of_tables("claims", "What documents say of hardening", [table])
    }
}
