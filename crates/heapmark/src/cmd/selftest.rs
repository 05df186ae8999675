//! `heapmark selftest`: plants slowdowns and memory growth of known size into an allocator. Reports
//! which ones are found, and whether nothing is found if nothing was planted.

use super::run::nested_run;
use super::{Exit, print};
use crate::analyse::{Analysis, Numbers, Ratio, Verdict, analyse};
use crate::build;
use crate::catalog::Catalog;
use crate::execute::Subject;
use crate::observe::machine;
use crate::plan::{Plan, cases};
use crate::session::Selection;
use anyhow::{Context, Result, anyhow, bail};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Plant effects of known size into an allocator and see which ones are found: the resolution of
/// this machine
#[derive(clap::Args)]
pub struct SelftestArgs {
    /// Number of blocks
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: u32,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Run directory to create [default: heapmark-results/DATE-N]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// A planted effect: on time or memory, its size, and whether 15 blocks must find it.
struct Effect {
    name: &'static str,
    ns: u32,
    percent: u32,
    must: Must,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Must {
    BeFound,
    NotBeFound,
    /// Found or not: that shows the resolution.
    Show,
}

const BASELINE: &str = "plain";
const fn effect(name: &'static str, ns: u32, percent: u32, must: Must) -> Effect {
    Effect {
        name,
        ns,
        percent,
        must,
    }
}
const EFFECTS: [Effect; 6] = [
    effect("plain-again", 0, 0, Must::NotBeFound),
    effect("plus-1-ns", 1, 0, Must::Show),
    effect("plus-2-ns", 2, 0, Must::Show),
    effect("plus-5-ns", 5, 0, Must::BeFound),
    effect("plus-1-percent", 0, 1, Must::Show),
    effect("plus-5-percent", 0, 5, Must::BeFound),
];
/// A workload that spends most of its time in calls of the allocator, and one with dense memory.
const TIME: &str = "churn-private";
const MEMORY: &str = "same-thread";

/// Runs the command.
pub fn run(args: SelftestArgs) -> Result<Exit> {
    let catalog = Catalog::load()?;
    let (plant, _) = build::program::build(catalog.program("planted-effects")?)
        .context("nothing can be planted")?;
    let library = plant.folder.join("plant.so");
    let subjects: Vec<Subject> = std::iter::once(subject(&library, BASELINE, 0, 0))
        .chain(
            EFFECTS
                .iter()
                .map(|effect| subject(&library, effect.name, effect.ns, effect.percent)),
        )
        .collect::<Result<_>>()?;
    let workloads = [catalog.workloads(TIME)?, catalog.workloads(MEMORY)?].concat();
    let plan = Plan {
        seed: args.seed,
        blocks: args.blocks,
        baseline: BASELINE.into(),
        target_ms: 60,
        cases: cases(&workloads, "quick", &[1], machine::usable_cpus(), &[])?,
        allocators: subjects
            .iter()
            .map(|subject| subject.allocator.name.clone())
            .collect(),
        repeats: true,
        ..Plan::default()
    };
    let (stored, whole) =
        nested_run::run(Selection::of_parts("selftest", plan, subjects), args.output)?;
    if !whole {
        return Ok(Exit::Interrupted);
    }
    let (text, good) = told(&analyse(&stored.head, &stored.records))?;
    print(&text)?;
    Ok(if good { Exit::Done } else { Exit::Failed })
}

fn subject(library: &Path, name: &str, ns: u32, percent: u32) -> Result<Subject> {
    let word = format!("{name}={}", library.display());
    let mut allocator = build::user(&word)?.ok_or_else(|| anyhow!("{word} is no library"))?;
    // The planted effects wrap libc's functions.
    allocator.wrapper = true;
    allocator
        .environment
        .insert("PLANT_NS".into(), ns.to_string());
    allocator
        .environment
        .insert("PLANT_PERCENT".into(), percent.to_string());
    let build::State::Ready(library) = build::state(&allocator, &[]) else {
        bail!("{name}: cannot be preloaded")
    };
    Ok(Subject {
        allocator,
        library,
        refused: None,
    })
}

/// What was found, as text, and whether the result is as it must be.
fn told(analysis: &Analysis) -> Result<(String, bool)> {
    let mut text = format!(
        "Planted into glibc's malloc, {} blocks:\n\n",
        analysis.planned_blocks
    );
    let (mut good, mut finest) = (true, (None, None));
    for effect in &EFFECTS {
        let memory = effect.percent > 0;
        let numbers = numbers(analysis, if memory { MEMORY } else { TIME }, effect.name)?;
        let of_time = (numbers.ratio.as_ref(), numbers.verdict);
        let of_memory = (numbers.memory_ratio.as_ref(), numbers.memory_verdict);
        let (ratio, call) = if memory { of_memory } else { of_time };
        let mut found = is_found(call);
        if effect.must == Must::NotBeFound {
            let dense = self::numbers(analysis, MEMORY, effect.name)?;
            found |= is_found(dense.verdict) || is_found(dense.memory_verdict);
        }
        let wrong = match effect.must {
            Must::BeFound => !found,
            Must::NotBeFound => found,
            Must::Show => false,
        };
        good &= !wrong;
        let finest = if memory { &mut finest.1 } else { &mut finest.0 };
        if found && effect.must != Must::NotBeFound && finest.is_none() {
            *finest = Some(if memory {
                format!("{} % of memory", effect.percent)
            } else {
                format!("{} ns", effect.ns)
            });
        }
        let what = if memory {
            format!("+{} % memory", effect.percent)
        } else {
            format!("+{} ns per call", effect.ns)
        };
        let verdict = if found { "found" } else { "not found" };
        let mark = if wrong { "  WRONG" } else { "" };
        writeln!(
            text,
            "  {what:<16} {:<24} {verdict}{mark}",
            ratio.map_or("-".into(), words)
        )?;
    }
    let finest = [finest.0, finest.1].map(|one| one.unwrap_or_else(|| "none".into()));
    writeln!(
        text,
        "\nSmallest effects found here: {}; {}.",
        finest[0], finest[1]
    )?;
    text.push_str(match good {
        true => "What was not planted was not found.\n",
        false => {
            "WRONG: what must be found was not, or what must not be found was. Do not trust small differences here.\n"
        }
    });
    Ok((text, good))
}

fn numbers<'a>(analysis: &'a Analysis, workload: &str, allocator: &str) -> Result<&'a Numbers> {
    let cases = analysis
        .cases
        .iter()
        .filter(|case| case.workload == workload);
    let mut rows = cases
        .flat_map(|case| &case.rows)
        .filter(|row| row.allocator == allocator);
    rows.next()
        .and_then(|row| row.numbers())
        .with_context(|| format!("{allocator} has no numbers on {workload}"))
}

fn is_found(verdict: Option<Verdict>) -> bool {
    matches!(
        verdict,
        Some(Verdict::Slower | Verdict::Faster | Verdict::Small)
    )
}

fn words(ratio: &Ratio) -> String {
    let interval = ratio
        .interval
        .map(|(low, high)| format!(" [{low:.4}, {high:.4}]"));
    format!("{:.4}{}", ratio.ratio, interval.unwrap_or_default())
}
