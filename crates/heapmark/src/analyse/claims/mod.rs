//! Whether the claims of the reference documents hold in given runs. Pure: claims and runs in,
//! verdicts with their numbers out. A claim that fails is a result: versions and machines differ.

mod checks;
mod evidence;
mod figures;
mod order;
mod sizes;
mod values;

#[cfg(test)]
mod tests;

pub use evidence::{Evidence, Measured, Spot};
pub use figures::{PublishedRow, Reproduced, figures};

use crate::catalog::Workload;
use crate::catalog::claim::{Claim, Document, Measure};
use checks::Findings;
use serde::Serialize;

/// The verdict on a claim. In the order in which parts of a claim decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every part of it holds.
    Holds,
    /// Too close to call, or too few samples.
    Unclear,
    /// Something that it needs is missing.
    NotTestable,
    /// Some part of it does not hold.
    DoesNotHold,
}

impl Verdict {
    /// The word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Unclear => "unclear",
            Verdict::NotTestable => "not testable here",
        }
    }
}

/// A claim and its result.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedClaim {
    /// `BT-1`.
    pub id: String,
    /// Short name of its document.
    pub document: String,
    /// The claim.
    pub says: String,
    /// The document's evidence for it.
    pub evidence: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The comparisons that the verdict rests on. Never empty.
    pub parts: Vec<JudgedPart>,
    /// Rows that "all" leaves out, since they are missing.
    pub missing: Vec<String>,
    /// Further notes for the reader.
    pub notes: Vec<String>,
    /// Parameters that differ from the document's.
    pub sizes: Vec<String>,
    /// Why it may not hold; set only if it does not.
    pub explain: Option<String>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedPart {
    /// The verdict of this part alone.
    pub verdict: Verdict,
    /// `churn@2`; empty if nothing was compared.
    pub place: String,
    /// A sentence with its numbers.
    pub said: Vec<Said>,
}

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Said {
    /// Text.
    Words(String),
    /// A measured number.
    Number(Number),
}

/// The median and range of one value per process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// The row as the run names it, or two with ` / ` between.
    pub row: String,
    /// The measure; `None` for a quotient.
    pub measure: Option<Measure>,
    /// Median over processes.
    pub median: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Processes.
    pub samples: usize,
}

impl From<&str> for Said {
    fn from(words: &str) -> Said {
        Said::Words(words.into())
    }
}

impl From<Number> for Said {
    fn from(number: Number) -> Said {
        Said::Number(number)
    }
}

/// A verdict on every claim of the documents, in their order.
pub fn judge(documents: &[Document], workloads: &[Workload], runs: &[Measured]) -> Vec<JudgedClaim> {
    let evidence = Evidence::new(runs);
    let claims = documents.iter().flat_map(|document| document.claims.iter().map(move |claim| (document, claim)));
    claims.map(|(document, claim)| judged(document, claim, workloads, &evidence)).collect()
}

fn judged(document: &Document, claim: &Claim, workloads: &[Workload], evidence: &Evidence) -> JudgedClaim {
    let (ways, notes) = ways(claim, evidence);
    let tried: Vec<(Option<&str>, Findings)> = ways
        .into_iter()
        .map(|distribution| (distribution, Findings::of(document, claim, evidence, distribution)))
        .collect();
    let verdicts: Vec<Verdict> = tried.iter().map(|(_, findings)| findings.verdict()).collect();
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
        explain: Some(&claim.explain).filter(|why| verdict == Verdict::DoesNotHold && !why.is_empty()).cloned(),
    };
    for (distribution, findings) in tried {
        let word = distribution.filter(|_| several);
        if let Some(word) = word.filter(|_| verdicts.iter().any(|other| *other != verdicts[0])) {
            judged.notes.push(format!("{} under {word}", findings.verdict().word()));
        }
        let few = findings.few.filter(|_| findings.verdict() == Verdict::Unclear);
        judged.notes.extend(few.map(|few| format!("only {few} of the 5 processes that a row needs")));
        judged.sizes.extend(sizes::other_than_paper(&findings.spots, evidence, workloads, distribution));
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
    let has = |way: &&str| claim.workloads.iter().any(|workload| !evidence.counts(workload, Some(way)).is_empty());
    let (run, missing): (Vec<&str>, Vec<&str>) = claim.distributions.iter().map(String::as_str).partition(has);
    let first = claim.distributions.first().map(String::as_str);
    let notes = |missing: Vec<&str>| missing.iter().map(|way| format!("not run under {way}")).collect();
    if run.is_empty() { (vec![first], Vec::new()) } else { (run.into_iter().map(Some).collect(), notes(missing)) }
}

/// A claim that depends on a distribution that we had to guess stays undecided.
fn together(verdicts: &[Verdict]) -> Verdict {
    let has = |verdict| verdicts.contains(&verdict);
    if has(Verdict::Holds) && has(Verdict::DoesNotHold) {
        return Verdict::Unclear;
    }
    verdicts.iter().copied().max().unwrap_or(Verdict::NotTestable)
}

impl JudgedPart {
    fn under(mut self, distribution: Option<&str>) -> JudgedPart {
        if let Some(distribution) = distribution.filter(|_| !self.place.is_empty()) {
            self.place.push_str(&format!(" ({distribution})"));
        }
        self
    }
}
