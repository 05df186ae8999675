//! The output of `--dry-run`: a few lines show every flag of a run; parameters and processes are shown with `--cells`.

use super::comparison::Comparison;
use crate::catalog::{Tier, joined};
use crate::execute::Subject;
use crate::observe::machine::usable_cpus;
use crate::plan::{Case, CommandVariant, Plan, UserCommand};
use crate::report::units;
use crate::session::Selection;
use std::path::Path;

/// The most names that a line lists; of the others it prints only the number.
const MOST_NAMES: usize = 24;

/// A plan as text. `dir` is where its results would be stored.
pub fn outline(selection: &Selection, flags: &Comparison, dir: &Path) -> String {
    let plan = &selection.plan;
    let mut cases = plan.cases.iter();
    let is_compared = |one: &&Subject| plan.allocators.contains(&one.allocator.name);
    let mut compared = selection.subjects.iter().filter(is_compared);
    let copy = plan.aa_copy.as_ref();
    let beside: Vec<String> = copy
        .map(|_| format!("a copy of {}", plan.baseline))
        .into_iter()
        .chain(plan.floors().cloned())
        .collect();
    let lines = [
        (
            "suite",
            Some(format!("{}, preset {}", selection.suite, selection.preset)),
        ),
        ("workloads", Some(workloads(plan, false))),
        (
            "memory of",
            plan.cases
                .iter()
                .any(|case| case.beside)
                .then(|| workloads(plan, true)),
        ),
        // A user's command is the only case of its plan.
        (
            "command",
            (cases.clone().find_map(Case::command))
                .filter(|command| command.real.is_none())
                .map(described),
        ),
        (
            "",
            cases.any(|case| case.oversubscribed).then(|| {
                let cpus = usable_cpus();
                format!(
                    "oversubscribed: more threads than the {cpus} usable CPUs, so the scheduler is \
                     measured too"
                )
            }),
        ),
        ("allocators", Some(allocators(selection))),
        (
            "",
            compared
                .all(|subject| subject.allocator.wrapper)
                .then(|| "libraries that hand calls on to libc are measured, too".into()),
        ),
        (
            "beside",
            Some(if beside.is_empty() {
                "nothing".into()
            } else {
                beside.join(", ")
            }),
        ),
        ("measures", Some(measures(plan))),
        ("", plan.huge_pages.remark().map(String::from)),
        ("in turns", in_turns(plan, flags.alone)),
        ("blocks", Some(blocks(plan))),
        (
            "hung",
            Some(match selection.timeout_s {
                Some(seconds) => format!("after {seconds} s"),
                None => "after 100 times the baseline's time, 20 s at least".into(),
            }),
        ),
        (
            "checks",
            Some(if flags.check_again {
                "run again, whatever earlier runs have passed".into()
            } else {
                "not run again if an earlier run has passed them".into()
            }),
        ),
        ("results", Some(dir.display().to_string())),
        (
            "machine",
            flags
                .strict
                .then(|| "without warnings, which --strict asks for".into()),
        ),
    ];
    let text: String = lines
        .into_iter()
        .filter_map(|(label, words)| Some(format!("{label:<12}{}\n", words?)))
        .collect();
    let cells = if flags.cells {
        cells(plan)
    } else {
        String::new()
    };
    format!("{text}\n{}{cells}", processes(plan))
}

/// The workloads, each with its thread counts: those whose memory is measured beside the times of others, or all the others.
fn workloads(plan: &Plan, beside: bool) -> String {
    let mut labels: Vec<(&str, String)> = Vec::new();
    for case in plan.cases.iter().filter(|case| case.beside == beside) {
        match labels.iter_mut().find(|(name, _)| *name == case.workload) {
            Some((_, label)) => *label += &format!(",{}", case.threads),
            None => labels.push((&case.workload, case.label())),
        }
    }
    named(labels.into_iter().map(|(_, label)| label).collect())
}

fn allocators(selection: &Selection) -> String {
    let plan = &selection.plan;
    let of = |name: &String| {
        let subject = selection
            .subjects
            .iter()
            .find(|subject| subject.allocator.name == *name);
        match (*name == plan.baseline, subject.and_then(state)) {
            (true, Some(state)) => format!("{name} (baseline, {state})"),
            (true, None) => format!("{name} (baseline)"),
            (false, Some(state)) => format!("{name} ({state})"),
            (false, None) => name.clone(),
        }
    };
    named(plan.allocators.iter().map(of).collect())
}

/// What a user should know about an allocator before it is measured.
fn state(subject: &Subject) -> Option<String> {
    let library = &subject.library;
    match library.files.first() {
        _ if subject.refused.is_some() => Some("refused".into()),
        Some(file) if subject.allocator.tier == Tier::User => Some(file.display().to_string()),
        None if library.origin.is_empty() => Some("not built yet".into()),
        _ => None,
    }
}

fn named(mut names: Vec<String>) -> String {
    let all = names.len();
    names.truncate(MOST_NAMES);
    let shown = names.join(", ");
    match all.saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more (--cells)"),
    }
}

/// The user's command, with all its settings.
fn described(command: &UserCommand) -> String {
    let stdin = &command.stdin;
    let prepare = &command.prepare;
    let warmup = command.warmup;
    let client = command.client.as_ref();
    let words = [
        Some(lines(command)),
        stdin
            .as_ref()
            .map(|file| format!("it reads {}", file.display())),
        command
            .piped
            .as_ref()
            .map(|input| format!("it reads {} from stdin", units::bytes(input.bytes as f64))),
        prepare
            .as_ref()
            .map(|line| format!("before each process: {line}")),
        (warmup > 0).then(|| format!("{warmup} for warming up")),
        command
            .check_output
            .then(|| "what it prints is compared".into()),
        command
            .expect_exit
            .map(|code| format!("it ends with exit code {code}")),
        command
            .tree_may_differ
            .then(|| "it may execute other programs".into()),
        client.map(|client| format!("driven by {} at {}", client.line(), client.ready)),
        (client.and_then(|client| client.drain()))
            .map(|drain| format!("watched for {drain:?} after its load")),
    ];
    joined(words.into_iter().flatten(), "; ")
}

/// The command line; with several builds or settings, the command line of each.
fn lines(command: &UserCommand) -> String {
    let of = |variant: &CommandVariant| format!("{}: {}", variant.name, variant.line());
    match &command.variants[..] {
        [] => command.line(),
        variants => joined(variants.iter().map(of), "; "),
    }
}

fn measures(plan: &Plan) -> String {
    let mut text = plan.mode.measures();
    let values = plan.cases.iter().filter_map(Case::command);
    for (place, value) in values.flat_map(|command| &command.values).enumerate() {
        let use_of = if place == 0 { "judged by" } else { "shown:" };
        text += &format!("; {use_of} {}", value.described());
    }
    let series = plan.cases.iter().filter_map(|case| case.series_ns);
    if let Some(ns) = series.clone().min() {
        let of = if series.count() == plan.cases.len() {
            ""
        } else {
            "of some workloads "
        };
        let every = units::duration(ns as f64);
        text += &format!(", {of}memory over time every {every}");
    }
    if !plan.mode.spec().simulated && plan.cases.iter().any(Case::is_calibrated) {
        text += &format!(
            ", for {} ms in each process where the preset is calibrated",
            plan.target_ms
        );
    }
    text
}

/// The cases that take turns, and how: `churn@1: their CPU time, stopped and continued`.
fn in_turns(plan: &Plan, alone: bool) -> Option<String> {
    if alone {
        return Some("nothing, each process runs alone".into());
    }
    let taking = plan.cases.iter().filter(|case| case.turns.is_some());
    let by = taking.clone().find_map(|case| case.turns)?;
    let names = joined(taking.map(Case::label), ", ");
    let lengths = joined(plan.turn_lengths_ms.iter().map(u32::to_string), ", ");
    Some(format!(
        "{names}: their CPU time, {}, {lengths} ms",
        by.words()
    ))
}

fn blocks(plan: &Plan) -> String {
    let mut text = number_of_blocks(plan);
    if let Some(share) = plan.precision {
        let percent = units::digits(share * 100.0);
        text += &format!(", until each interval is within {percent} %");
        if let Some(far) = plan.far_precision {
            let percent = units::digits(far * 100.0);
            text += &format!(" or, of a ratio far from 1, {percent} %");
        }
    }
    if let Some(seconds) = plan.budget_s {
        text += &format!(", none that would end after {seconds} s");
    }
    let mut timed = plan.cases.iter().filter(|case| !case.beside);
    text + match plan.repeats {
        false => ", nothing is run again",
        true if timed.all(|case| case.turns.is_some()) => ", nothing that takes turns is run again",
        true => ", what other programs disturb is run again",
    }
}

/// The number of blocks: `40`, or `15 to 40`.
pub fn number_of_blocks(plan: &Plan) -> String {
    match (plan.blocks, plan.most_blocks()) {
        (least, most) if most > least => format!("{least} to {most}"),
        (least, _) => least.to_string(),
    }
}

/// How many processes a run starts, and how long they take.
fn processes(plan: &Plan) -> String {
    let (checks, cells, (seconds, unknown)) =
        (plan.checks().len(), plan.cells().len(), plan.estimate());
    let measured = plan.mode.processes();
    let mut text = format!(
        "seed {}: {checks} checked processes first, then {cells} {measured}\n",
        plan.seed
    );
    if seconds > 0.0 {
        let minutes = seconds / 60.0;
        let baseline = &plan.baseline;
        text += &format!(
            "about {minutes:.1} minutes if every allocator were as fast as {baseline}; slow ones take longer\n"
        );
    }
    if unknown > 0 {
        text += &format!(
            "{unknown} processes of a fixed size: how long they take is not known before the first has run\n"
        );
    }
    text
}

/// Every parameter and every process of a plan.
fn cells(plan: &Plan) -> String {
    let mut text = String::from("\n");
    for case in &plan.cases {
        text += &case.label();
        for (name, value) in &case.parameters {
            text += &format!("  {name}={value}");
        }
        text += "\n";
    }
    text += "\n";
    for cell in plan.cells() {
        text += &format!(
            "{}  seed {:016x}  padding {}\n",
            cell.id, cell.seed, cell.padding
        );
    }
    text
}
