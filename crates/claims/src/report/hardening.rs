//! Verdicts on what documents claim about hardening: a table, and JSON.

use crate::document::HardeningDocument;
use crate::judge::{HardeningVerdict, JudgedHardening, SeenCell};
use crate::report::LEFT_OUT;
use heapmark_check::definition::Form;
use heapmark_check::report::size;
use heapmark_core::analyse::distinct;
use heapmark_core::report::Section;
use heapmark_core::report::document::{Block, Cell, Sheet};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{count, join, json};

/// The most cells that a reason lists; the others are in the JSON.
const MOST_CELLS: usize = 3;

/// One row per claim that can be judged, or per claim if `whole` documents are shown; then the
/// documents of these claims, and a line that counts the verdicts.
pub fn claims(all: &[JudgedHardening], documents: &[HardeningDocument], whole: bool) -> Vec<Block> {
    let mut shown: Vec<&JudgedHardening> = all.iter().collect();
    shown.retain(|one| whole || is_tested(one));
    let left_out = (shown.len() < all.len()).then(|| LEFT_OUT.to_owned());
    vec![
        Block::Sheet(table(&shown)),
        Block::notes(sources(documents, &shown)),
        Block::notes([summary(all)].into_iter().chain(left_out)),
    ]
}

/// A row for each of these claims. An allocator that was checked has the name that it has in the
/// result.
fn table(shown: &[&JudgedHardening]) -> Sheet {
    let mut table = SheetOf::new("", shown.iter().copied());
    table.add("id", |one| &one.id);
    table.add("verdict", |one| one.verdict.words());
    table.add("allocator", |one| {
        one.entry.as_ref().unwrap_or(&one.allocator)
    });
    table.add("claimed", |one| Cell::text(one.claimed.words()));
    table.add("feature", |one| {
        Cell::text(format!("{}: {}", one.feature, one.says))
    });
    table.add("what was seen", |one| Cell::text(reason(one)));
    table.sheet
}

/// All claims as JSON, each with its reason as a sentence.
pub fn claims_json(all: &[JudgedHardening]) -> String {
    let entries = all.iter().map(|one| {
        let mut entry = serde_json::json!(one);
        entry["reason"] = reason(one).into();
        entry
    });
    json(&entries.collect::<Vec<_>>())
}

/// Whether the result could decide the claim.
fn is_tested(one: &JudgedHardening) -> bool {
    one.verdict != HardeningVerdict::NotTestable
}

/// The documents of some claims: their addresses, versions and dates.
fn sources(documents: &[HardeningDocument], shown: &[&JudgedHardening]) -> Vec<String> {
    let has_rows =
        |document: &&HardeningDocument| shown.iter().any(|one| one.document == document.name);
    let documents = documents.iter().filter(has_rows);
    documents
        .map(|document| {
            let remark = document.remark.iter().map(|remark| format!(" {remark}"));
            format!(
                "{}: {}; {}, {}, {}.{}",
                document.short,
                document.title,
                document.source,
                document.version,
                document.date,
                join(remark, "")
            )
        })
        .collect()
}

/// How many claims have each verdict: `Of 250 claims: 60 confirmed, 7 contradicted, 183 not
/// testable here.`
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

/// Returns the words of the deciding cells, or what is missing; for a contradicted claim, also the
/// command that shows the contradiction.
pub fn reason(one: &JudgedHardening) -> String {
    let mut words = Vec::new();
    match &one.why_not {
        Some(why) => words.push(why.clone()),
        None => {
            let sentences = distinct(one.cells.iter().map(sentence));
            let more = sentences.len().saturating_sub(MOST_CELLS);
            words.extend(sentences.into_iter().take(MOST_CELLS));
            if more > 0 {
                words.push(format!("and {more} more"));
            }
        }
    }
    words.extend(one.again.iter().map(|again| format!("again: {again}")));
    join(words, "; ")
}

/// A cell in words, as in `double-free 24 B: absorbed`.
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

/// The section on hardening in a page; empty if the result can judge none of the claims.
pub fn section(documents: &[HardeningDocument], claims: &[JudgedHardening]) -> Section {
    let tested = claims.iter().filter(|one| is_tested(one));
    let tested: Vec<&JudgedHardening> = tested.collect();
    let mut table = table(&tested);
    table.remark(sources(documents, &tested));
    Section {
        text: vec![
            "What documents say of the hardening of these allocators, held against this result; claims that it cannot test are left \
             out. One that is contradicted is followed by the command that shows it (claims/README.md)."
                .into(),
        ],
        legend: vec![summary(claims)],
        ..Section::of_tables("claims", "What documents say of hardening", [table])
    }
}
