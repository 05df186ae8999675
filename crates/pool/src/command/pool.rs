//! `heapmark campaign pool`.

use super::states;
use crate::campaign::{Campaign, PLAN, ShardState};
use crate::judge::Pooling;
use crate::report::{self, page::pooled as pool_page};
use anyhow::Result;
use heapmark_core::analyse::compare::{Side, refusal};
use heapmark_core::catalog::joined;
use heapmark_core::cmd::compare::{judged, read, twins};
use heapmark_core::cmd::output::Destination;
use heapmark_core::cmd::{Exit, find_runs, note, screen, usage};
use heapmark_core::metric::Metric;
use heapmark_core::report::render;
use heapmark_core::store::{Paths, published};
use std::path::PathBuf;

/// Pool runs of the same work on several machines: the ratio to expect on the next one
///
/// Runs may be anybody's: send the directory that `heapmark run` made. It contains no host name.
#[derive(clap::Args)]
pub struct PoolArgs {
    /// Runs, at least one of each machine, or campaigns; the first run says what the others repeat
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// What is pooled: wall, cpu, memory
    #[arg(long, value_name = "METRIC", default_value = "wall", value_parser = judged)]
    by: &'static Metric,
    /// Types of machines, each by the runs or campaigns of its machines, named as before [default:
    /// machines with the same processor and release of the C library, and as many CPUs and as much memory]
    #[arg(long, value_name = "LABEL=RUN", value_delimiter = ',', value_parser = labelled)]
    types: Vec<(String, String)>,
    /// Write this format instead of a table for the terminal
    #[arg(long, visible_alias = "format", value_name = "FORMAT")]
    to: Option<PoolFormat>,
    #[command(flatten)]
    destination: Destination,
}

/// Formats other than the table for the terminal.
#[derive(Clone, Copy, clap::ValueEnum)]
enum PoolFormat {
    /// Markdown
    Md,
    /// Everything, with all numbers
    Json,
    /// An HTML page with charts
    Page,
}

fn labelled(word: &str) -> Result<(String, String), String> {
    match word.split_once('=') {
        Some((label, run)) if !label.is_empty() => Ok((label.into(), run.into())),
        _ => Err("expected LABEL=RUN".into()),
    }
}

/// Runs the command.
pub fn run(args: PoolArgs) -> Result<Exit> {
    if let Some((label, run)) = args.types.iter().find(|(_, run)| !args.runs.contains(run)) {
        refuse!("--types {label}={run}: no run or campaign to pool is called {run}");
    }
    let (mut dirs, mut plans) = (Vec::new(), Vec::new());
    let mut labels = Vec::new();
    for word in &args.runs {
        let runs = match Campaign::is_at(word.as_ref()) {
            true => {
                plans.push(PathBuf::from(word).join(PLAN));
                complete(&Campaign::open(word.as_ref()).map_err(usage)?)
            }
            false => find_runs(std::slice::from_ref(word))?,
        };
        let label = args.types.iter().find(|(_, run)| run == word);
        labels.resize(labels.len() + runs.len(), label.map(|(label, _)| &**label));
        dirs.extend(runs);
    }
    let [_, _, ..] = &dirs[..] else {
        refuse!("nothing to pool: give two runs or more, or a campaign with two complete shards");
    };
    let output = args.destination.made_of(&dirs, &plans)?;
    let Some(mut pooling) = Pooling::new(args.by) else {
        refuse!(
            "--by {}: only what each process has is pooled: wall, cpu, memory",
            args.by.key
        );
    };
    if let Some([one, other]) = twins(&dirs) {
        refuse!(
            "{} and {} hold the same samples: name each run once",
            one.display(),
            other.display()
        );
    }
    for (dir, label) in dirs.iter().zip(labels) {
        let run = read(dir, Paths::Published)?;
        let side = Side {
            head: &run.head,
            records: &run.records,
        };
        if let Some(why) = refusal(&side, args.by) {
            refuse!("--by: {why}");
        }
        pooling.add(&published(&dir.display().to_string()), label, &side);
    }
    let (pool, first) = pooling.end();
    let Some(first) = first.filter(|_| dirs.len() - pool.refused.len() > 1) else {
        let why = pool
            .refused
            .iter()
            .map(|refused| format!("{}: {}", refused.run, refused.why));
        refuse!(
            "nothing to pool: fewer than two runs count: {}",
            joined(why, "; ")
        );
    };
    let baseline = &first.plan.baseline;
    let text = match args.to {
        Some(PoolFormat::Md) => render::markdown(&report::pool(&pool, args.by, baseline)),
        Some(PoolFormat::Json) => report::pool_json(&pool, args.by, baseline),
        Some(PoolFormat::Page) => pool_page(&pool, args.by, &first),
        None => render::terminal(&report::pool(&pool, args.by, baseline), screen()),
    };
    output.put(&text)?;
    Ok(Exit::Done)
}

/// The runs of a campaign that count.
fn complete(campaign: &Campaign) -> Vec<PathBuf> {
    let states = states(campaign);
    let of_state = |state: &ShardState| match state {
        ShardState::Complete { run, .. } => Some(run.clone()),
        _ => None,
    };
    let runs: Vec<PathBuf> = states.iter().filter_map(of_state).collect();
    if runs.len() < states.len() {
        let (all, dir) = (states.len(), campaign.dir().display());
        note(format!(
            "{} of {all} shards are complete: heapmark campaign status {dir}",
            runs.len()
        ));
    }
    runs
}
