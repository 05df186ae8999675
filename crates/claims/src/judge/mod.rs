//! Whether the claims of the reference documents hold in given runs. Pure: claims and runs in,
//! verdicts with their numbers out. A claim that fails is a result: versions and machines differ.

mod checks;
mod evidence;
mod figures;
mod hardening;
mod judged;
mod order;
mod scene;
mod sizes;
mod values;

#[cfg(test)]
mod tests;

pub use evidence::{Evidence, Spot};
pub use figures::{PublishedRow, Reproduced, reproduced};
pub use hardening::{HardeningVerdict, JudgedHardening, SeenCell, judge as judge_hardening};
pub use judged::{AsThen, JudgedClaim, JudgedPart, Number, Said, Verdict};
pub use scene::Measured;

use crate::document::{Claim, Document, Rows};
use checks::Findings;
use std::collections::BTreeSet;

/// A verdict on every claim of the documents, in their order, each document by the runs of one
/// machine.
pub fn judge(documents: &[Document], evidence: &Evidence) -> Vec<JudgedClaim> {
    let of_document = |document: &Document| -> Vec<JudgedClaim> {
        let evidence = &evidence.for_document(document);
        let then = document.rows_as_then();
        let of_claim = |claim: &Claim| {
            let mut it = judged(&document.short, &document.rows, claim, evidence);
            if matches!(it.verdict, Verdict::DoesNotHold | Verdict::Unclear) {
                let then = then.as_ref();
                it.as_then = then.and_then(|rows| as_then(document, rows, claim, evidence));
            }
            it
        };
        document.claims.iter().map(of_claim).collect()
    };
    documents.iter().flat_map(of_document).collect()
}

/// The verdict with the rows of the document's time, if the claim is about any that was measured.
fn as_then(document: &Document, rows: &Rows, claim: &Claim, evidence: &Evidence) -> Option<AsThen> {
    let judged = judged(&document.short, rows, claim, evidence);
    let said = judged.parts.iter().flat_map(|part| &part.said);
    let compared: BTreeSet<&str> = said
        .filter_map(|said| match said {
            Said::Number(number) => number.row.split(' ').next(),
            Said::Words(_) => None,
        })
        .collect();
    let then = document.rows.values().filter_map(|row| row.as_then.clone());
    let rows: BTreeSet<String> = then.filter(|row| compared.contains(&**row)).collect();
    (!rows.is_empty()).then(|| AsThen {
        rows: Vec::from_iter(rows),
        verdict: judged.verdict,
    })
}

fn judged(document: &str, rows: &Rows, claim: &Claim, evidence: &Evidence) -> JudgedClaim {
    let (ways, notes) = ways(claim, evidence);
    let tried: Vec<(Option<&str>, Verdict, Findings)> = ways
        .into_iter()
        .map(|distribution| {
            let findings = Findings::of(rows, claim, evidence, distribution);
            (distribution, findings.verdict(), findings)
        })
        .collect();
    let several = tried.len() > 1;
    let differ = tried.iter().any(|(_, verdict, _)| *verdict != tried[0].1);
    let verdict = together(tried.iter().map(|(_, verdict, _)| *verdict).collect());
    let explain = (verdict == Verdict::DoesNotHold && !claim.explain.is_empty())
        .then(|| claim.explain.clone());
    let mut judged = JudgedClaim {
        id: claim.id.clone(),
        document: document.into(),
        says: claim.says.clone(),
        evidence: claim.evidence.clone(),
        verdict,
        parts: Vec::new(),
        missing: Vec::new(),
        notes,
        sizes: Vec::new(),
        explain,
        as_then: None,
    };
    for (distribution, verdict, findings) in tried {
        let word = distribution.filter(|_| several);
        if let Some(word) = word.filter(|_| differ) {
            judged
                .notes
                .push(format!("{} under {word}", verdict.word()));
        }
        if let Some(few) = findings.few.filter(|_| verdict == Verdict::Unclear) {
            let note = format!("only {few} of the 5 processes that a row needs");
            judged.notes.push(note);
        }
        let sizes = sizes::other_than_paper(&findings.spots, evidence, distribution);
        judged.sizes.extend(sizes);
        for mut part in findings.parts {
            let is_place = !part.place.is_empty();
            if let Some(word) = word.filter(|_| is_place) {
                part.place += &format!(" ({word})");
            }
            // What is missing under two distributions is listed once.
            if is_place || !judged.parts.contains(&part) {
                judged.parts.push(part);
            }
        }
        judged.missing.extend(findings.missing);
    }
    for list in [&mut judged.missing, &mut judged.sizes] {
        list.sort();
        list.dedup();
    }
    // What was not even measured has its own reason.
    let measured = judged.verdict != Verdict::NotTestable;
    if let Some(why) = not_comparable(claim, evidence).filter(|_| measured) {
        judged.verdict = Verdict::NotTestable;
        judged.explain = None;
        judged.parts.insert(0, JudgedPart::lack(why));
    }
    judged
}

/// Why what was measured here says nothing of the claim, if so.
fn not_comparable(claim: &Claim, evidence: &Evidence) -> Option<String> {
    let (needed, usable) = (claim.cores, evidence.cores);
    if !claim.not_comparable.is_empty() {
        Some(format!("not comparable: {}", claim.not_comparable))
    } else if usable < needed {
        Some(format!(
            "not comparable: its rows keep {needed} cores busy, and {usable} are usable"
        ))
    } else {
        None
    }
}

/// The distributions that a claim is checked under, as far as they were run; all that were run if
/// it names none.
fn ways<'a>(claim: &'a Claim, evidence: &Evidence) -> (Vec<Option<&'a str>>, Vec<String>) {
    let named = claim.distributions.iter().map(String::as_str);
    let first = named.clone().next();
    let (run, missing): (Vec<&str>, Vec<&str>) = named.partition(|way| {
        claim
            .workloads
            .iter()
            .any(|workload| !evidence.counts(workload, Some(way)).is_empty())
    });
    if run.is_empty() {
        return (vec![first], Vec::new());
    }
    let notes = missing.iter().map(|way| format!("not run under {way}"));
    (run.into_iter().map(Some).collect(), notes.collect())
}

/// A claim that depends on a distribution that we had to guess stays undecided.
fn together(verdicts: Vec<Verdict>) -> Verdict {
    let has = |verdict| verdicts.contains(&verdict);
    if has(Verdict::Holds) && has(Verdict::DoesNotHold) {
        return Verdict::Unclear;
    }
    verdicts.into_iter().max().unwrap_or(Verdict::NotTestable)
}
