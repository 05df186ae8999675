//! `heapmark claims`: whether the claims of the reference documents hold in stored runs, and the
//! claims of documents about hardening in a result of `heapmark check`.

use crate::document::{Document, HardeningDocument};
use crate::judge::{Evidence, JudgedClaim, JudgedHardening, Measured, judge, judge_hardening};
use crate::report;
use anyhow::Result;
use heapmark_check::definition;
use heapmark_check::file::{CHECK_FILE, CheckFile};
use heapmark_check::report::UNFINISHED;
use heapmark_core::catalog::joined;
use heapmark_core::cmd::output::{Destination, Output, TableFormat, written};
use heapmark_core::cmd::{Exit, catalog, find_runs, say_damage, usage};
use heapmark_core::file::length;
use heapmark_core::report::Section;
use heapmark_core::store::{self, Purpose, Run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Check the claims of the reference documents against stored runs, or what documents say of
/// hardening against a result of heapmark check
#[derive(clap::Args)]
pub struct ClaimsArgs {
    /// Run directories, or `latest`; if several have the same case and row, the first one counts; or
    /// the directory of one result of heapmark check
    #[arg(default_value = "latest", value_name = "RUN")]
    runs: Vec<String>,
    /// Write this format instead of a table for the terminal
    #[arg(long, visible_alias = "format", value_name = "FORMAT")]
    to: Option<TableFormat>,
    /// Only the claims of one document: bt, mm, rp, za, ll or field; of hardening: isoalloc, ...
    #[arg(long, value_name = "NAME")]
    document: Option<String>,
    /// Write a page with every published figure beside the measured one, and every claim with its
    /// verdict
    #[arg(long, conflicts_with = "to")]
    reproduction: bool,
    #[command(flatten)]
    destination: Destination,
}

/// Runs the command.
pub fn run(args: ClaimsArgs) -> Result<Exit> {
    let is_check = |name: &&String| Path::new(name).join(CHECK_FILE).is_file();
    if let Some(check) = args.runs.iter().find(is_check) {
        if args.runs.len() > 1 {
            refuse!("{check} is a result of heapmark check: give it alone");
        }
        return of_check(Path::new(check), &args);
    }
    let dirs = find_runs(&args.runs)?;
    let output = args.destination.made_of(&dirs, &[])?;
    let catalog = catalog()?;
    let documents = Document::load(catalog)?;
    let documents = chosen(
        documents,
        |document| &document.name,
        args.document.as_deref(),
    )?;
    let mut runs = Vec::new();
    for dir in &dirs {
        let run = store::read_published(dir)?;
        say_damage(dir, &run);
        runs.push(measured(dir, run));
    }
    if let Some([first, other]) = of_another_preset(&runs) {
        let names = &args.runs;
        let preset = |place: usize| &runs[place].head.preset;
        refuse!(
            "{} has preset {} and {} has {}: give runs of one preset for a workload, as sizes of two are never compared",
            names[first],
            preset(first),
            names[other],
            preset(other)
        );
    }
    let evidence = Evidence::new(&catalog.workloads, &runs);
    let judged = judge(&documents, &evidence);
    let is_whole = args.document.is_some() || args.to.is_some();
    let text = match args.to {
        _ if args.reproduction => report::reproduction(&documents, &evidence, &judged),
        Some(TableFormat::Json) => report::claims_json(&judged),
        format => written(format, &report::claims(&judged, is_whole)),
    };
    output.put(&text)?;
    Ok(Exit::Done)
}

/// The sections about claims on the page of these runs.
pub fn sections_of_runs(dirs: &[PathBuf]) -> Result<Vec<Section>> {
    Ok(vec![report::page::section(&of_page(dirs)?)])
}

/// The sections about claims on the page of a result of `heapmark check`.
pub fn sections_of_check(file: &CheckFile) -> Result<Vec<Section>> {
    let (documents, judged) = hardening(file)?;
    Ok(vec![report::hardening::section(&documents, &judged)])
}

/// A page shows no claims if the runs have more bytes of samples than this: claims are about runs
/// of some thousand processes.
const MOST_BYTES: u64 = 64 << 20;

/// The checked claims for a page of these runs; empty if the runs cannot be combined, or are too
/// large.
fn of_page(dirs: &[PathBuf]) -> Result<Vec<JudgedClaim>> {
    let bytes = dirs.iter().map(|dir| length(store::samples_of(dir)));
    if bytes.sum::<u64>() > MOST_BYTES {
        return Ok(Vec::new());
    }
    let runs: Vec<Measured> = dirs
        .iter()
        .map(|dir| Ok(measured(dir, store::read_published(dir)?)))
        .collect::<Result<_>>()?;
    if of_another_preset(&runs).is_some() {
        return Ok(Vec::new());
    }
    let catalog = catalog()?;
    let evidence = Evidence::new(&catalog.workloads, &runs);
    Ok(judge(&Document::load(catalog)?, &evidence))
}

/// The claims about hardening, held against a result of `heapmark check`.
fn of_check(dir: &Path, args: &ClaimsArgs) -> Result<Exit> {
    if args.reproduction {
        refuse!("--reproduction is for runs: documents about hardening have no figures");
    }
    let file = CheckFile::read(dir).map_err(usage)?;
    if file.unfinished {
        say!("{}: it {UNFINISHED}", dir.display());
    }
    let Destination { output, force } = &args.destination;
    let output = Output::new(output, *force, [dir.join(CHECK_FILE)])?;
    let (documents, all) = hardening(&file)?;
    let documents = chosen(
        documents,
        |document| &document.name,
        args.document.as_deref(),
    )?;
    let is_chosen = |one: &JudgedHardening| {
        documents
            .iter()
            .any(|document| document.name == one.document)
    };
    let judged: Vec<JudgedHardening> = all.into_iter().filter(is_chosen).collect();
    let is_whole = args.document.is_some() || args.to.is_some();
    output.put(match args.to {
        Some(TableFormat::Json) => report::hardening::claims_json(&judged),
        format => written(
            format,
            &report::hardening::claims(&judged, &documents, is_whole),
        ),
    })?;
    Ok(Exit::Done)
}

/// All documents about hardening, and their claims held against a result.
fn hardening(file: &CheckFile) -> Result<(Vec<HardeningDocument>, Vec<JudgedHardening>)> {
    let checks = definition::all()?;
    let documents = HardeningDocument::load(catalog()?, &checks)?;
    let judged = judge_hardening(&documents, &checks, file);
    Ok((documents, judged))
}

/// The documents, or only the one with this name.
fn chosen<D>(documents: Vec<D>, name_of: fn(&D) -> &String, name: Option<&str>) -> Result<Vec<D>> {
    let Some(name) = name else {
        return Ok(documents);
    };
    let (found, others): (Vec<D>, Vec<D>) = documents
        .into_iter()
        .partition(|document| name_of(document) == name);
    if !found.is_empty() {
        return Ok(found);
    }
    let known = joined(others.iter().map(name_of), ", ");
    refuse!("no document `{name}`: there are {known}")
}

fn measured(dir: &Path, run: Run) -> Measured {
    let samples = run
        .records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample && record.outcome.is_ok());
    let series = samples
        .filter_map(|record| Some((record.cell.clone(), store::columns(dir, record)?)))
        .collect();
    Measured {
        head: run.head,
        records: run.records,
        series,
    }
}

/// Finds the first run that shares a workload with an earlier run but has another preset; returns
/// both places. Two presets are never compared, and a claim may rest on several runs.
fn of_another_preset(runs: &[Measured]) -> Option<[usize; 2]> {
    let workloads = |run: &Measured| -> BTreeSet<String> {
        let cases = run.head.plan.cases.iter();
        cases.map(|case| case.workload.clone()).collect()
    };
    let all: Vec<BTreeSet<String>> = runs.iter().map(workloads).collect();
    let differ = |a: usize, b: usize| {
        runs[a].head.preset != runs[b].head.preset && !all[a].is_disjoint(&all[b])
    };
    (1..runs.len()).find_map(|b| Some([(0..b).find(|a| differ(*a, b))?, b]))
}
