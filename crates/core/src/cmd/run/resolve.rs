//! From the words of `-a` and `--baseline` to libraries that can be preloaded.

use crate::build::{self, State};
use crate::catalog::{Allocator, Catalog, Source, Tier};
use crate::cmd::build::{build_all, is_unbuilt, jobs};
use crate::cmd::{note, unexpected, usage};
use crate::execute::{Guest, Outcome, Subject, only_guest};
use anyhow::{Context, Result, bail};
use fast_glob::glob_match;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The row of the allocator that a program is linked to.
pub const OWN: &str = "own";

/// The allocator of the row `own`, if `words` has that word, which is then removed from `words`. `linked` is the library that serves the
/// program without heapmark.
pub fn take_own(
    words: &mut Vec<String>,
    linked: Result<&str, String>,
    catalog: &Catalog,
) -> Result<Option<Allocator>> {
    if !words.iter().any(|word| word == OWN) {
        return Ok(None);
    }
    match linked {
        Ok(library) => {
            words.retain(|word| word != OWN);
            own(library).map(Some)
        }
        Err(_) if catalog.allocator(OWN).is_ok() => Ok(None),
        Err(why) => refuse!("{OWN}: {why}; leave {OWN} out"),
    }
}

/// The allocator that a program is linked to.
pub fn own(library: &str) -> Result<Allocator> {
    build::library_of_file(OWN, &find_library(library)?)
}

/// Preloads glibc for the rows that have no library: a program that brings its own allocator is not served by glibc otherwise.
pub fn put_libc_first(subjects: &mut [Subject]) -> Result<()> {
    let libc = find_library("libc.so.6")?;
    for subject in subjects {
        if subject.library.files.is_empty() && subject.refused.is_none() {
            subject.library.files.push(libc.clone());
        }
    }
    Ok(())
}

/// A library that the dynamic linker would find.
pub fn find_library(name: &str) -> Result<PathBuf> {
    build::find_library(name)
        .with_context(|| format!("{name} is not in the dynamic linker's folders"))
}

/// Refuses allocators under which only the guest can run: other programs would not start, or not run to their end.
pub fn must_take_programs(chosen: &Chosen) -> Result<()> {
    match chosen.iter().find_map(|(one, _)| only_guest(one)) {
        Some(why) => refuse!("-a: {why}"),
        None => Ok(()),
    }
}

/// Fails if the baseline is not ready, since nothing could be compared.
pub fn must_be_ready(baseline: &str, subjects: &[Subject]) -> Result<()> {
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

/// The chosen allocators, each with whether the user named it.
pub type Chosen = Vec<(Allocator, bool)>;

/// A user's library may take the name of a known allocator only with `replace`, which is `None` if the command has no such flag, and never
/// the name of the null allocator, whose rows are recognised by their tier.
fn may_have_its_name(
    user: &Allocator,
    word: &str,
    replace: Option<bool>,
    catalog: &Catalog,
) -> Result<()> {
    let name = &user.name;
    let Ok(ours) = catalog.allocator(name) else {
        return Ok(());
    };
    let other = format!("give the library another name, as -a my-{name}=LIB");
    if ours.tier == Tier::Floor {
        bail!("{word}: `{name}` is the harness's own floor and is never replaced: {other}");
    }
    let flag = match replace {
        Some(true) => return Ok(()),
        Some(false) => ", or add --replace",
        None => "",
    };
    bail!("{word}: `{name}` is a name of the catalogue (heapmark list allocators): {other}{flag}");
}

/// Adds an allocator, unless it is chosen already.
fn add(chosen: &mut Chosen, allocator: &Allocator, named: bool) -> Result<()> {
    let mut all = chosen.iter();
    match all.find(|(known, _)| known.name == allocator.name) {
        Some((known, _)) if named && known.about != allocator.about => refuse!(
            "-a: two allocators have the name `{}`: give one another with NAME=/path/lib.so",
            allocator.name
        ),
        Some(_) => Ok(()),
        None => {
            chosen.push((allocator.clone(), named));
            Ok(())
        }
    }
}

/// Adds what a word of `-a` means: a library, an allocator or several.
fn add_word(
    chosen: &mut Chosen,
    word: &str,
    replace: Option<bool>,
    catalog: &Catalog,
) -> Result<()> {
    if let Some(user) = build::user(word, &catalog.allocators)? {
        may_have_its_name(&user, &format!("-a {word}"), replace, catalog)?;
        return add(chosen, &user, true);
    }
    if !word.contains(['*', '?', '[']) {
        return catalog
            .meant(word)?
            .into_iter()
            .try_for_each(|one| add(chosen, one, true));
    }
    let mut is_known = false;
    for allocator in &catalog.allocators {
        if glob_match(word, &allocator.name) {
            add(chosen, allocator, false)?;
            is_known = true;
        }
    }
    if !is_known {
        bail!("-a {word}: no allocator has such a name: see `heapmark list allocators`");
    }
    Ok(())
}

/// The allocators that flags name, or else those of the given tiers. With `replace`, libraries may have names of the catalogue; `None` if
/// the command has no such flag.
pub fn named(
    words: &[String],
    tiers: &[Tier],
    replace: Option<bool>,
    catalog: &Catalog,
) -> Result<Chosen> {
    let words = build::rejoined(words);
    let mut chosen = Chosen::new();
    for word in &words {
        add_word(&mut chosen, word, replace, catalog).map_err(usage)?;
    }
    if words.is_empty() {
        let mut all = catalog.allocators.clone();
        all.retain(|allocator| tiers.contains(&allocator.tier));
        chosen.extend(all.into_iter().map(|allocator| (allocator, false)));
    }
    Ok(chosen)
}

/// The allocators that flags name, or else those of the given tiers, and the name of the baseline, which is always among them. With
/// `replace`, libraries may have names of the catalogue.
pub fn choose(
    words: &[String],
    tiers: &[Tier],
    baseline: &str,
    replace: bool,
    catalog: &Catalog,
) -> Result<(String, Chosen)> {
    let replace = Some(replace);
    let mut chosen = named(words, tiers, replace, catalog)?;
    if let Some(user) = build::user(baseline, &catalog.allocators).map_err(usage)? {
        may_have_its_name(&user, &format!("--baseline {baseline}"), replace, catalog)
            .map_err(usage)?;
        add(&mut chosen, &user, true)?;
        return Ok((user.name, chosen));
    }
    // A library that `-a` names may have the baseline's name.
    if chosen.iter().any(|(one, _)| one.name == baseline) {
        return Ok((baseline.to_owned(), chosen));
    }
    let meant = catalog
        .only(baseline)
        .map_err(|why| usage(why.context("--baseline")))?;
    add(&mut chosen, meant, true)?;
    Ok((meant.name.clone(), chosen))
}

/// Builds allocators that are not built yet. Reports those that are absent: one that the user named stays in the run and ends `not-loaded`,
/// or `unsupported` on this kernel; any other is replaced by its distribution's build.
pub fn resolve(chosen: Chosen, catalog: &Catalog, dry_run: bool) -> Result<Vec<Subject>> {
    let missing: Vec<&Allocator> = chosen
        .iter()
        .map(|(allocator, _)| allocator)
        .filter(|allocator| is_unbuilt(allocator, catalog))
        .collect();
    if !missing.is_empty() && !dry_run {
        build_all(&missing, catalog, jobs());
    }
    let mut subjects = Vec::new();
    let mut left_out = Vec::new();
    // The names of allocators that cannot be measured, by reason.
    let mut refusals: Vec<(String, Vec<String>)> = Vec::new();
    for (allocator, named) in chosen {
        let (mut subject, refusal) = subject(allocator, catalog, dry_run)?;
        if let Some((word, why)) = refusal {
            let name = subject.allocator.name.clone();
            let reason = format!("{word}: {why}");
            match refusals.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(name),
                None => refusals.push((reason, vec![name])),
            }
            if !named {
                left_out.push(subject.allocator);
                continue;
            }
            subject.refused = Some(match word {
                "unsupported" => Outcome::Unsupported { why },
                _ => Outcome::NotLoaded { why },
            });
        }
        subjects.push(subject);
    }
    for (reason, names) in refusals {
        say!("{}: {reason}", names.join(", "));
    }
    name_builders(&subjects);
    let there: Vec<&Allocator> = subjects.iter().map(|one| &one.allocator).collect();
    for allocator in stand_ins(&left_out, &there, catalog) {
        subjects.push(subject(allocator, catalog, dry_run)?.0);
    }
    Ok(subjects)
}

/// Prints which libraries were built by a compiler other than this machine's.
fn name_builders(subjects: &[Subject]) {
    let mut builders: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for subject in subjects
        .iter()
        .filter(|subject| !subject.library.built.is_empty())
    {
        let names = builders.entry(&subject.library.built).or_default();
        names.push(&subject.allocator.name);
    }
    for (built, names) in builders {
        note(format!("{built}: {}", names.join(", ")));
    }
}

/// An allocator and its library; if there is no library, also a word for its state and the reason.
fn subject(
    allocator: Allocator,
    catalog: &Catalog,
    dry_run: bool,
) -> Result<(Subject, Option<(&'static str, String)>)> {
    let state = build::state(&allocator, &catalog.allocators);
    let mut subject = Subject::new(allocator, Default::default());
    let refusal = match state {
        State::Ready(library) => {
            if let Some(family) = &library.purged_as {
                subject.allocator.purge = build::purge_of_family(family, &catalog.allocators);
            }
            subject.library = library;
            let why = match subject.allocator.expects {
                Some(_) => unexpected(&Guest::find()?, &subject)?,
                None => None,
            };
            why.map(|why| ("absent", why))
        }
        State::NotBuilt { .. } if dry_run => None,
        State::NotBuilt { line } => Some(("could not be built", line)),
        State::Absent { why, line } => Some(("absent", format!("{why}; {line}"))),
        State::Unsupported { why } => Some(("unsupported", why)),
        State::Refused { why } => Some(("refused", why)),
    };
    if refusal.is_some() {
        subject.library = Default::default();
    }
    Ok((subject, refusal))
}

/// The system's builds of the same families: without a compiler or a network, a newcomer can compare these. A hardened build stands in only
/// for a hardened allocator, and any other only for one that is not hardened.
pub fn stand_ins(
    left_out: &[Allocator],
    there: &[&Allocator],
    catalog: &Catalog,
) -> Vec<Allocator> {
    let stands_in = |one: &&Allocator| {
        let is_it = |other: &Allocator| other.name == one.name;
        let hardened = |allocator: &Allocator| allocator.tier == Tier::Hardened;
        let may_replace =
            |other: &Allocator| other.family == one.family && hardened(other) == hardened(one);
        left_out.iter().any(may_replace)
            && !left_out.iter().chain(there.iter().copied()).any(is_it)
            && matches!(one.source, Source::System { .. })
            && matches!(build::state(one, &catalog.allocators), State::Ready(_))
    };
    let found: Vec<Allocator> = catalog
        .allocators
        .iter()
        .filter(stands_in)
        .cloned()
        .collect();
    for one in &found {
        say!("{}: {} is taken instead", one.family, one.name);
    }
    found
}
