//! One function per kind of check: examines the places of a claim and reports the result of each
//! part.

/// A sentence of words and numbers.
macro_rules! said {
    ($($piece:expr),* $(,)?) => {
        vec![$($piece.into()),*]
    };
}

mod bounds;
mod rows;
mod threads;
mod whole;

use super::evidence::{Evidence, Lack, Spot};
use super::judged::{JudgedPart, Number, Said, Verdict};
use super::order::{LEAST_SAMPLES, Order, between, beyond};
use crate::document::{Claim, ClaimCheck, Measure, Needs, Rows, Threads};
use heapmark_core::plan::case_name;
use std::collections::BTreeSet;
use std::slice::from_ref;

/// The findings about a claim.
#[derive(Default)]
pub struct Findings {
    pub parts: Vec<JudgedPart>,
    pub missing: BTreeSet<String>,
    pub spots: Vec<Spot>,
    /// The number of processes of a row that has too few.
    pub few: Option<usize>,
    /// The verdicts, one per check.
    verdicts: Vec<Verdict>,
}

impl Findings {
    /// The findings of all checks of a claim.
    pub fn of(
        rows: &Rows,
        claim: &Claim,
        evidence: &Evidence,
        distribution: Option<&str>,
    ) -> Findings {
        let mut findings = Findings::default();
        for check in &claim.checks {
            let at = check.at();
            let mut look = CheckedPlaces {
                rows,
                evidence,
                workloads: at.workloads.as_ref().unwrap_or(&claim.workloads),
                threads: at.threads.unwrap_or(claim.threads),
                measure: at.measure.as_ref().unwrap_or(&claim.measure),
                distribution,
                parts: Vec::new(),
                findings: &mut findings,
            };
            let Some(needs) = look.see(check) else {
                continue;
            };
            let parts = look.parts;
            findings.verdicts.push(combine(&parts, needs));
            for part in parts {
                // A lack that two checks share is listed once.
                if !part.place.is_empty() || !findings.parts.contains(&part) {
                    findings.parts.push(part);
                }
            }
        }
        if findings.parts.is_empty() {
            let lack = JudgedPart::lack("no part of it applies to this machine");
            findings.parts.push(lack);
        }
        findings
    }

    /// The verdict of all checks together.
    pub fn verdict(&self) -> Verdict {
        self.verdicts
            .iter()
            .copied()
            .max()
            .unwrap_or(Verdict::NotTestable)
    }
}

/// Combines the verdicts of a check's parts: every part decides, or the larger half, for which no
/// part may be missing.
fn combine(parts: &[JudgedPart], needs: Needs) -> Verdict {
    let verdicts = || parts.iter().map(|part| part.verdict);
    let count = |wanted| verdicts().filter(|verdict| *verdict == wanted).count();
    match needs {
        Needs::All => verdicts().max().unwrap_or(Verdict::NotTestable),
        Needs::Most if parts.is_empty() || count(Verdict::NotTestable) > 0 => Verdict::NotTestable,
        Needs::Most if count(Verdict::Holds) * 2 > parts.len() => Verdict::Holds,
        Needs::Most if count(Verdict::DoesNotHold) * 2 >= parts.len() => Verdict::DoesNotHold,
        Needs::Most => Verdict::Unclear,
    }
}

/// A check and the parts found so far.
struct CheckedPlaces<'a> {
    rows: &'a Rows,
    evidence: &'a Evidence<'a>,
    workloads: &'a [String],
    threads: Threads,
    measure: &'a Measure,
    distribution: Option<&'a str>,
    parts: Vec<JudgedPart>,
    /// The claim's findings.
    findings: &'a mut Findings,
}

impl CheckedPlaces<'_> {
    /// Runs a check and returns how many of its parts decide; `None` if the check does not apply to
    /// this machine.
    fn see(&mut self, check: &ClaimCheck) -> Option<Needs> {
        match check {
            ClaimCheck::Below(against) => {
                self.against(
                    &against.who,
                    &against.than,
                    &against.except,
                    Order::Below,
                    false,
                );
                return Some(against.needs);
            }
            ClaimCheck::Above(against) => {
                self.against(
                    &against.who,
                    &against.than,
                    &against.except,
                    Order::Above,
                    false,
                );
                return Some(against.needs);
            }
            ClaimCheck::Worst { who, .. } => {
                self.against(from_ref(who), &[], &[], Order::Above, true)
            }
            ClaimCheck::Near {
                architecture: Some(other),
                ..
            } if *other != self.evidence.architecture() => return None,
            ClaimCheck::Near {
                who,
                except,
                factor,
                needs,
                ..
            } => {
                self.beside_best(who, except, |away| between(away, 0.0, *factor));
                return Some(*needs);
            }
            ClaimCheck::Far { who, factor, .. } => {
                self.beside_best(who, &[], |away| beyond(away, *factor));
            }
            ClaimCheck::Between {
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
            ClaimCheck::OverThreads {
                who,
                except,
                shape,
                from,
                ..
            } => self.over_threads(who, except, *shape, *from),
            ClaimCheck::Flat {
                who,
                except,
                factor,
                ..
            } => self.flat(who, except, *factor),
            ClaimCheck::Levels { than, needs, .. } => {
                self.levels(than);
                return Some(*needs);
            }
            ClaimCheck::Correlates { with, .. } => self.correlates(with),
            ClaimCheck::LongestRelease {
                releases, collects, ..
            } => self.longest_release(releases, collects),
            ClaimCheck::AlikeElsewhere { who, column, .. } => self.alike_elsewhere(who, column),
        }
        Some(Needs::All)
    }

    /// The places of the check; a workload without any counts as missing.
    fn spots(&mut self) -> Vec<Spot> {
        let mut all = Vec::new();
        for workload in self.workloads {
            let spots = self
                .evidence
                .spots(workload, self.threads, self.distribution);
            match spots {
                Ok(spots) => all.extend(spots),
                Err(lack) => self.lack(lack),
            }
        }
        self.findings.spots.extend(all.iter().cloned());
        all
    }

    /// An error if a workload was not run with the same parameters at all of these places.
    fn of_one_size<'s>(&self, spots: impl IntoIterator<Item = &'s Spot>) -> Result<(), Lack> {
        let mut cases = spots
            .into_iter()
            .filter_map(|spot| self.evidence.case(spot));
        let Some(first) = cases.next() else {
            return Ok(());
        };
        let Some(other) = cases.find(|case| case.parameters != first.parameters) else {
            return Ok(());
        };
        Err(Lack::Other(format!(
            "{} was run with other parameters than {}, so their thread counts cannot be compared",
            case_name(&other.workload, other.threads),
            case_name(&first.workload, first.threads)
        )))
    }

    /// The workload in a list that has one for each of the check's workloads.
    fn paired<'o>(&self, spot: &Spot, others: &'o [String]) -> Option<&'o String> {
        let (_, other) = self
            .workloads
            .iter()
            .zip(others)
            .find(|(workload, _)| **workload == spot.workload)?;
        Some(other)
    }

    fn number(&self, row: &str, spot: &Spot) -> Result<Number, Lack> {
        self.evidence.number(self.rows, row, spot, self.measure)
    }

    /// The value of a row that the claim names: without it there is no verdict.
    fn named(&mut self, row: &str, spot: &Spot) -> Option<Number> {
        self.number(row, spot).map_err(|lack| self.lack(lack)).ok()
    }

    /// The values of all rows that exist: if some are missing, the claim is about the others.
    fn everyone(&mut self, except: &[String], spot: &Spot) -> Vec<(String, Number)> {
        let mut found = Vec::new();
        for row in self.rows.keys().filter(|row| !except.contains(row)) {
            let missing = match self.number(row, spot) {
                Ok(number) => {
                    found.push((row.clone(), number));
                    continue;
                }
                Err(Lack::Failed { row, .. }) => row,
                Err(_) => row.clone(),
            };
            self.findings.missing.insert(missing);
        }
        if found.is_empty() {
            self.lack(format!("no row of the document was measured on {spot}"));
        }
        found
    }

    /// The values of the named rows, or of all rows.
    fn chosen(&mut self, who: &[String], except: &[String], spot: &Spot) -> Vec<(String, Number)> {
        if who.is_empty() {
            return self.everyone(except, spot);
        }
        who.iter()
            .filter_map(|row| Some((row.clone(), self.named(row, spot)?)))
            .collect()
    }

    fn lack(&mut self, lack: impl ToString) {
        let part = JudgedPart::lack(lack);
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }

    fn found(&mut self, verdict: Verdict, place: impl ToString, sentence: Vec<Said>) {
        let samples = sentence.iter().filter_map(|piece| match piece {
            Said::Number(number) => Some(number.samples),
            Said::Words(_) => None,
        });
        let few = samples.filter(|samples| *samples < LEAST_SAMPLES);
        self.findings.few = few.chain(self.findings.few).min();
        self.parts.push(JudgedPart {
            verdict,
            place: place.to_string(),
            said: sentence,
        });
    }
}

impl JudgedPart {
    pub fn lack(lack: impl ToString) -> JudgedPart {
        JudgedPart {
            verdict: Verdict::NotTestable,
            place: String::new(),
            said: said![lack.to_string()],
        }
    }
}
