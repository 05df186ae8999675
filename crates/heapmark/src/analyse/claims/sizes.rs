//! The parameters of the runs that differ from the document's.

use super::{Evidence, Spot};
use crate::catalog::Workload;

/// `objects = 20000 (the document: 100000)`, for each parameter whose value differs from that in
/// the preset `paper`.
pub(super) fn other_than_paper(
    spots: &[Spot],
    evidence: &Evidence,
    workloads: &[Workload],
    distribution: Option<&str>,
) -> Vec<String> {
    let mut sizes = Vec::new();
    for case in spots.iter().filter_map(|spot| evidence.case(spot)) {
        let paper = workloads
            .iter()
            .find(|workload| workload.name == case.workload);
        for (name, theirs) in paper
            .and_then(|workload| workload.values("paper"))
            .into_iter()
            .flatten()
        {
            let Some(ours) = case.parameters.get(&name).filter(|ours| **ours != theirs) else {
                continue;
            };
            // The claim itself sets it.
            if distribution.is_some() && name == "distribution" {
                continue;
            }
            sizes.push(format!("{name} = {ours} (the document: {theirs})"));
        }
    }
    sizes
}
