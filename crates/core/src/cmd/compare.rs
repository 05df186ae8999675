//! `heapmark compare`: each row against the baseline of its run, or against the same row of an
//! earlier run.

use super::output::{Destination, TableFormat, written};
use super::run::comparison::percent;
use super::{Exit, catalog, find_runs, say, say_damage, usage};
use crate::analyse::compare::{Comparison, Side, between, have_other_turns, refusal, within};
use crate::analyse::{Verdict, analyse, distinct};
use crate::build::hash_of_file;
use crate::catalog::joined;
use crate::execute::user_command::VALUE_COST;
use crate::file::{WithPath, length};
use crate::metric::{self, Metric};
use crate::plan::{Plan, row_name};
use crate::report;
use crate::report::benchres;
use crate::store::{self, Paths, Run};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Compare rows within a run, or two runs, and fail if one got slower
#[derive(clap::Args)]
pub struct CompareArgs {
    /// One run: its allocators against its baseline. Two runs, the older first: each row against
    /// the same row of the older run. A run and mimalloc-bench's benchres.csv: its medians beside ours
    #[arg(value_name = "RUN", default_value = "latest", num_args = 1..=2)]
    runs: Vec<String>,
    /// Exit with code 3 if a row has one of these verdicts, or has no numbers; `withheld`, `too few
    /// blocks` and what only one of two runs has count as `unclear`
    #[arg(long, value_name = "WORD,...", value_delimiter = ',')]
    fail_on: Vec<FailOn>,
    /// Differences up to this are too small to matter
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1%")]
    threshold: f64,
    /// What decides: wall, cpu (steadier on a busy machine), memory, or, of a run that counted or
    /// sampled memory, what it measured: instructions, mean_overhead, ...
    #[arg(long, value_name = "METRIC", default_value = "wall", value_parser = judged)]
    by: &'static Metric,
    /// Write this format instead of a table for the terminal
    #[arg(long, visible_alias = "format", value_name = "FORMAT")]
    to: Option<TableFormat>,
    #[command(flatten)]
    destination: Destination,
}

/// A metric that rows are judged by.
pub fn judged(name: &str) -> Result<&'static Metric, String> {
    let found = metric::judged().find(|metric| metric.is_named(name));
    found.ok_or_else(|| {
        let words = metric::judged().map(|metric| metric.alias.unwrap_or(metric.key));
        format!("expected one of {}", joined(words, ", "))
    })
}

/// A verdict that fails a job.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum FailOn {
    /// Slower by more than the threshold; of what is no time: more of it
    Slower,
    /// The data cannot tell
    Unclear,
}

/// Runs `heapmark compare`.
pub fn run(args: CompareArgs) -> Result<Exit> {
    if args.runs.iter().any(|word| is_benchres(word)) {
        return beside_mimalloc_bench(&args);
    }
    let dirs = find_runs(&args.runs)?;
    let output = args.destination.made_of(&dirs, &[])?;
    if let Some([old, new]) = twins(&dirs) {
        let old = old.display();
        let new = new.display();
        refuse!("{old} and {new} hold the same samples: a run says nothing beside itself");
    }
    // A command to type may quote paths of the run, so they are read as stored.
    let read = |dir: &PathBuf| read(dir, Paths::Stored);
    let runs: Vec<Run> = dirs.iter().map(read).collect::<Result<_>>()?;
    let plans: Vec<&Plan> = runs.iter().map(|run| &run.head.plan).collect();
    if let Some(what) = differ_in(&plans) {
        refuse!("these runs {what}");
    }
    let sides: Vec<Side> = runs
        .iter()
        .map(|run| Side {
            head: &run.head,
            records: &run.records,
        })
        .collect();
    if let Some(why) = sides.iter().find_map(|side| refusal(side, args.by)) {
        refuse!("--by: {why}");
    }
    let by = args.by;
    let threshold = args.threshold;
    let (old, new, comparison) = match &sides[..] {
        [old, new] => (Some(old.head), new.head, between(old, new, by, threshold)),
        sides => (None, sides[0].head, within(&sides[0], by, threshold)),
    };
    if let [a, b] = &runs[..]
        && !workloads(a).iter().any(|name| workloads(b).contains(name))
    {
        let [a, b] = [a, b].map(|run| joined(workloads(run), ", "));
        let [first, second] = [&dirs[0], &dirs[1]].map(|dir| dir.display());
        refuse!("{first} and {second} have no workload in common: {a}; {b}");
    }
    let failing = failing(&comparison, &args.fail_on, by);
    let is_judged = comparison.rows.iter().any(|row| row.verdict.is_some());
    let is_silent = comparison.rows.is_empty() || !is_judged && !args.fail_on.is_empty();
    if is_silent && failing.is_empty() {
        let why = comparison
            .left_out
            .first()
            .map_or("the run has only the baseline".into(), |left| {
                format!("{}: {}", left.row, left.why)
            });
        bail!("nothing can be compared: {why}");
    }
    let subject = report::ComparisonSubject {
        new,
        old,
        by,
        threshold,
    };
    let text = match args.to {
        Some(TableFormat::Json) => report::comparison_json(subject, &comparison),
        format => written(format, &report::comparison(subject, &comparison)),
    };
    output.put(&text)?;
    failing.iter().for_each(say);
    Ok(Exit::Condition.when(!failing.is_empty()))
}

/// Whether a word names a file of mimalloc-bench, not a run.
fn is_benchres(word: &str) -> bool {
    Path::new(word)
        .extension()
        .is_some_and(|extension| extension == "csv")
}

/// Compares a run with the results of mimalloc-bench.
fn beside_mimalloc_bench(args: &CompareArgs) -> Result<Exit> {
    if !args.fail_on.is_empty() || args.by.key != metric::WALL.key {
        refuse!(
            "--fail-on and --by: mimalloc-bench's runs have no intervals, and only times are set beside them"
        );
    }
    let (files, runs): (Vec<_>, Vec<_>) = args.runs.iter().partition(|word| is_benchres(word));
    let [file] = files[..] else {
        refuse!(
            "{}: one file of mimalloc-bench at a time",
            joined(files, " ")
        );
    };
    let runs: Vec<String> = match runs[..] {
        [] => vec!["latest".into()],
        _ => runs.into_iter().cloned().collect(),
    };
    let dirs = find_runs(&runs)?;
    let output = args.destination.made_of(&dirs, &[PathBuf::from(file)])?;
    let text = std::fs::read_to_string(file).with_path("cannot read", Path::new(file))?;
    let theirs = benchres::read(&text)
        .with_context(|| file.clone())
        .map_err(usage)?;
    let run = read(&dirs[0], Paths::Stored)?;
    let catalog = catalog()?;
    let is_called = |word: &str, name: &str| match benchres::meant_by(word) {
        Some(meant) => meant.contains(&name),
        None => {
            let meant = catalog.meant(word).unwrap_or_default();
            word == name || meant.iter().any(|one| one.name == name)
        }
    };
    let analysis = analyse(&run.head, &run.records);
    let beside = benchres::beside(&theirs, &analysis, is_called, args.threshold)?;
    output.put(&match args.to {
        Some(TableFormat::Json) => report::text::json(&beside),
        format => written(format, &benchres::blocks(&beside)),
    })?;
    Ok(Exit::Done)
}

/// The workloads of a run, each once.
fn workloads(run: &Run) -> Vec<&str> {
    let cases = run.head.plan.cases.iter();
    distinct(cases.map(|case| case.workload.as_str()))
}

/// Returns why runs by these plans cannot be compared, if that is so: what they did differently, in words.
fn differ_in(plans: &[&Plan]) -> Option<&'static str> {
    if differ(plans, |plan| plan.huge_pages) {
        Some("had different rules for transparent huge pages (--thp): run both under one of them")
    } else if differ(plans, Plan::age) {
        Some("had heaps of different ages (--age): run both with one of them")
    } else if differ(plans, |plan| plan.mode.limit()) {
        Some("limited different things (--limit): run both under one kind of limit")
    } else if plans.windows(2).any(|two| have_other_turns(two[0], two[1])) {
        Some("gave turns of different lengths (--turns): run both with the same ones")
    } else {
        None
    }
}

/// Whether `of` gives different values for the plans.
fn differ<T: PartialEq>(plans: &[&Plan], of: impl Fn(&Plan) -> T) -> bool {
    let mut of_each = plans.iter().copied().map(of);
    let first = of_each.next();
    of_each.any(|other| Some(other) != first)
}

/// Finds two runs with the same samples.
pub fn twins(dirs: &[PathBuf]) -> Option<[&Path; 2]> {
    let mut by_length: BTreeMap<u64, Vec<&Path>> = BTreeMap::new();
    for dir in dirs {
        let bytes = length(store::samples_of(dir));
        by_length.entry(bytes).or_default().push(dir);
    }
    by_length.remove(&0);
    by_length.values().filter(|of| of.len() > 1).find_map(|of| {
        let mut by_hash = BTreeMap::new();
        of.iter().find_map(|dir| {
            let hash = hash_of_file(&store::samples_of(dir)).ok()?;
            Some([by_hash.insert(hash, *dir)?, *dir])
        })
    })
}

pub fn read(dir: &Path, paths: Paths) -> Result<Run> {
    let run = store::read_for_tables(dir, paths, |name| name == VALUE_COST)?;
    say_damage(dir, &run);
    Ok(run)
}

/// A line for each row that fails the job.
fn failing(comparison: &Comparison, on: &[FailOn], by: &Metric) -> Vec<String> {
    let on_unclear = on.contains(&FailOn::Unclear);
    let fails = |verdict: &Verdict| match verdict {
        Verdict::Slower => on.contains(&FailOn::Slower),
        Verdict::Unclear { .. } | Verdict::TooFew { .. } | Verdict::AaCopyDiffers => on_unclear,
        Verdict::Faster | Verdict::Same | Verdict::Small => false,
    };
    let judged = comparison.rows.iter().filter_map(|row| {
        let what = match row.verdict.filter(fails)?.word_of(by) {
            "more" => format!("takes more {}", by.noun),
            word => format!("is {word}"),
        };
        let name = row_name(&row.workload, row.threads, &row.allocator);
        Some(format!("--fail-on: {name} {what}"))
    });
    // Whoever wants to know what got slower must hear of what failed.
    let left_out = comparison
        .left_out
        .iter()
        .filter(|left| left.has_no_numbers() && !on.is_empty() || on_unclear && !left.is_fixed());
    let left_out = left_out.map(|left| format!("--fail-on: {}: {}", left.row, left.why));
    judged.chain(left_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::fake_run::case;
    use crate::plan::{Case, Turns};

    #[test]
    fn runs_with_turns_of_different_lengths_are_not_compared() {
        let plan = |turns, turn_lengths_ms: &[u32]| Plan {
            cases: vec![Case {
                turns,
                ..case("larson")
            }],
            turn_lengths_ms: turn_lengths_ms.to_vec(),
            ..Plan::default()
        };
        let usual = plan(Some(Turns::Stop), &[10, 40]);
        assert_eq!(differ_in(&[&usual, &usual]), None);
        let others = plan(Some(Turns::Stop), &[80]);
        assert!(differ_in(&[&usual, &others]).is_some_and(|why| why.contains("--turns")));
        // Without turns, lengths mean nothing.
        assert_eq!(differ_in(&[&plan(None, &[10, 40]), &plan(None, &[])]), None);
    }
}
