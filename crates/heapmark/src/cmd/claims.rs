//! `heapmark claims`: whether the claims of the reference documents hold in stored runs.

use super::output::{Force, Output};
use super::{Exit, say_damage, usage, wants_colour, width};
use crate::analyse::claims::{Evidence, JudgedClaim, Measured, judge};
use crate::catalog::Catalog;
use crate::catalog::claim::Document;
use crate::report::{self, Screen};
use crate::store::{self, Purpose};
use anyhow::{Result, anyhow};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Check the claims of the reference documents against stored runs
#[derive(clap::Args)]
pub struct ClaimsArgs {
    /// Run directories, or `latest`; if several have the same case and row, the first one counts
    #[arg(default_value = "latest")]
    runs: Vec<String>,
    /// Write this format instead of a table for the terminal
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<ClaimsFormat>,
    /// Only the claims of one document: bt, mm, rp, za or ll
    #[arg(long, value_name = "NAME")]
    document: Option<String>,
    /// Write a page with every published figure beside the measured one, and every claim with its
    /// verdict
    #[arg(long, conflicts_with = "to")]
    reproduction: bool,
    /// File to write; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// Formats of the table.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ClaimsFormat {
    /// Markdown
    Md,
    /// Everything, with all numbers
    Json,
}

/// Runs the command.
pub fn run(args: ClaimsArgs) -> Result<Exit> {
    let dirs: Vec<PathBuf> = args
        .runs
        .iter()
        .map(|run| store::find(run))
        .collect::<Result<_>>()
        .map_err(usage)?;
    let output = Output::new(
        &args.output,
        args.force,
        dirs.iter().map(|dir| store::head_of(dir)),
    )?;
    let catalog = Catalog::load()?;
    let documents = chosen(Document::load(&catalog)?, args.document.as_deref())?;
    let runs: Vec<Measured> = args
        .runs
        .iter()
        .map(|run| read(run))
        .collect::<Result<_>>()?;
    same_preset(&args.runs, &runs)?;
    let judged = judge(&documents, &catalog.workloads, &runs);
    let text = match args.to {
        _ if args.reproduction => report::reproduction(
            &documents,
            &catalog.workloads,
            &Evidence::new(&runs),
            &runs,
            &judged,
        ),
        Some(ClaimsFormat::Md) => report::claims_markdown(&judged),
        Some(ClaimsFormat::Json) => report::claims_json(&judged),
        None => {
            let screen = Screen {
                width: width(),
                colour: wants_colour(&std::io::stdout()),
            };
            report::claims(&judged, args.document.is_some(), screen)
        }
    };
    output.put(&text)?;
    Ok(Exit::Done)
}

/// A page does not read runs with more text of samples than this: claims are about runs of some
/// thousand processes.
const MOST_BYTES: u64 = 64 << 20;

/// The checked claims for a page of these runs; empty if the runs cannot be combined, or are too
/// large.
pub(super) fn of_page(dirs: &[PathBuf]) -> Result<Vec<JudgedClaim>> {
    let bytes = dirs
        .iter()
        .filter_map(|dir| Some(std::fs::metadata(store::samples_of(dir)).ok()?.len()))
        .sum::<u64>();
    if bytes > MOST_BYTES {
        return Ok(Vec::new());
    }
    let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    let runs: Vec<Measured> = dirs
        .iter()
        .map(|dir| Ok(measured(dir, store::read(dir)?)))
        .collect::<Result<_>>()?;
    if same_preset(&names, &runs).is_err() {
        return Ok(Vec::new());
    }
    let catalog = Catalog::load()?;
    Ok(judge(&Document::load(&catalog)?, &catalog.workloads, &runs))
}

fn chosen(documents: Vec<Document>, name: Option<&str>) -> Result<Vec<Document>> {
    let Some(name) = name else {
        return Ok(documents);
    };
    let known: Vec<String> = documents
        .iter()
        .map(|document| document.name.clone())
        .collect();
    let found: Vec<Document> = documents
        .into_iter()
        .filter(|document| document.name == name)
        .collect();
    if found.is_empty() {
        return Err(usage(anyhow!(
            "no document `{name}`: there are {}",
            known.join(", ")
        )));
    }
    Ok(found)
}

fn read(run: &str) -> Result<Measured> {
    let dir = store::find(run).map_err(usage)?;
    let run = store::read(&dir)?;
    say_damage(&dir, &run);
    Ok(measured(&dir, run))
}

fn measured(dir: &Path, run: store::Run) -> Measured {
    let store::Run { head, records, .. } = run;
    let mut series = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record.purpose == Purpose::Sample && record.outcome.is_ok())
    {
        if let Some(one) = store::columns(dir, record) {
            series.insert(record.cell.clone(), one);
        }
    }
    Measured {
        head,
        records,
        series,
    }
}

/// Two presets are never compared, and a claim may rest on several runs.
fn same_preset(names: &[String], runs: &[Measured]) -> Result<()> {
    let preset = |place: usize| &runs[place].head.preset;
    match (1..runs.len()).find(|place| preset(*place) != preset(0)) {
        None => Ok(()),
        Some(other) => Err(usage(anyhow!(
            "{} has preset {} and {} has {}: give runs of one preset, as sizes of two are never compared",
            names[0],
            preset(0),
            names[other],
            preset(other)
        ))),
    }
}
