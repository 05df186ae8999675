//! The page about the workloads, made from the data files only; `make docs` keeps it up to date.

use super::render::escaped;
use super::text;
use crate::catalog::parameter::Kind;
use crate::catalog::{Iterations, Workload};
use std::collections::BTreeMap;

/// Short name, title and origin of each reference document; docs/COMPARISON.md has all sources.
const DOCUMENTS: [(&str, &str, &str); 6] = [
    (
        "MM",
        "the micromalloc benchmarks page (2024)",
        "`benchmarks.md` of [micromalloc](https://github.com/Thermadiag/micromalloc) (2024) and its programs",
    ),
    (
        "RP",
        "the rpmalloc benchmarks page (April 2017)",
        "`BENCHMARKS.md` of [rpmalloc](https://github.com/mjansson/rpmalloc) (April 2017) and \
                 [rpmalloc-benchmark](https://github.com/mjansson/rpmalloc-benchmark)",
    ),
    (
        "ZA",
        "the post \"Performance Comparison of Different Allocators\" (2019)",
        "the post \"Performance Comparison of Different Allocators\" (26 August 2019, revised 8 October 2019)",
    ),
    (
        "LL",
        "the llheap performance chapter (Waterloo, 2022)",
        "Mubeen Zulfiqar, \"High-Performance Concurrent Memory Allocation\", thesis, University of Waterloo, 2022, \
                 chapter Performance ([llheap](https://github.com/cforall/llheap))",
    ),
    (
        "BT",
        "the binary-trees document (2019)",
        "README \"Binary tree benchmarks for various memory allocators\" of \
                 [btree-alloc](https://github.com/rbehrends/btree-alloc) (numbers of May and June 2019)",
    ),
    (
        "HM",
        "what servers pay for: shapes of memory",
        "our own, after programs and reports that [Sources](COMPARISON.md#sources) names",
    ),
];

/// Every workload: what it does, its source, its parameters, what it shows and does not show.
pub fn workloads(all: &[Workload]) -> String {
    let mut out = String::from(
        "# Workloads\n\n\
         Printed by `heapmark list workloads --markdown` from the files in `workloads/`.\n\n\
         Each has the presets `quick` (the same shape, small) and `paper` (the reference document's own size); results of\n\
         the two are never compared. `--set WORKLOAD.PARAMETER=VALUE` changes a value.\n\n\
         The first round of a process works on fresh memory, later ones reuse it: different workloads, which no preset swaps. What a\n\
         reference program does once is one round per process, in both presets; `-reuse` is a workload of its own.\n\n\
         `-t 1` is one worker thread beside an idle main thread. glibc serves the worker from a secondary arena, and takes longer than in\n\
         a program whose only thread is the main one. `--set WORKLOAD.thread=main` is that program: the main thread does the work of the\n\
         one worker, and heapmark creates no thread in the process (`--counter kernel` alone has one beside it, which counts). Most\n\
         workloads without this parameter need two threads, or new ones all the time; `open-loop`, `sized` and `idle-return` take a\n\
         worker, and in `start`, `late-free` and `fork-cow` the main thread works or starts processes. *One thread* says what the\n\
         reference program does.\n",
    );
    for (short, title, origin) in DOCUMENTS {
        let ours = || {
            all.iter()
                .filter(move |workload| workload.document == short)
        };
        if ours().next().is_some() {
            out += &format!("\n## {short}: {title}\n");
        }
        for main in ours().filter(|workload| workload.variant_of.is_none()) {
            let lines: String = ours()
                .filter(|workload| workload.variant_of.as_ref() == Some(&main.name))
                .map(|variant| variant_line(main, variant))
                .collect();
            out += &section(main, origin);
            out += &text::enclosed("\nVariants:\n\n", &lines, "");
        }
    }
    out
}

fn section(workload: &Workload, origin: &str) -> String {
    let kernel = workload.kernel.as_ref();
    let program = workload.program.as_ref();
    let program = program.map(|program| format!("program `{program}`"));
    let threads = workload.threads.as_ref();
    let series = workload.series.as_ref();
    let one_thread = workload.one_thread.as_ref();
    let facts = [
        ("What it does", Some(escaped(&workload.about))),
        ("Origin", Some(origin.to_owned())),
        ("Operation", Some(escaped(&workload.operation))),
        ("Shows", Some(escaped(&workload.shows))),
        ("Does not show", Some(escaped(&workload.hides))),
        ("Rounds of a process", Some(rounds(workload))),
        (
            "Runs",
            kernel
                .map(|kernel| format!("kernel `{kernel}`"))
                .or(program),
        ),
        (
            "Threads",
            threads.map(|threads| format!("`{threads}`, whatever `-t` says")),
        ),
        ("One thread", one_thread.map(|says| escaped(says))),
        (
            "Memory over time",
            series.map(|every| format!("always, every {every}")),
        ),
    ];
    let mut out = format!("\n### {}\n\n", workload.name);
    for (what, says) in facts {
        out.extend(says.map(|says| format!("- **{what}**: {says}.\n")));
    }
    if let Some(caution) = &workload.caution {
        out += &format!("- **Below its tables**: {}\n", escaped(caution));
    }
    out += "\n| parameter | quick | paper | unit | meaning |\n|---|---|---|---|---|\n";
    for (name, parameter) in &workload.parameters {
        let choices = match parameter.kind {
            Kind::Choice => format!(" ({})", parameter.choices.join(", ")),
            _ => String::new(),
        };
        let value = |preset| {
            let values = values(workload, preset);
            escaped(values.get(name).map_or("", String::as_str))
        };
        out += &format!(
            "| `{name}` | {} | {} | {} | {}{choices} |\n",
            value("quick"),
            value("paper"),
            parameter.kind.unit(),
            escaped(&parameter.about),
        );
    }
    if !workload.rows.is_empty() {
        out += "\n| row of its own | program | what it is |\n|---|---|---|\n";
    }
    for row in &workload.rows {
        let name = escaped(&row.name);
        let about = escaped(&row.about);
        out += &format!("| {name} | `{}` | {about} |\n", row.program);
    }
    out
}

/// A line about a variant, with the parameters that it changes.
fn variant_line(main: &Workload, variant: &Workload) -> String {
    let mut changes = Vec::new();
    for preset in ["quick", "paper"] {
        let before = values(main, preset);
        let changed = values(variant, preset)
            .into_iter()
            .filter(|(name, value)| before.get(name) != Some(value))
            .map(|(name, value)| format!("`{name}` = {}", escaped(&value)));
        let changed = text::join(changed, ", ");
        if !changed.is_empty() {
            changes.push(format!("{preset}: {changed}"));
        }
    }
    if rounds(variant) != rounds(main) {
        changes.push(format!("rounds: {}", rounds(variant)));
    }
    if variant.rows != main.rows {
        let names = variant.rows.iter().map(|row| escaped(&row.name));
        changes.push(format!("rows: {}", text::list(names)));
    }
    let name = &variant.name;
    let about = escaped(&variant.about);
    let changes = text::enclosed(" (", &changes.join("; "), ")");
    format!("- **{name}**: {about}{changes}\n")
}

/// The repetitions in a process, for each preset unless both agree.
fn rounds(workload: &Workload) -> String {
    let [quick, paper] = ["quick", "paper"].map(|preset| {
        workload
            .presets
            .get(preset)
            .map(|preset| match (preset.cold, preset.iterations) {
                (0, Iterations::Fixed(1)) => "one, the first".to_string(),
                (0, Iterations::Fixed(count)) => format!("the first {count}"),
                (cold, Iterations::Fixed(count)) => format!("{count} after the first {cold}"),
                (0, Iterations::Calibrated(_)) => "as many as fill the target time".to_string(),
                (cold, Iterations::Calibrated(_)) => {
                    format!("as many as fill the target time, after the first {cold}")
                }
            })
            .unwrap_or_default()
    });
    if quick == paper {
        quick
    } else {
        format!("{quick} (quick); {paper} (paper)")
    }
}

fn values(workload: &Workload, preset: &str) -> BTreeMap<String, String> {
    workload.values(preset).unwrap_or_default()
}
