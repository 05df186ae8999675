//! The output of `--dry-run`: every flag of a run shows in one of a few lines; parameters and
//! processes show with `--cells`.

use super::comparison::Comparison;
use crate::catalog::Tier;
use crate::execute::Subject;
use crate::observe::machine::usable_cpus;
use crate::plan::{Case, Cell, Counter, Mode, Plan, UserCommand};
use crate::report::units;
use crate::session::Selection;
use std::collections::BTreeMap;
use std::path::Path;

/// A line lists this many names; of more it prints only the number.
const MOST_NAMES: usize = 24;

/// A plan as text. `dir` is where its results would be stored.
pub(super) fn outline(selection: &Selection, flags: &Comparison, dir: &Path) -> String {
    let plan = &selection.plan;
    let mut lines = vec![(
        "suite",
        format!("{}, preset {}", selection.suite, selection.preset),
    )];
    lines.push(("workloads", workloads(&plan.cases)));
    lines.extend(
        plan.cases
            .iter()
            .filter_map(Case::command)
            .map(|command| ("command", described(command))),
    );
    if plan.cases.iter().any(|case| case.oversubscribed) {
        let cpus = usable_cpus();
        lines.push((
            "",
            format!("oversubscribed: more threads than the {cpus} usable CPUs, so the scheduler is measured too"),
        ));
    }
    lines.push(("allocators", allocators(selection)));
    let mut compared = selection
        .subjects
        .iter()
        .filter(|subject| plan.allocators.contains(&subject.allocator.name));
    if compared.all(|subject| subject.allocator.wrapper) {
        lines.push((
            "",
            "libraries that hand calls on to libc are measured, too".into(),
        ));
    }
    let copy = plan
        .aa_copy
        .as_ref()
        .map(|_| format!("a copy of {}", plan.baseline));
    let beside: Vec<String> = copy.into_iter().chain(plan.floor.clone()).collect();
    lines.push((
        "beside",
        if beside.is_empty() {
            "nothing".into()
        } else {
            beside.join(", ")
        },
    ));
    lines.push(("measures", measures(plan)));
    lines.push(("blocks", blocks(plan)));
    let hung = match selection.timeout_s {
        Some(seconds) => format!("after {seconds} s"),
        None => "after 100 times the baseline's time, 20 s at least".into(),
    };
    lines.push(("hung", hung));
    let checks = match flags.check_again {
        true => "run again, whatever earlier runs have passed",
        false => "not run again if an earlier run has passed them",
    };
    lines.push(("checks", checks.into()));
    lines.push(("results", dir.display().to_string()));
    if flags.strict {
        lines.push((
            "machine",
            "without warnings, which --strict asks for".into(),
        ));
    }
    let text: String = lines
        .iter()
        .map(|(label, words)| format!("{label:<12}{words}\n"))
        .collect();
    format!(
        "{text}\n{}{}",
        processes(plan),
        if flags.cells {
            cells(plan)
        } else {
            String::new()
        }
    )
}

/// Workloads, each with its thread counts.
fn workloads(cases: &[Case]) -> String {
    let mut threads: Vec<(&str, Vec<String>)> = Vec::new();
    for case in cases {
        match threads.iter_mut().find(|(name, _)| *name == case.workload) {
            Some((_, counts)) => counts.push(case.threads.to_string()),
            None => threads.push((&case.workload, vec![case.threads.to_string()])),
        }
    }
    named(
        threads
            .iter()
            .map(|(name, counts)| format!("{name}@{}", counts.join(",")))
            .collect(),
    )
}

fn allocators(selection: &Selection) -> String {
    let plan = &selection.plan;
    let of = |name: &String| {
        let subject = selection
            .subjects
            .iter()
            .find(|subject| subject.allocator.name == *name);
        let mut words: Vec<String> = subject.and_then(state).into_iter().collect();
        if *name == plan.baseline {
            words.insert(0, "baseline".into());
        }
        if words.is_empty() {
            name.clone()
        } else {
            format!("{name} ({})", words.join(", "))
        }
    };
    named(plan.allocators.iter().map(of).collect())
}

/// What is special about an allocator.
fn state(subject: &Subject) -> Option<String> {
    let Subject {
        allocator,
        library,
        refused,
    } = subject;
    match (refused, allocator.tier, library.files.first()) {
        (Some(_), ..) => Some("refused".into()),
        (None, Tier::User, Some(file)) => Some(file.display().to_string()),
        (None, _, None) if library.origin.is_empty() => Some("not built yet".into()),
        _ => None,
    }
}

fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    format!(
        "{}{}",
        names.join(", "),
        if more > 0 {
            format!(" and {more} more (--cells)")
        } else {
            String::new()
        }
    )
}

/// The user's command, with all its settings.
fn described(command: &UserCommand) -> String {
    let UserCommand {
        stdin,
        prepare,
        warmup,
        check_output,
        expect_exit,
        tree_may_differ,
        client,
        ..
    } = command;
    let words = [
        Some(command.line()),
        stdin
            .as_ref()
            .map(|file| format!("it reads {}", file.display())),
        prepare
            .as_ref()
            .map(|line| format!("before each process: {line}")),
        (*warmup > 0).then(|| format!("{warmup} for warming up")),
        check_output.then(|| "what it prints is compared".into()),
        expect_exit.map(|code| format!("it ends with exit code {code}")),
        tree_may_differ.then(|| "it may execute other programs".into()),
        client
            .as_ref()
            .map(|client| format!("driven by {} at port {}", client.line(), client.port)),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn measures(plan: &Plan) -> String {
    let what = match plan.mode {
        Mode::Time => "time and memory".into(),
        Mode::Latency { every } => format!("single calls, 1 of {every}"),
        Mode::Count(counter) => format!("events, counted by {}", counter.word()),
        Mode::Memory => "memory for what is live".into(),
    };
    let series: Vec<u64> = plan
        .cases
        .iter()
        .filter_map(|case| case.series_ns)
        .collect();
    let every = |ns: &u64| units::duration(*ns as f64);
    let series = match (series.iter().min(), series.len() == plan.cases.len()) {
        (Some(ns), true) => format!(", memory over time every {}", every(ns)),
        (Some(ns), false) => format!(", of some workloads memory over time every {}", every(ns)),
        (None, _) => String::new(),
    };
    let target = match plan.cases.iter().any(Case::is_calibrated)
        && plan.mode != Mode::Count(Counter::Callgrind)
    {
        true => format!(
            ", for {} ms in each process where the preset is calibrated",
            plan.target_ms
        ),
        false => String::new(),
    };
    format!("{what}{series}{target}")
}

fn blocks(plan: &Plan) -> String {
    let (least, most) = (plan.blocks, plan.most_blocks());
    let mut words = vec![if most > least {
        format!("{least} to {most}")
    } else {
        least.to_string()
    }];
    words.extend(plan.precision.map(|share| {
        format!(
            "until each interval is within {} %",
            units::digits(share * 100.0)
        )
    }));
    words.extend(
        plan.budget_s
            .map(|seconds| format!("none begins after {seconds} s")),
    );
    words.push(
        if plan.repeats {
            "what other programs disturb is run again"
        } else {
            "nothing is run again"
        }
        .into(),
    );
    words.join(", ")
}

/// How many processes, and how long they take.
fn processes(plan: &Plan) -> String {
    let (checks, cells, (seconds, unknown)) =
        (plan.checks().len(), plan.cells().len(), plan.estimate());
    let measured = match plan.mode {
        Mode::Time => "measured ones".to_string(),
        Mode::Latency { every } => format!("that time 1 of {every} calls"),
        Mode::Count(_) => "in which events are counted".to_string(),
        Mode::Memory => "whose memory is followed".to_string(),
    };
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

/// Every parameter, and every process.
fn cells(plan: &Plan) -> String {
    let values = |parameters: &BTreeMap<String, String>| -> String {
        parameters
            .iter()
            .map(|(name, value)| format!("  {name}={value}"))
            .collect()
    };
    let case = |case: &Case| format!("{}{}\n", case.label(), values(&case.parameters));
    let cell = |cell: &Cell| {
        format!(
            "{}  seed {:016x}  padding {}\n",
            cell.id, cell.seed, cell.padding
        )
    };
    let (cases, cells): (String, String) = (
        plan.cases.iter().map(case).collect(),
        plan.cells().iter().map(cell).collect(),
    );
    format!("\n{cases}\n{cells}")
}
