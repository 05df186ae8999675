//! The allocators that a verdict can name, and their order. Must not claim that the order is more
//! than chance.

use super::group::Group;
use super::judged_case::JudgedCase;
use super::memory::Memory;
use super::ratio::Ratio;
use heapmark_stats::geometric_mean;
use serde::Serialize;
use std::collections::BTreeMap;

/// An allocator with numbers in every case.
pub struct Candidate {
    /// The allocator's name.
    pub name: String,
    /// Per case: ln ns/op by block, relative to the baseline's process of the same slot; 0 for the
    /// baseline itself.
    pub logs: Vec<BTreeMap<u32, f64>>,
    /// The memory in each case.
    pub memory: Vec<Option<Memory>>,
}

/// An allocator without numbers in every case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The allocator's name.
    pub allocator: String,
    /// The number of cases in which some process of the allocator did not end `ok`.
    pub failed: usize,
    /// The number of cases in which the allocator has no sample yet, or none in the same blocks as the others.
    pub missing: usize,
    /// The number of cases that are judged.
    pub of: usize,
}

impl Candidate {
    /// Compares the allocator's rows with the baseline's, case by case. Two candidates that ran in
    /// different parts of a block are compared through the baseline that ran in both; if the
    /// baseline has no numbers there, they are compared directly.
    pub fn new(name: &str, cases: &[JudgedCase], memory: Vec<Option<Memory>>) -> Candidate {
        Candidate {
            name: name.to_owned(),
            logs: cases
                .iter()
                .filter_map(|judged| {
                    let baseline = judged.table.named(&judged.case.baseline);
                    Some(logs(judged.table.named(name)?, baseline, judged))
                })
                .collect(),
            memory,
        }
    }
}

fn logs(group: &Group, baseline: Option<&Group>, judged: &JudgedCase) -> BTreeMap<u32, f64> {
    let clock = judged.clock;
    if let Some(baseline) = baseline.filter(|baseline| !baseline.processes.is_empty()) {
        return group.log_times(baseline, clock);
    }
    group
        .processes
        .iter()
        .filter_map(|((block, _), process)| Some((*block, clock.of(process)?.ln())))
        .collect()
}

/// Sorts the candidates, the fastest first, by the geometric mean of their ratios to the baseline,
/// or to the first candidate if there is no baseline.
pub fn rank(
    baseline: &str,
    candidates: Vec<Candidate>,
    left_out: &mut Vec<LeftOut>,
) -> Vec<Candidate> {
    let reference = candidates
        .iter()
        .position(|candidate| candidate.name == baseline)
        .unwrap_or(0);
    let ratios: Vec<Vec<f64>> = candidates
        .iter()
        .map(|candidate| ratios(candidate, &candidates[reference]))
        .collect();
    let mut ranked = Vec::new();
    for (candidate, ratios) in candidates.into_iter().zip(ratios) {
        let missing = candidate.logs.len() - ratios.len();
        match geometric_mean(&ratios) {
            Some(score) if missing == 0 => ranked.push((score, candidate)),
            _ => left_out.push(LeftOut {
                allocator: candidate.name,
                failed: 0,
                missing,
                of: candidate.logs.len(),
            }),
        }
    }
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    ranked.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Returns a ratio for each case in which some block has values of both candidates.
fn ratios(candidate: &Candidate, reference: &Candidate) -> Vec<f64> {
    let mut ratios = Vec::new();
    for (ours, theirs) in candidate.logs.iter().zip(&reference.logs) {
        let both = ours
            .iter()
            .filter_map(|(block, log)| Some(log - theirs.get(block)?));
        let ratio = Ratio::from_logs(&Vec::from_iter(both));
        ratios.extend(ratio.map(|ratio| ratio.ratio));
    }
    ratios
}
