//! Whether the claims of the reference documents hold in given runs. Pure: claims and runs in,
//! verdicts with their numbers out. A claim that fails is a result: versions and machines differ.

mod checks;
mod evidence;
mod figures;
mod judged;
mod order;
mod scene;
mod sizes;
mod values;

#[cfg(test)]
mod tests;

pub use evidence::{Evidence, Spot};
pub use figures::{PublishedRow, Reproduced, figures};
pub use judged::{JudgedClaim, JudgedPart, Number, Said, Verdict};
pub use scene::Measured;

use crate::catalog::Workload;
use crate::catalog::claim::{Claim, Document};
use checks::Findings;

/// A verdict on every claim of the documents, in their order.
pub fn judge(
    documents: &[Document],
    workloads: &[Workload],
    runs: &[Measured],
) -> Vec<JudgedClaim> {
    let evidence = Evidence::new(runs);
    let claims = documents
        .iter()
        .flat_map(|document| document.claims.iter().map(move |claim| (document, claim)));
    claims
        .map(|(document, claim)| judged(document, claim, workloads, &evidence))
        .collect()
}

fn judged(
    document: &Document,
    claim: &Claim,
    workloads: &[Workload],
    evidence: &Evidence,
) -> JudgedClaim {
    let (ways, notes) = ways(claim, evidence);
    let tried: Vec<(Option<&str>, Findings)> = ways
        .into_iter()
        .map(|distribution| {
            (
                distribution,
                Findings::of(document, claim, evidence, distribution),
            )
        })
        .collect();
    let verdicts: Vec<Verdict> = tried
        .iter()
        .map(|(_, findings)| findings.verdict())
        .collect();
    let verdict = together(&verdicts);
    let several = tried.len() > 1;
    let mut judged = JudgedClaim {
        id: claim.id.clone(),
        document: document.short.clone(),
        says: claim.says.clone(),
        evidence: claim.evidence.clone(),
        verdict,
        parts: Vec::new(),
        missing: Vec::new(),
        notes,
        sizes: Vec::new(),
        explain: Some(&claim.explain)
            .filter(|why| verdict == Verdict::DoesNotHold && !why.is_empty())
            .cloned(),
    };
    for (distribution, findings) in tried {
        let word = distribution.filter(|_| several);
        if let Some(word) = word.filter(|_| verdicts.iter().any(|other| *other != verdicts[0])) {
            judged
                .notes
                .push(format!("{} under {word}", findings.verdict().word()));
        }
        let few = findings
            .few
            .filter(|_| findings.verdict() == Verdict::Unclear);
        judged
            .notes
            .extend(few.map(|few| format!("only {few} of the 5 processes that a row needs")));
        judged.sizes.extend(sizes::other_than_paper(
            &findings.spots,
            evidence,
            workloads,
            distribution,
        ));
        for part in findings.parts.into_iter().map(|part| part.under(word)) {
            // What is missing under two distributions is listed once.
            if !part.place.is_empty() || !judged.parts.contains(&part) {
                judged.parts.push(part);
            }
        }
        judged.missing.extend(findings.missing);
    }
    for list in [&mut judged.missing, &mut judged.sizes] {
        list.sort();
        list.dedup();
    }
    judged
}

/// The distributions that a claim is checked under, as far as they were run; all that were run if
/// it names none.
fn ways<'a>(claim: &'a Claim, evidence: &Evidence) -> (Vec<Option<&'a str>>, Vec<String>) {
    let has = |way: &&str| {
        claim
            .workloads
            .iter()
            .any(|workload| !evidence.counts(workload, Some(way)).is_empty())
    };
    let (run, missing): (Vec<&str>, Vec<&str>) = claim
        .distributions
        .iter()
        .map(String::as_str)
        .partition(has);
    let first = claim.distributions.first().map(String::as_str);
    let notes = |missing: Vec<&str>| {
        missing
            .iter()
            .map(|way| format!("not run under {way}"))
            .collect()
    };
    if run.is_empty() {
        (vec![first], Vec::new())
    } else {
        (run.into_iter().map(Some).collect(), notes(missing))
    }
}

/// A claim that depends on a distribution that we had to guess stays undecided.
fn together(verdicts: &[Verdict]) -> Verdict {
    let has = |verdict| verdicts.contains(&verdict);
    if has(Verdict::Holds) && has(Verdict::DoesNotHold) {
        return Verdict::Unclear;
    }
    verdicts
        .iter()
        .copied()
        .max()
        .unwrap_or(Verdict::NotTestable)
}

impl JudgedPart {
    fn under(mut self, distribution: Option<&str>) -> JudgedPart {
        if let Some(distribution) = distribution.filter(|_| !self.place.is_empty()) {
            self.place.push_str(&format!(" ({distribution})"));
        }
        self
    }
}
