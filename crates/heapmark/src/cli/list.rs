//! `heapmark list`: what can be measured, and what is missing.

use crate::build::input::missing;
use crate::build::{self, Library, State};
use crate::catalog::{
    Allocator, Catalog, Program, RealProgram, Release, Source, Suite, Workload, joined,
    real_program, trace_pack,
};
use crate::cmd::run::real_programs::apt_line;
use crate::cmd::{Exit, catalog, print, print_json, told_version, unexpected, width_of};
use crate::execute::{Guest, Subject};
use crate::file::space_of;
use crate::metric::{self, Metric};
use crate::report::document::{Block, Cell, Sheet};
use crate::report::render::terminal;
use crate::report::{self, Screen, count, short, units::bytes};
use crate::store::{self, RunFile};
use crate::{check, claims};
use anyhow::Result;
use heapmark_core::cmd::output::AnswerFormat;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{IsTerminal, stdout};
use std::path::Path;

/// Show what can be measured
#[derive(clap::Args)]
pub struct ListArgs {
    /// What to list
    what: What,
    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
    /// For each allocator that heapmark builds: its flags beside those of its authors' own build,
    /// and why they differ
    #[arg(long, conflicts_with_all = ["format", "markdown"])]
    flags: bool,
    /// Print the allocators, the workloads with all parameters, the metrics or the checks as a Markdown
    /// page
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
}

/// The kinds of things that can be listed.
#[derive(Clone, Copy, clap::ValueEnum)]
enum What {
    /// Name, release, version as the library reports it, origin, state, and the command
    /// that installs or builds what is absent
    Allocators,
    /// Releases of allocators, which -a takes as FAMILY@VERSION, and where each is from
    Releases,
    /// Workloads and their parameters
    Workloads,
    /// Measured programs, of other languages or with memory of their own: state, and the command that
    /// installs or builds what is absent
    Languages,
    /// Real programs of the distribution, which suite programs runs: state, and the command that
    /// installs what is absent
    Programs,
    /// Named selections of workloads, threads and allocators
    Suites,
    /// What the reference documents claim, and where it is checked
    Claims,
    /// What tables, exports and comparisons show of a process
    Metrics,
    /// What `heapmark check` looks at
    Checks,
    /// Traces of real programs that heapmark carries, for replay
    Traces,
    /// Stored runs in ./heapmark-results, the newest first
    Runs,
}

/// Runs the command.
pub fn run(args: ListArgs) -> Result<Exit> {
    let catalog = catalog()?;
    if args.markdown {
        print(match args.what {
            What::Allocators => report::allocators(&catalog.allocators),
            What::Workloads => report::workloads(&catalog.workloads),
            What::Metrics => report::metrics(),
            What::Checks => check::list::page()?,
            What::Releases
            | What::Languages
            | What::Programs
            | What::Suites
            | What::Claims
            | What::Traces
            | What::Runs => {
                refuse!(
                    "--markdown is for allocators, workloads, metrics and checks: the others are tables already"
                );
            }
        })?;
        return Ok(Exit::Done);
    }
    if args.flags {
        if !matches!(args.what, What::Allocators) {
            refuse!("--flags is for allocators");
        }
        print(report::flags(&catalog.allocators))?;
        return Ok(Exit::Done);
    }
    let (columns, entries): (&[&str], Vec<Value>) = match args.what {
        What::Allocators => (
            &[
                "name", "aliases", "tier", "release", "version", "origin", "state",
            ],
            allocators(catalog)?,
        ),
        What::Releases => (
            &["name", "date", "from"],
            catalog.releases.iter().map(of_release).collect(),
        ),
        What::Workloads => (
            &["name", "document", "presets", "about"],
            catalog.workloads.iter().map(of_workload).collect(),
        ),
        What::Languages => (
            &["name", "allocator", "state", "about"],
            catalog.programs.iter().map(of_program).collect(),
        ),
        What::Programs => (
            &["name", "family", "role", "threads", "state", "about"],
            real_program::load()?.iter().map(of_real_program).collect(),
        ),
        What::Suites => (
            &["name", "preset", "workloads", "threads", "about"],
            catalog.suites.iter().map(of_suite).collect(),
        ),
        What::Claims => (
            &["id", "says", "evidence", "workloads", "hardening_checks"],
            claims::listed(catalog)?,
        ),
        What::Metrics => (
            &["key", "unit", "better", "judged", "about"],
            metric::all().map(of_metric).collect(),
        ),
        What::Checks => (
            &["name", "group", "standing", "about"],
            check::list::listed()?,
        ),
        What::Traces => (&["name", "family", "threads", "size", "about"], traces()?),
        What::Runs => (
            &["run", "started", "what", "rows", "size"],
            store::runs().iter().rev().map(|dir| of_run(dir)).collect(),
        ),
    };
    if args.format == AnswerFormat::Json {
        print_json(&entries)?;
    } else {
        print(table(columns, &entries))?;
    }
    Ok(Exit::Done)
}

fn table(columns: &[&str], entries: &[Value]) -> String {
    let row = |entry| {
        let texts = columns.iter().map(move |column| cell(entry, column));
        let name = |(place, text)| match place {
            0 => Cell::from(text),
            _ => Cell::text(text),
        };
        texts.enumerate().map(name)
    };
    let sheet = Sheet::new("", columns, entries.iter().map(row));
    // A program that reads a pipe needs whole lines.
    let width = match stdout().is_terminal() {
        true => width_of(stdout()),
        false => usize::MAX,
    };
    let screen = Screen {
        width,
        colour: false,
    };
    terminal(&[Block::Sheet(sheet)], screen)
}

fn of_release(release: &Release) -> Value {
    let from = match release.found.as_ref().map(|allocator| &allocator.source) {
        Ok(Source::Crate { name, pin, .. }) => ("crate", name, pin),
        Ok(Source::Wheel { name, pin, .. }) => ("wheel", name, pin),
        Ok(Source::Deb { name, pin, .. }) => ("deb", name, &Some(pin.clone())),
        _ => ("", &release.like, &None),
    };
    let from = match (from, &release.found) {
        (_, Err(why)) => format!("cannot be had: {why}"),
        ((kind, name, Some(pin)), _) => format!("{kind} {name} {}", pin.version),
        ((kind, name, None), _) => format!("{kind} {name}, as {}", release.like),
    };
    json!({"name": release.name(), "date": release.date, "from": from})
}

fn of_metric(metric: &Metric) -> Value {
    json!({
        "key": metric.key, "alias": metric.alias, "unit": metric.unit.word(), "better": metric.better.word(),
        "judged": metric.judged.word(), "about": metric.about,
    })
}

/// Returns the entry of a run; a run whose head cannot be read is listed with the reason.
fn of_run(dir: &Path) -> Value {
    let space_bytes = space_of(dir);
    let size = bytes(space_bytes as f64);
    // The name may not be valid text.
    let name = dir.display().to_string();
    match store::head(dir) {
        Ok(head) => {
            let allocators = head.allocators.iter().map(|allocator| &allocator.name);
            let rows: usize = head
                .plan
                .cases
                .iter()
                .map(|case| head.rows_of(case).count())
                .sum();
            json!({
                "run": name, "started": head.started, "what": what(&head), "rows": rows, "suite": head.suite,
                "cases": head.plan.cases.len(), "allocators": allocators.collect::<Vec<_>>(), "size": size,
                "space_bytes": space_bytes,
            })
        }
        Err(why) => json!({
            "run": name, "what": format!("{why:#}"), "size": size, "space_bytes": space_bytes,
        }),
    }
}

/// Returns what a run measured, in words: `try g++ -O0 unit.cpp`, or the suite and its number of cases.
fn what(head: &RunFile) -> String {
    let cases = &head.plan.cases;
    match cases.first().and_then(|case| case.command()) {
        Some(command) => short(&format!("{} {}", head.suite, command.command.join(" "))),
        None => format!("{}, {}", head.suite, count(cases.len(), "case")),
    }
}

/// Returns the traces that heapmark carries.
fn traces() -> Result<Vec<Value>> {
    let programs = real_program::load()?;
    let of = |name: String| {
        let program = programs.iter().find(|program| program.name == name);
        let size_bytes = trace_pack::trace(&name).map_or(0, <[u8]>::len);
        json!({
            "name": name, "family": program.map(|program| &program.family), "threads": program.map(|program| program.threads),
            "size": bytes(size_bytes as f64), "size_bytes": size_bytes, "about": program.map(|program| &program.about),
        })
    };
    Ok(trace_pack::names().into_iter().map(of).collect())
}

/// Returns a cell of the table. A time is shown to the minute, a state with its reason and its remedy.
fn cell(entry: &Value, column: &str) -> String {
    let detail = |key: &str| (!entry[key].is_null()).then(|| plain(&entry[key]));
    let mut text = plain(&entry[column]);
    if column == "started" {
        text = text
            .chars()
            .take("2026-01-01T00:00".len())
            .collect::<String>()
            .replace('T', " ");
    }
    match (column, detail("why").or(detail("built")), detail("remedy")) {
        ("state", Some(why), Some(remedy)) => format!("{text}, {why}: {remedy}"),
        ("state", Some(detail), None) | ("state", None, Some(detail)) => {
            format!("{text}: {detail}")
        }
        _ => text,
    }
}

/// The state of an entry, why it is not ready, and the command that makes it ready.
type Readiness = (&'static str, Option<String>, Option<String>);

const READY: Readiness = ("ready", None, None);

fn readiness<T>(state: State<T>) -> Readiness {
    match state {
        State::Ready(_) => READY,
        State::NotBuilt { line } => ("not built", None, Some(line)),
        State::Absent { why, line } => ("absent", Some(why), Some(line)),
        State::Unsupported { why } => ("unsupported", Some(why), None),
        State::Refused { why } => ("refused", Some(why), None),
    }
}

/// Returns a value as text, short enough for a table: some libraries report their commit hash as part of their version.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => match text.split_once("-0-g") {
            Some((version, commit)) if commit.len() > 20 => version.to_string(),
            _ => text.clone(),
        },
        Value::Null => "-".into(),
        Value::Array(items) => joined(items.iter().map(plain), ", "),
        other => other.to_string(),
    }
}

fn allocators(catalog: &Catalog) -> Result<Vec<Value>> {
    let guest = Guest::find()?;
    let describe = |allocator: &Allocator| -> Result<Value> {
        let mut built = None;
        let mut files = Vec::new();
        let (found, version, origin) = match build::state(allocator, &catalog.allocators) {
            State::Ready(library) => {
                let subject = Subject::new(allocator.clone(), library);
                let found = match unexpected(&guest, &subject)? {
                    None => READY,
                    why => ("absent", why, None),
                };
                built = built_by(&subject.library);
                files.clone_from(&subject.library.files);
                // The version that the library reports, not the crate's: the origin stands in the next column.
                let version = told_version(&guest, &subject)?.filter(|version| !version.is_empty());
                (found, version, subject.library.origin)
            }
            state => {
                let original = build::original(allocator, &catalog.allocators);
                (readiness(state), None, original.source.kind().to_owned())
            }
        };
        let (state, why, remedy) = found;
        let release = allocator.release(version.as_deref());
        let release = Some(release).filter(|release| !release.is_empty());
        let date = Some(&allocator.sources.date).filter(|date| !date.is_empty());
        Ok(json!({
            "name": allocator.name, "family": allocator.family, "aliases": allocator.aliases, "tier": allocator.tier, "version": version,
            "sources": date, "release": release, "origin": origin, "state": state, "built": built, "files": files,
            "why": why, "remedy": remedy, "about": allocator.about, "home": allocator.home,
            "licence": allocator.licence, "environment": allocator.environment, "leaves": allocator.left_to_libc,
            "except": allocator.except, "upstream_flags": allocator.upstream_flags, "differences": allocator.differences,
        }))
    };
    catalog.allocators.iter().map(describe).collect()
}

/// Returns where a library of pinned sources was built.
fn built_by(library: &Library) -> Option<String> {
    match library.built.as_str() {
        "" if library.origin.starts_with("crate ") => Some("built here".into()),
        "" => None,
        by => Some(by.into()),
    }
}

fn of_program(program: &Program) -> Value {
    let found = build::program::state(program);
    let versions = match &found {
        State::Ready(executable) => executable.versions.clone(),
        _ => Default::default(),
    };
    let (state, why, remedy) = readiness(found);
    json!({
        "name": program.name, "allocator": program.allocator, "state": state, "why": why,
        "remedy": remedy, "about": program.about,
        "home": program.home, "licence": program.licence, "environment": program.environment, "versions": versions,
    })
}

fn of_real_program(program: &RealProgram) -> Value {
    let missing = missing(program);
    let is_there = missing.is_empty();
    let why = (!is_there).then(|| format!("{} is not there", missing.join(", ")));
    json!({
        "name": program.name, "family": program.family, "threads": program.threads, "about": program.about,
        "packages": program.packages, "role": program.role,
        "state": if is_there { "ready" } else { "absent" }, "why": why,
        "remedy": (!is_there).then(|| apt_line([program])),
        "quick": program.quick, "paper": program.paper,
    })
}

fn of_workload(workload: &Workload) -> Value {
    let parameters = workload.parameters.iter().map(|(name, parameter)| {
        let value = |preset| {
            workload
                .values(preset)
                .and_then(|values| values.get(name).cloned())
        };
        let described = json!({
            "about": parameter.about, "unit": parameter.kind.unit(), "choices": parameter.choices,
            "quick": value("quick"), "paper": value("paper"),
        });
        (name, described)
    });
    let parameters: BTreeMap<_, _> = parameters.collect();
    let rounds = workload.presets.iter().map(|(name, preset)| {
        let rounds = json!({ "cold": preset.cold, "measured": preset.iterations });
        (name, rounds)
    });
    let rounds: BTreeMap<_, _> = rounds.collect();
    json!({
        "name": workload.name, "kernel": workload.kernel, "program": workload.program,
        "rows": workload.rows, "document": workload.document,
        "presets": workload.presets.keys().collect::<Vec<_>>(),
        "about": workload.about, "shows": workload.shows, "does_not_show": workload.hides,
        "operation": workload.operation, "threads": workload.threads, "series": workload.series,
        "rounds": rounds, "parameters": parameters,
    })
}

fn of_suite(suite: &Suite) -> Value {
    json!({
        "name": suite.name, "preset": suite.preset, "workloads": suite.workloads, "threads": suite.threads,
        "blocks": suite.blocks, "baseline": suite.baseline, "about": suite.about,
    })
}
