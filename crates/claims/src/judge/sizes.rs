//! The parameters whose values in the runs differ from the document's.

use super::{Evidence, Spot};

/// `objects = 20000 (the document: 100000)`, for each parameter whose value differs from that in
/// the preset `paper`.
pub fn other_than_paper(
    spots: &[Spot],
    evidence: &Evidence,
    distribution: Option<&str>,
) -> Vec<String> {
    let mut sizes = Vec::new();
    for case in spots.iter().filter_map(|spot| evidence.case(spot)) {
        let parameters = evidence
            .workloads
            .iter()
            .find(|workload| workload.name == case.workload)
            .and_then(|workload| workload.values("paper"));
        for (name, theirs) in parameters.into_iter().flatten() {
            // The claim itself sets this parameter.
            let is_set = distribution.is_some() && name == "distribution";
            let ours = case.parameters.get(&name).filter(|ours| **ours != theirs);
            if let Some(ours) = ours.filter(|_| !is_set) {
                sizes.push(format!("{name} = {ours} (the document: {theirs})"));
            }
        }
    }
    sizes
}
