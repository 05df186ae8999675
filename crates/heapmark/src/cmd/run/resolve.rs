//! From the words of `-a` and `--baseline` to libraries that can be preloaded.

use crate::build::{self, State};
use crate::catalog::{Allocator, Catalog, Tier};
use crate::cmd::{build::build_all, build::jobs, say, unexpected, usage};
use crate::execute::{Guest, Subject};
use anyhow::{Context, Result, anyhow, bail};

/// Fails if nothing could be compared.
pub(in crate::cmd) fn must_be_ready(baseline: &str, subjects: &[Subject]) -> Result<()> {
    if !subjects
        .iter()
        .any(|subject| subject.allocator.name == baseline)
    {
        bail!(
            "the baseline {baseline} is not ready, so nothing can be compared: choose another with --baseline"
        );
    }
    Ok(())
}

/// Allocators of the selection, each with whether the user named it.
pub(in crate::cmd) type Chosen = Vec<(Allocator, bool)>;

/// A user's library may take the name of a known allocator only with `replace`, and never that of
/// the null allocator: its rows are recognised by their tier.
fn may_have_its_name(user: &Allocator, word: &str, replace: bool, catalog: &Catalog) -> Result<()> {
    let Some(ours) = catalog
        .allocators
        .iter()
        .find(|ours| ours.name == user.name)
    else {
        return Ok(());
    };
    let name = &ours.name;
    let other = format!("give the library another name, as -a my-{name}=LIB");
    if ours.tier == Tier::Floor {
        bail!("{word}: `{name}` is the harness's own floor and is never replaced: {other}");
    }
    if !replace {
        bail!(
            "{word}: `{name}` is a name of the catalogue (heapmark list allocators): {other}, or add --replace"
        );
    }
    Ok(())
}

/// The allocators that flags name, or else those of these tiers, and the baseline's name. The
/// baseline is always among them. Libraries may have names of the catalogue if `replace` is set.
pub(in crate::cmd) fn choose(
    words: &[String],
    tiers: &[Tier],
    baseline: &str,
    replace: bool,
    catalog: &Catalog,
) -> Result<(String, Chosen)> {
    let words = &build::rejoined(words);
    let mut chosen: Chosen = Vec::new();
    let mut add = |allocator: &Allocator, named: bool| -> Result<()> {
        match chosen
            .iter()
            .find(|(known, _)| known.name == allocator.name)
        {
            Some((known, _)) if named && known.about != allocator.about => {
                bail!(
                    "-a: two allocators have the name `{}`: give one another with NAME=/path/lib.so",
                    allocator.name
                )
            }
            Some(_) => {}
            None => chosen.push((allocator.clone(), named)),
        }
        Ok(())
    };
    for word in words {
        if let Some(user) = build::user(word).map_err(usage)? {
            may_have_its_name(&user, &format!("-a {word}"), replace, catalog).map_err(usage)?;
            add(&user, true).map_err(usage)?;
        } else if word.contains(['*', '?', '[']) {
            let glob = globset::Glob::new(word)
                .with_context(|| format!("-a {word}"))
                .map_err(usage)?
                .compile_matcher();
            let mut found = catalog
                .allocators
                .iter()
                .filter(|allocator| glob.is_match(&allocator.name))
                .peekable();
            if found.peek().is_none() {
                return Err(usage(anyhow!(
                    "-a {word}: no allocator has such a name: see `heapmark list allocators`"
                )));
            }
            for allocator in found {
                add(allocator, false)?;
            }
        } else {
            add(catalog.allocator(word).map_err(usage)?, true).map_err(usage)?;
        }
    }
    if words.is_empty() {
        for allocator in catalog
            .allocators
            .iter()
            .filter(|allocator| tiers.contains(&allocator.tier))
        {
            add(allocator, false)?;
        }
    }
    let user_baseline = build::user(baseline).map_err(usage)?;
    let name = user_baseline
        .as_ref()
        .map_or(baseline, |user| &user.name)
        .to_string();
    match &user_baseline {
        Some(user) => {
            may_have_its_name(user, &format!("--baseline {baseline}"), replace, catalog)
                .map_err(usage)?;
            add(user, true)?;
        }
        // A library that `-a` names has that name.
        None if words
            .iter()
            .any(|word| word.starts_with(&format!("{baseline}="))) => {}
        None => add(catalog.allocator(baseline).map_err(usage)?, true)?,
    }
    Ok((name, chosen))
}

/// Builds what is not built yet. Reports what is absent; an allocator that the user named and that
/// is not available stays in the run and ends `not-loaded`.
pub(in crate::cmd) fn resolve(
    chosen: Chosen,
    catalog: &Catalog,
    dry_run: bool,
) -> Result<Vec<Subject>> {
    let state = |allocator: &Allocator| build::state(allocator, &catalog.allocators);
    let missing: Vec<&Allocator> = chosen
        .iter()
        .map(|(allocator, _)| allocator)
        .filter(|allocator| matches!(state(allocator), State::NotBuilt { .. }))
        .collect();
    if !missing.is_empty() && !dry_run {
        build_all(&missing, catalog, jobs());
    }
    let mut subjects = Vec::new();
    for (mut allocator, named) in chosen {
        let (word, why) = match state(&allocator) {
            State::Ready(library) => {
                if let Some(family) = &library.purged_as {
                    allocator.purge = build::purge_of_family(family, &catalog.allocators);
                }
                let subject = Subject {
                    allocator,
                    library,
                    refused: None,
                };
                let why = match &subject.allocator.expects {
                    Some(_) => unexpected(&Guest::find()?, &subject)?,
                    None => None,
                };
                match why {
                    None => {
                        subjects.push(subject);
                        continue;
                    }
                    Some(why) => {
                        allocator = subject.allocator;
                        ("absent", why)
                    }
                }
            }
            State::NotBuilt { .. } if dry_run => {
                subjects.push(Subject {
                    allocator,
                    library: Default::default(),
                    refused: None,
                });
                continue;
            }
            State::NotBuilt { line } => ("could not be built", line),
            State::Absent { why, line } => ("absent", format!("{why}; {line}")),
            State::Refused { why } => ("refused", why),
        };
        say(&format!("{}: {word}: {why}", allocator.name));
        if named {
            subjects.push(Subject {
                allocator,
                library: Default::default(),
                refused: Some(why),
            });
        }
    }
    Ok(subjects)
}
