//! The section on a page about the claims of the reference documents, and whether they hold in the
//! page's runs.

use crate::judge::{JudgedClaim, Verdict};
use crate::report;
use heapmark_core::report::page::section::Section;

/// The page shows claims only if at least one in this many can be judged: a few say nothing about a
/// document.
const LEAST_SHARE: usize = 10;

/// The section with the claims; empty if no document covers the runs.
pub fn section(judged: &[JudgedClaim]) -> Section {
    let tested = judged
        .iter()
        .filter(|one| one.verdict != Verdict::NotTestable);
    let of_documents = judged.iter().filter(|one| !one.is_comparison);
    if tested.clone().count() * LEAST_SHARE < of_documents.count() {
        return Section::default();
    }
    let table = report::table(tested.collect());
    Section {
        text: vec![
            "Claims of the reference documents, held against this page's runs by their own rule (claims/README.md). One that does not \
             hold is a result: versions and machines are other ones."
                .into(),
        ],
        legend: vec![report::summary(judged)],
        ..Section::of_tables("claims", "What the literature says", [table])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_core::report::page::lay_out;

    fn judged(verdict: Verdict) -> JudgedClaim {
        JudgedClaim {
            id: "MM-3".into(),
            document: "mm".into(),
            says: "the <b>fastest</b>".into(),
            evidence: String::new(),
            verdict,
            parts: Vec::new(),
            missing: Vec::new(),
            notes: Vec::new(),
            sizes: Vec::new(),
            threads: vec![2],
            document_threads: 10,
            machine: None,
            measured: Vec::new(),
            is_comparison: false,
            explain: None,
            explained: None,
            as_then: None,
        }
    }

    #[test]
    fn claims_stand_on_the_page_where_the_runs_speak_of_any() {
        assert!(section(&[judged(Verdict::NotTestable)]).is_empty());
        let mut few = vec![judged(Verdict::DoesNotHold)];
        few.extend((0..10).map(|_| judged(Verdict::NotTestable)));
        assert!(section(&few).is_empty(), "one of eleven");
        let section = section(&[judged(Verdict::DoesNotHold)]);
        let page = lay_out("", &[], &[], Vec::new(), vec![section]);
        let words = "does not hold at 2 threads (document: 10)";
        assert!(page.contains("<section id=\"claims\"") && page.contains(words));
        assert!(
            page.contains("the &lt;b&gt;fastest"),
            "text from outside is text"
        );
    }
}
