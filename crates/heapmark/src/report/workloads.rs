//! The workloads as a page, from the data files alone: `docs/WORKLOADS.md` is this text.

use super::text::{self, markdown};
use crate::catalog::parameter::Kind;
use crate::catalog::workload::{Preset, ProgramRow};
use crate::catalog::{Iterations, Workload};
use std::collections::BTreeMap;

/// A reference document; docs/BIBLIOGRAPHY.md has all sources.
struct SourceDocument {
    short: &'static str,
    title: &'static str,
    origin: &'static str,
}

const DOCUMENTS: [SourceDocument; 5] = [
    SourceDocument {
        short: "MM",
        title: "the micromalloc benchmarks page (2024)",
        origin: "`benchmarks.md` of [micromalloc](https://github.com/Thermadiag/micromalloc) (2024) and its programs",
    },
    SourceDocument {
        short: "RP",
        title: "the rpmalloc benchmarks page (April 2017)",
        origin: "`BENCHMARKS.md` of [rpmalloc](https://github.com/mjansson/rpmalloc) (April 2017) and \
                 [rpmalloc-benchmark](https://github.com/mjansson/rpmalloc-benchmark)",
    },
    SourceDocument {
        short: "ZA",
        title: "the post \"Performance Comparison of Different Allocators\" (2019)",
        origin: "the post \"Performance Comparison of Different Allocators\" (26 August 2019, revised 8 October 2019)",
    },
    SourceDocument {
        short: "LL",
        title: "the llheap performance chapter (Waterloo, 2022)",
        origin: "Mubeen Zulfiqar, \"High-Performance Concurrent Memory Allocation\", thesis, University of Waterloo, 2022, \
                 chapter Performance ([llheap](https://github.com/cforall/llheap))",
    },
    SourceDocument {
        short: "BT",
        title: "the binary-trees document (2019)",
        origin: "README \"Binary tree benchmarks for various memory allocators\" of \
                 [btree-alloc](https://github.com/rbehrends/btree-alloc) (numbers of May and June 2019)",
    },
];

/// Every workload: what it does, its source, its parameters, what it shows and does not show.
pub fn workloads(all: &[Workload]) -> String {
    let mut out = String::from(
        "# Workloads\n\n\
         Written by `heapmark list workloads --markdown` from the files in `workloads/`; do not edit.\n\n\
         Each has the presets `quick` (the same shape, small) and `paper` (the reference document's own size); results of\n\
         the two are never compared. `--set WORKLOAD.PARAMETER=VALUE` changes a value.\n\n\
         The first round of a process works on fresh memory, later ones reuse it: different workloads, which no preset swaps. What a\n\
         reference program does once is one round per process, in both presets; `-reuse` is a workload of its own.\n\n\
         `-t 1` is one worker thread beside an idle main thread. glibc serves the worker from a secondary arena, and takes longer than in\n\
         a program whose only thread is the main one.\n",
    );
    for SourceDocument {
        short,
        title,
        origin,
    } in DOCUMENTS
    {
        let ours: Vec<&Workload> = all
            .iter()
            .filter(|workload| workload.document == short)
            .collect();
        if ours.is_empty() {
            continue;
        }
        out.push_str(&format!("\n## {short}: {title}\n"));
        for main in ours.iter().filter(|workload| workload.variant_of.is_none()) {
            out.push_str(&section(main, origin));
            let variants = ours
                .iter()
                .filter(|workload| workload.variant_of.as_deref() == Some(&main.name));
            let lines: String = variants
                .map(|variant| variant_line(main, variant))
                .collect();
            if !lines.is_empty() {
                out.push_str(&format!("\nVariants:\n\n{lines}"));
            }
        }
    }
    out
}

fn section(workload: &Workload, origin: &str) -> String {
    let runs = workload
        .kernel
        .as_ref()
        .map(|kernel| format!("kernel `{kernel}`"));
    let runs = runs.or_else(|| {
        workload
            .program
            .as_ref()
            .map(|program| format!("program `{program}`"))
    });
    let mut facts = vec![
        format!("**What it does**: {}.", markdown(&workload.about)),
        format!("**Origin**: {origin}."),
        format!("**Operation**: {}.", markdown(&workload.operation)),
        format!("**Shows**: {}.", markdown(&workload.shows)),
        format!("**Does not show**: {}.", markdown(&workload.hides)),
    ];
    facts.push(format!("**Rounds of a process**: {}.", rounds(workload)));
    facts.extend(runs.map(|runs| format!("**Runs**: {runs}.")));
    facts.extend(
        workload
            .threads
            .as_ref()
            .map(|threads| format!("**Threads**: `{threads}`, whatever `-t` says.")),
    );
    facts.extend(
        workload
            .series
            .as_ref()
            .map(|every| format!("**Memory over time**: always, every {every}.")),
    );
    facts.extend(
        workload
            .caution
            .as_ref()
            .map(|caution| format!("**Below its tables**: {}", markdown(caution))),
    );
    let (quick, paper) = (values(workload, "quick"), values(workload, "paper"));
    let mut out = format!("\n### {}\n\n- {}\n", workload.name, facts.join("\n- "));
    out.push_str("\n| parameter | quick | paper | unit | meaning |\n|---|---|---|---|---|\n");
    for (name, parameter) in &workload.parameters {
        let choices = match parameter.kind {
            Kind::Choice => format!(" ({})", parameter.choices.join(", ")),
            _ => String::new(),
        };
        out.push_str(&format!(
            "| `{name}` | {} | {} | {} | {}{choices} |\n",
            markdown(quick.get(name).map_or("", String::as_str)),
            markdown(paper.get(name).map_or("", String::as_str)),
            parameter.kind.unit(),
            markdown(&parameter.about),
        ));
    }
    if !workload.rows.is_empty() {
        out.push_str("\n| row of its own | program | what it is |\n|---|---|---|\n");
    }
    for ProgramRow {
        name,
        program,
        about,
        ..
    } in &workload.rows
    {
        out.push_str(&format!(
            "| {} | `{program}` | {} |\n",
            markdown(name),
            markdown(about)
        ));
    }
    out
}

/// A variant by what it changes.
fn variant_line(main: &Workload, variant: &Workload) -> String {
    let mut changes = Vec::new();
    for preset in ["quick", "paper"] {
        let before = values(main, preset);
        let changed: Vec<String> = values(variant, preset)
            .into_iter()
            .filter(|(name, value)| before.get(name) != Some(value))
            .map(|(name, value)| format!("`{name}` = {}", markdown(&value)))
            .collect();
        if !changed.is_empty() {
            changes.push(format!("{preset}: {}", changed.join(", ")));
        }
    }
    if rounds(variant) != rounds(main) {
        changes.push(format!("rounds: {}", rounds(variant)));
    }
    if variant.rows != main.rows {
        let names: Vec<String> = variant.rows.iter().map(|row| markdown(&row.name)).collect();
        changes.push(format!("rows: {}", text::list(&names)));
    }
    let changes = if changes.is_empty() {
        String::new()
    } else {
        format!(" ({})", changes.join("; "))
    };
    format!(
        "- **{}**: {}{changes}\n",
        variant.name,
        markdown(&variant.about)
    )
}

/// The repetitions of a process, preset by preset unless they agree.
fn rounds(workload: &Workload) -> String {
    let of = |preset: &Preset| match (preset.cold, preset.iterations) {
        (0, Iterations::Fixed(1)) => "one, the first".to_string(),
        (0, Iterations::Fixed(count)) => format!("the first {count}"),
        (cold, Iterations::Fixed(count)) => format!("{count} after the first {cold}"),
        (0, Iterations::Calibrated(_)) => "as many as fill the target time".to_string(),
        (cold, Iterations::Calibrated(_)) => {
            format!("as many as fill the target time, after the first {cold}")
        }
    };
    let told =
        ["quick", "paper"].map(|preset| workload.presets.get(preset).map(of).unwrap_or_default());
    let [quick, paper] = &told;
    if quick == paper {
        quick.clone()
    } else {
        format!("{quick} (quick); {paper} (paper)")
    }
}

fn values(workload: &Workload, preset: &str) -> BTreeMap<String, String> {
    workload.values(preset).unwrap_or_default()
}
