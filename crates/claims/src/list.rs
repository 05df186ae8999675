//! The output of `heapmark list claims`.

use super::document::{Claimed, Document, Feature, HardeningDocument};
use anyhow::Result;
use heapmark_check::definition;
use heapmark_core::catalog::{Catalog, joined};
use serde_json::{Value, json};

/// Each claim of the reference documents, then each claim about hardening.
pub fn listed(catalog: &Catalog) -> Result<Vec<Value>> {
    let documents = Document::load(catalog)?;
    let all = documents.iter().flat_map(|document| &document.claims);
    let mut all: Vec<Value> = all.map(|claim| json!(claim)).collect();
    for document in HardeningDocument::load(catalog, &definition::all()?)? {
        let features = document.features.iter().enumerate();
        all.extend(features.map(|(place, feature)| of_feature(document.id(place), feature)));
    }
    Ok(all)
}

/// A claim about hardening, with what the document says about each allocator.
fn of_feature(id: String, feature: &Feature) -> Value {
    let words = |claimed: Claimed| {
        let all = feature
            .claimed
            .iter()
            .filter(|(_, claim)| **claim == claimed);
        let names = joined(all.map(|(name, _)| name), ", ");
        (!names.is_empty()).then(|| format!("{}: {names}", claimed.words()))
    };
    let all = [
        Claimed::Yes,
        Claimed::Option,
        Claimed::Interface,
        Claimed::No,
    ];
    let checks = feature.shown_by.iter().map(|sign| &sign.check);
    json!({
        "id": id, "says": format!("{}: {}", feature.name, feature.says),
        "evidence": joined(all.into_iter().filter_map(words), "; "),
        "hardening_checks": checks.collect::<Vec<_>>(), "no_check": feature.no_check,
        "claimed": feature.claimed, "shown_by": feature.shown_by,
    })
}
