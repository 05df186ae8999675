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
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Judges every claim of the documents, in their order, each by the runs on one machine: of the
/// machines on which the claim can be judged, the one with the most threads; among equals, the one
/// with the document's sizes, and then the one with the most cores.
pub fn judge(documents: &[Document], evidence: &Evidence) -> Vec<JudgedClaim> {
    let of_document = |document: &Document| -> Vec<JudgedClaim> {
        let then = document.rows_as_then();
        let of_claim = |claim: &Claim| {
            let machines = evidence.of_machines(claim.workloads.iter());
            let tried = machines
                .iter()
                .map(|seen| (judged(document, &document.rows, claim, seen), seen));
            let decides = tried.min_by_key(|(judgement, _)| {
                let is_judged = judgement.verdict != Verdict::NotTestable;
                let threads = judgement.threads.iter().max().copied();
                Reverse(is_judged.then_some((threads, judgement.sizes.is_empty())))
            });
            let (mut judgement, seen) = decides.expect("there is always a machine");
            judgement.machine = (machines.len() > 1 && judgement.verdict != Verdict::NotTestable)
                .then(|| seen.machine_words());
            if matches!(judgement.verdict, Verdict::DoesNotHold | Verdict::Unclear) {
                let then = then.as_ref();
                judgement.as_then = then.and_then(|rows| as_then(document, rows, claim, seen));
            }
            judgement
        };
        document.claims.iter().map(of_claim).collect()
    };
    documents.iter().flat_map(of_document).collect()
}

/// The verdict with the rows configured as in the document's time, if any of them was measured and
/// is compared by the claim.
fn as_then(document: &Document, rows: &Rows, claim: &Claim, evidence: &Evidence) -> Option<AsThen> {
    let judged = judged(document, rows, claim, evidence);
    let pieces = judged.parts.iter().flat_map(|part| &part.said);
    let compared: BTreeSet<&str> = pieces
        .filter_map(|piece| match piece {
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

fn judged(document: &Document, rows: &Rows, claim: &Claim, evidence: &Evidence) -> JudgedClaim {
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
    let if_not =
        |why: &String| (verdict == Verdict::DoesNotHold && !why.is_empty()).then(|| why.clone());
    let mut judged = JudgedClaim {
        id: claim.id.clone(),
        document: document.short.clone(),
        says: match claim.read_off {
            true => format!("{} (read off a table: in no sentence)", claim.says),
            false => claim.says.clone(),
        },
        evidence: claim.evidence.clone(),
        verdict,
        parts: Vec::new(),
        missing: Vec::new(),
        notes,
        sizes: Vec::new(),
        threads: Vec::new(),
        document_threads: claim.document_threads.unwrap_or(document.threads),
        machine: None,
        measured: Vec::new(),
        is_comparison: document.comparisons,
        explain: if_not(&claim.explain),
        explained: if_not(&claim.explain_measured),
        as_then: None,
    };
    let mut spots: Vec<Spot> = Vec::new();
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
        spots.extend(findings.spots);
        for mut part in findings.parts {
            let is_place = !part.place.is_empty();
            if let Some(word) = word.filter(|_| is_place) {
                part.place += &format!(" ({word})");
            }
            // Something that is missing under both distributions is listed once.
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
    let counts: BTreeSet<u32> = spots.iter().map(|spot| spot.threads).collect();
    judged.threads = Vec::from_iter(counts);
    // A claim that was not even measured has its own reason.
    let measured = judged.verdict != Verdict::NotTestable;
    if let Some(why) = not_comparable(claim, &judged).filter(|_| measured) {
        judged.verdict = Verdict::NotTestable;
        (judged.explain, judged.explained) = (None, None);
        judged.parts.insert(0, JudgedPart::lack(why));
    } else if let (parts, disturbed @ 1..) = evidence.disturbed(&spots) {
        let note = format!("{disturbed} of {parts} parts of its runs were disturbed");
        judged.notes.push(note);
    }
    if judged.verdict == Verdict::DoesNotHold {
        judged.measured = measured_of(rows, claim, evidence, spots.first());
    }
    judged
}

/// Returns the measures that show why a claim does not hold, for the rows that the claim names.
fn measured_of(
    rows: &Rows,
    claim: &Claim,
    evidence: &Evidence,
    spot: Option<&Spot>,
) -> Vec<Number> {
    let named: BTreeSet<&String> = claim.checks.iter().flat_map(|check| check.rows()).collect();
    let mut all = Vec::new();
    for measure in &claim.measured {
        let number = |row: &&String| evidence.number(rows, row, spot?, measure).ok();
        all.extend(named.iter().filter_map(number));
    }
    all
}

/// Returns why the measurements here cannot decide the claim, if that is so.
fn not_comparable(claim: &Claim, judged: &JudgedClaim) -> Option<String> {
    let most = judged.threads.iter().max().copied().unwrap_or(0);
    if !claim.not_comparable.is_empty() {
        Some(format!("not comparable: {}", claim.not_comparable))
    } else if most < claim.least_threads {
        Some(format!(
            "a curve does not show with {most} threads on cores of their own: it takes {} (document: {})",
            claim.least_threads, judged.document_threads
        ))
    } else {
        None
    }
}

/// The distributions under which a claim is checked, as far as they were run; all that were run if
/// the claim names none.
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

/// Combines the verdicts under several distributions: a claim that depends on a distribution that
/// we had to guess stays undecided.
fn together(verdicts: Vec<Verdict>) -> Verdict {
    let first = verdicts.first().copied();
    match first.filter(|first| verdicts.iter().all(|verdict| verdict == first)) {
        Some(same) => same,
        None if verdicts.contains(&Verdict::NotTestable) => Verdict::NotTestable,
        None => Verdict::Unclear,
    }
}
