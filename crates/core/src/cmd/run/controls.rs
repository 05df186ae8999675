//! Controls, which run beside the compared allocators: the A/A copy of the baseline, and the null
//! allocator.

use super::RunFlags;
use super::comparison::Comparison;
use crate::build::{self, Library};
use crate::catalog::{Catalog, Tier};
use crate::execute::Subject;
use crate::plan::{Case, Mode};
use anyhow::{Context, Result};

/// Chooses the A/A copy of the baseline, in runs that compare, and the null allocator, in runs of
/// kernels, under each C library of the run. Removes the null allocator from those that are compared.
pub fn choose(
    args: &RunFlags,
    mode: Mode,
    subjects: &mut Vec<Subject>,
    baseline: &str,
    cases: &[Case],
    catalog: &Catalog,
) -> Result<(Option<Subject>, Vec<Subject>)> {
    let asked = subjects
        .extract_if(.., |subject| {
            subject.allocator.tier == Tier::Floor && subject.allocator.name != baseline
        })
        .next();
    let has_floor = cases.iter().any(Case::has_floor);
    let floor = match asked {
        _ if mode.spec().compares_memory => None,
        None if has_floor && !args.no_floor => null(catalog),
        asked => asked,
    };
    let aa_copy = aa_copy(&args.comparison, mode, cases, subjects, baseline)?;
    let elsewhere = floor.iter().flat_map(|floor| under_others(floor, subjects));
    let floors = floor.iter().cloned().chain(elsewhere).collect();
    Ok((aa_copy, floors))
}

/// The null allocator under each other C library of a run: how these differ without an allocation.
fn under_others(null: &Subject, subjects: &[Subject]) -> Vec<Subject> {
    let others = subjects
        .iter()
        .filter(|subject| subject.library.loader.is_some());
    let under = |other: &Subject| {
        let mut floor = null.clone();
        floor.allocator.name = format!("{} ({})", null.allocator.name, other.allocator.name);
        floor.library = Library {
            files: Vec::new(),
            ..other.library.clone()
        };
        floor
    };
    others.map(under).collect()
}

/// The A/A copy, if times are compared, there is an allocator to compare with the baseline, and no
/// `--no-aa-copy`.
pub fn aa_copy(
    flags: &Comparison,
    mode: Mode,
    cases: &[Case],
    subjects: &[Subject],
    baseline: &str,
) -> Result<Option<Subject>> {
    let compares = mode.spec().compares_times && cases.iter().any(Case::is_for_allocators);
    let original = subjects
        .iter()
        .find(|subject| subject.allocator.name == baseline && subject.refused.is_none());
    original
        .filter(|_| compares && subjects.len() > 1 && !flags.no_aa_copy)
        .map(copy_of)
        .transpose()
}

fn null(catalog: &Catalog) -> Option<Subject> {
    let null = catalog
        .allocators
        .iter()
        .find(|one| one.tier == Tier::Floor)?;
    Some(Subject::new(null.clone(), Default::default()))
}

/// The same allocator in another file, under a name that no other allocator can have.
pub fn copy_of(original: &Subject) -> Result<Subject> {
    let mut copy = original.clone();
    copy.allocator.name = format!("{} (copy)", original.allocator.name);
    for file in &mut copy.library.files {
        *file = build::copy(file).context("copying the baseline")?;
    }
    Ok(copy)
}
