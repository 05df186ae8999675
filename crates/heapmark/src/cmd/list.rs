//! `heapmark list`: what can be measured, and what is missing.

use super::{Exit, print, tier, unexpected, usage};
use crate::build::{self, State};
use crate::catalog::Catalog;
use crate::catalog::claim::Document;
use crate::execute::{Guest, Subject};
use crate::metric::{self, Metric};
use crate::report;
use anyhow::{Context, Result, anyhow};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde_json::{Value, json};
use std::io::{IsTerminal, stdout};

/// Show what can be measured
#[derive(clap::Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// For each allocator that heapmark builds: its flags beside those of its authors' own build,
    /// and why they differ
    #[arg(long, conflicts_with_all = ["json", "markdown"])]
    flags: bool,
    /// Print the workloads as a Markdown page with all parameters, or the metrics as a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
}

/// Kinds of things.
#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Name, version as the library reports it, date of the sources, origin, state, and the command
    /// that installs or builds what is absent
    Allocators,
    /// Workloads and their parameters
    Workloads,
    /// Programs that run workloads in their own processes: state, and the command that installs or
    /// builds what is absent
    Programs,
    /// Named selections of workloads, threads and allocators
    Suites,
    /// What the reference documents claim, and where it is checked
    Claims,
    /// What tables, exports and comparisons show of a process
    Metrics,
}

/// Runs the command.
pub fn run(args: ListArgs) -> Result<Exit> {
    let catalog = Catalog::load()?;
    if args.markdown {
        let page = match args.what {
            What::Workloads => report::workloads(&catalog.workloads),
            What::Metrics => report::metrics(),
            What::Allocators | What::Programs | What::Suites | What::Claims => {
                return Err(usage(anyhow!(
                    "--markdown is for workloads and metrics: the others are tables already"
                )));
            }
        };
        print(&page)?;
        return Ok(Exit::Done);
    }
    if args.flags {
        if !matches!(args.what, What::Allocators) {
            return Err(usage(anyhow!("--flags is for allocators")));
        }
        print(&report::flags(&catalog.allocators))?;
        return Ok(Exit::Done);
    }
    let (columns, entries) = match args.what {
        What::Allocators => (
            &["name", "tier", "version", "sources", "origin", "state"][..],
            allocators(&catalog)?,
        ),
        What::Workloads => (
            &["name", "document", "presets", "about"][..],
            workloads(&catalog),
        ),
        What::Programs => (
            &["name", "allocator", "state", "about"][..],
            programs(&catalog),
        ),
        What::Suites => (
            &["name", "preset", "workloads", "threads", "about"][..],
            suites(&catalog),
        ),
        What::Claims => (
            &["id", "says", "evidence", "workloads"][..],
            claims(&catalog)?,
        ),
        What::Metrics => (&["key", "unit", "better", "judged", "about"][..], metrics()),
    };
    if args.json {
        print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&entries).context("cannot write JSON")?
        ))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new();
    // A program that reads a pipe needs whole lines.
    let arrangement = if stdout().is_terminal() {
        ContentArrangement::Dynamic
    } else {
        ContentArrangement::Disabled
    };
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(arrangement);
    table.set_width(super::width() as u16).set_header(columns);
    for entry in &entries {
        table.add_row(columns.iter().map(|column| cell(entry, column)));
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    let text: String = table
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    print(&text)?;
    Ok(Exit::Done)
}

fn metrics() -> Vec<Value> {
    let entry = |metric: &Metric| {
        json!({
            "key": metric.key, "alias": metric.alias, "unit": metric.unit.word(), "better": metric.better.word(),
            "judged": metric.judged.word(), "about": metric.about,
        })
    };
    metric::all().map(entry).collect()
}

/// A cell of the table. A state is shown with its reason and its remedy.
fn cell(entry: &Value, column: &str) -> String {
    let of = |key: &str| plain(&entry[key]);
    match column {
        "state" if !entry["why"].is_null() && !entry["remedy"].is_null() => {
            format!("{}, {}: {}", of("state"), of("why"), of("remedy"))
        }
        "state" if !entry["why"].is_null() => format!("{}: {}", of("state"), of("why")),
        "state" if !entry["remedy"].is_null() => format!("{}: {}", of("state"), of("remedy")),
        _ => of(column),
    }
}

/// The state of an entry, why it is not ready, and the command that makes it ready.
struct Readiness {
    state: &'static str,
    why: Option<String>,
    remedy: Option<String>,
}

impl Readiness {
    const READY: Readiness = Readiness {
        state: "ready",
        why: None,
        remedy: None,
    };

    /// The state of an entry that is not ready.
    fn of<T>(state: State<T>) -> Readiness {
        match state {
            State::Ready(_) => Readiness::READY,
            State::NotBuilt { line } => Readiness {
                state: "not built",
                why: None,
                remedy: Some(line),
            },
            State::Absent { why, line } => Readiness {
                state: "absent",
                why: Some(why),
                remedy: Some(line),
            },
            State::Refused { why } => Readiness {
                state: "refused",
                why: Some(why),
                remedy: None,
            },
        }
    }
}

/// Short enough for a table: some libraries report their commit hash as part of their version.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => match text.split_once("-0-g") {
            Some((version, commit)) if commit.len() > 20 => version.to_string(),
            _ => text.clone(),
        },
        Value::Null => "-".into(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn allocators(catalog: &Catalog) -> Result<Vec<Value>> {
    let guest = Guest::find()?;
    let describe = |allocator: &crate::catalog::Allocator| -> Result<Value> {
        let (found, version, origin) = match build::state(allocator, &catalog.allocators) {
            State::Ready(library) => {
                let origin = library.origin.clone();
                let subject = Subject {
                    allocator: allocator.clone(),
                    library,
                    refused: None,
                };
                let found = match unexpected(&guest, &subject)? {
                    None => Readiness::READY,
                    why => Readiness {
                        state: "absent",
                        why,
                        remedy: None,
                    },
                };
                (found, told(&guest, &subject)?, origin)
            }
            state => {
                let origin = match state {
                    State::NotBuilt { .. } => "crate",
                    State::Absent { .. } => "package",
                    _ => "path",
                };
                (Readiness::of(state), None, origin.to_owned())
            }
        };
        Ok(json!({
            "name": allocator.name, "family": allocator.family, "tier": tier(allocator), "version": version,
            "sources": sources(allocator), "origin": origin, "state": found.state, "why": found.why,
            "remedy": found.remedy, "about": allocator.about, "home": allocator.home,
            "licence": allocator.licence, "environment": allocator.environment, "leaves": allocator.left_to_libc,
            "except": allocator.except, "upstream_flags": allocator.upstream_flags, "differences": allocator.differences,
        }))
    };
    catalog.allocators.iter().map(describe).collect()
}

/// When its sources were written. For a package the version shows that.
fn sources(allocator: &crate::catalog::Allocator) -> Option<&str> {
    Some(allocator.sources.as_str()).filter(|sources| !sources.is_empty())
}

/// Only what the library reports itself: its origin stands in the next column.
fn told(guest: &Guest, subject: &Subject) -> Result<Option<String>> {
    let package = (!subject.library.origin.starts_with("crate"))
        .then(|| subject.library.source_version.clone());
    Ok(guest
        .version(subject)?
        .or(package)
        .filter(|version| !version.is_empty()))
}

fn programs(catalog: &Catalog) -> Vec<Value> {
    let describe = |program: &crate::catalog::Program| {
        let mut versions = Default::default();
        let found = match build::program::state(program) {
            State::Ready(executable) => {
                versions = executable.versions;
                Readiness::READY
            }
            state => Readiness::of(state),
        };
        json!({
            "name": program.name, "allocator": program.allocator, "state": found.state, "why": found.why,
            "remedy": found.remedy, "about": program.about,
            "home": program.home, "licence": program.licence, "environment": program.environment, "versions": versions,
        })
    };
    catalog.programs.iter().map(describe).collect()
}

fn workloads(catalog: &Catalog) -> Vec<Value> {
    let describe = |workload: &crate::catalog::Workload| {
        let parameters: serde_json::Map<String, Value> = workload
            .parameters
            .iter()
            .map(|(name, parameter)| {
                let value = |preset| workload.values(preset).and_then(|values| values.get(name).cloned());
                let described = json!({
                    "about": parameter.about, "unit": parameter.kind.unit(), "choices": parameter.choices,
                    "quick": value("quick"), "paper": value("paper"),
                });
                (name.clone(), described)
            })
            .collect();
        let rounds = |preset: &crate::catalog::workload::Preset| json!({ "cold": preset.cold, "measured": preset.iterations });
        let rounds: serde_json::Map<String, Value> = workload
            .presets
            .iter()
            .map(|(name, preset)| (name.clone(), rounds(preset)))
            .collect();
        json!({
            "name": workload.name, "kernel": workload.kernel, "program": workload.program,
            "rows": workload.rows, "document": workload.document,
            "presets": workload.presets.keys().collect::<Vec<_>>(),
            "about": workload.about, "shows": workload.shows, "does_not_show": workload.hides,
            "operation": workload.operation, "threads": workload.threads, "series": workload.series,
            "rounds": rounds, "parameters": parameters,
        })
    };
    catalog.workloads.iter().map(describe).collect()
}

fn claims(catalog: &Catalog) -> Result<Vec<Value>> {
    let documents = Document::load(catalog)?;
    let all = documents.iter().flat_map(|document| &document.claims);
    Ok(all.map(|claim| json!(claim)).collect())
}

fn suites(catalog: &Catalog) -> Vec<Value> {
    let describe = |suite: &crate::catalog::Suite| {
        json!({
            "name": suite.name, "preset": suite.preset, "workloads": suite.workloads, "threads": suite.threads,
            "blocks": suite.blocks, "baseline": suite.baseline, "about": suite.about,
        })
    };
    catalog.suites.iter().map(describe).collect()
}
