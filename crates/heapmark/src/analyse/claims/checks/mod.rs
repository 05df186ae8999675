//! One function per kind of check: examines the places of a claim and reports the result of each
//! part.

mod bounds;
mod rows;
mod threads;
mod whole;

use super::evidence::{Evidence, Lack, Spot};
use super::judged::{JudgedPart, Number, Said, Verdict};
use super::order::LEAST_SAMPLES;
use crate::catalog::claim::{Check, Claim, Document, Measure, Needs, Place, Threads};
use std::collections::BTreeSet;

/// What was found for a claim.
#[derive(Default)]
pub(super) struct Findings {
    pub parts: Vec<JudgedPart>,
    pub missing: BTreeSet<String>,
    pub spots: Vec<Spot>,
    /// Processes of a row that has too few.
    pub few: Option<usize>,
    /// One per check.
    verdicts: Vec<Verdict>,
}

impl Findings {
    /// The findings of all checks of a claim.
    pub fn of(
        document: &Document,
        claim: &Claim,
        evidence: &Evidence,
        distribution: Option<&str>,
    ) -> Findings {
        let mut findings = Findings::default();
        for check in &claim.checks {
            let mut look = CheckedPlaces::new(document, claim, check, evidence, distribution);
            let Some(needs) = look.see(check) else {
                continue;
            };
            findings.verdicts.push(combine(&look.parts, needs));
            // A lack that two checks share is listed once.
            let known = |part: &JudgedPart| part.place.is_empty() && findings.parts.contains(part);
            let new: Vec<JudgedPart> = look.parts.drain(..).filter(|part| !known(part)).collect();
            findings.parts.extend(new);
            findings.missing.append(&mut look.missing);
            findings.few = findings.few.into_iter().chain(look.few).min();
            findings.spots.append(&mut look.spots);
        }
        if findings.parts.is_empty() {
            findings.parts.push(JudgedPart::lack(&Lack::Other(
                "no part of it applies to this machine".into(),
            )));
        }
        findings
    }

    /// All checks together.
    pub fn verdict(&self) -> Verdict {
        self.verdicts
            .iter()
            .copied()
            .max()
            .unwrap_or(Verdict::NotTestable)
    }
}

/// Every part decides, or the larger half of those that could be tested.
fn combine(parts: &[JudgedPart], needs: Needs) -> Verdict {
    let all = || {
        parts
            .iter()
            .map(|part| part.verdict)
            .max()
            .unwrap_or(Verdict::NotTestable)
    };
    let seen = parts
        .iter()
        .filter(|part| part.verdict != Verdict::NotTestable)
        .count();
    let count = |verdict| parts.iter().filter(|part| part.verdict == verdict).count();
    match needs {
        Needs::All => all(),
        Needs::Most if seen == 0 => all(),
        Needs::Most if count(Verdict::Holds) * 2 > seen => Verdict::Holds,
        Needs::Most if count(Verdict::DoesNotHold) * 2 >= seen => Verdict::DoesNotHold,
        Needs::Most => Verdict::Unclear,
    }
}

/// One check and its findings so far.
struct CheckedPlaces<'a> {
    document: &'a Document,
    evidence: &'a Evidence<'a>,
    workloads: &'a [String],
    threads: Threads,
    measure: &'a Measure,
    distribution: Option<&'a str>,
    parts: Vec<JudgedPart>,
    missing: BTreeSet<String>,
    spots: Vec<Spot>,
    few: Option<usize>,
}

impl<'a> CheckedPlaces<'a> {
    fn new(
        document: &'a Document,
        claim: &'a Claim,
        check: &'a Check,
        evidence: &'a Evidence,
        distribution: Option<&'a str>,
    ) -> CheckedPlaces<'a> {
        let Place {
            workloads,
            threads,
            measure,
        } = check.at();
        CheckedPlaces {
            document,
            evidence,
            workloads: workloads.as_ref().unwrap_or(&claim.workloads),
            threads: threads.unwrap_or(claim.threads),
            measure: measure.as_ref().unwrap_or(&claim.measure),
            distribution,
            parts: Vec::new(),
            missing: BTreeSet::new(),
            spots: Vec::new(),
            few: None,
        }
    }

    /// Runs the check; `None` if it does not apply to this machine. Returns how many of its parts
    /// decide.
    fn see(&mut self, check: &Check) -> Option<Needs> {
        match check {
            Check::Below {
                who, than, except, ..
            } => self.below(who, than, except),
            Check::Above {
                who, than, except, ..
            } => self.above(who, than, except),
            Check::Worst { who, .. } => self.worst(who),
            Check::Near {
                architecture: Some(other),
                ..
            } if *other != self.evidence.architecture => return None,
            Check::Near {
                who,
                except,
                factor,
                needs,
                ..
            } => {
                self.near(who, except, *factor);
                return Some(*needs);
            }
            Check::Far { who, factor, .. } => self.far(who, *factor),
            Check::Between {
                who,
                except,
                bounds,
                over,
                take,
                needs,
                ..
            } => {
                self.between(who, except, *bounds, over.as_ref(), *take);
                return Some(*needs);
            }
            Check::OverThreads {
                who,
                except,
                shape,
                from,
                ..
            } => self.over_threads(who, except, *shape, *from),
            Check::Flat {
                who,
                except,
                factor,
                ..
            } => self.flat(who, except, *factor),
            Check::Levels { than, needs, .. } => {
                self.levels(than);
                return Some(*needs);
            }
            Check::Correlates { with, .. } => self.correlates(with),
            Check::LongestRelease {
                releases, collects, ..
            } => self.longest_release(releases, collects),
            Check::AlikeElsewhere { who, column, .. } => self.alike_elsewhere(who, column),
        }
        Some(Needs::All)
    }

    /// The places of the check; a workload without any counts as missing.
    fn spots(&mut self) -> Vec<Spot> {
        let mut all = Vec::new();
        for workload in self.workloads {
            match self
                .evidence
                .spots(workload, self.threads, self.distribution)
            {
                Ok(spots) => all.extend(spots),
                Err(lack) => self.lack(&lack),
            }
        }
        self.spots.extend(all.iter().cloned());
        all
    }

    fn number(&self, row: &str, spot: &Spot) -> Result<Number, Lack> {
        self.evidence.number(self.document, row, spot, self.measure)
    }

    /// The value of a row that the claim names: without it there is no verdict.
    fn named(&mut self, row: &str, spot: &Spot) -> Option<Number> {
        self.number(row, spot).map_err(|lack| self.lack(&lack)).ok()
    }

    /// The values of all rows that exist: if some are missing, the claim is about the others.
    fn everyone(&mut self, except: &[String], spot: &Spot) -> Vec<(String, Number)> {
        let mut found = Vec::new();
        for row in self
            .document
            .rows
            .keys()
            .filter(|row| !except.contains(row))
        {
            match self.number(row, spot) {
                Ok(number) => found.push((row.clone(), number)),
                Err(Lack::Failed { name, summary, .. }) => {
                    // The words after the colon describe the row alone.
                    let outcome = summary.split(':').next().unwrap_or_default();
                    self.missing.insert(format!("{name} ({outcome})"));
                }
                Err(_) => _ = self.missing.insert(row.clone()),
            }
        }
        if found.is_empty() {
            self.lack(&Lack::Other(format!(
                "no row of the document was measured on {spot}"
            )));
        }
        found
    }

    /// The named rows, or all.
    fn chosen(&mut self, who: &[String], except: &[String], spot: &Spot) -> Vec<(String, Number)> {
        if who.is_empty() {
            return self.everyone(except, spot);
        }
        who.iter()
            .filter_map(|row| Some((row.clone(), self.named(row, spot)?)))
            .collect()
    }

    fn lack(&mut self, lack: &Lack) {
        let part = JudgedPart::lack(lack);
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    fn found(&mut self, verdict: Verdict, place: &str, said: Vec<Said>) {
        let samples = said.iter().filter_map(|said| match said {
            Said::Number(number) => Some(number.samples),
            Said::Words(_) => None,
        });
        self.few = samples
            .filter(|samples| *samples < LEAST_SAMPLES)
            .chain(self.few)
            .min();
        self.parts.push(JudgedPart {
            verdict,
            place: place.into(),
            said,
        });
    }
}

impl JudgedPart {
    fn lack(lack: &Lack) -> JudgedPart {
        JudgedPart {
            verdict: Verdict::NotTestable,
            place: String::new(),
            said: vec![lack.to_string().as_str().into()],
        }
    }
}
