//! `heapmark campaign pool`.

use crate::analyse::compare::{Side, refusal};
use crate::analyse::pool::{PooledRun, pool, unlike};
use crate::cmd::compare::{is_same, judged, read};
use crate::cmd::output::{Destination, TableFormat};
use crate::cmd::{Exit, find_runs, note, screen, usage};
use crate::metric::{Metric, Value};
use crate::report;
use crate::store::campaign::{Campaign, ShardState};
use crate::store::{self, Run};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Pool runs of the same work on several machines: the ratio to expect on the next one
///
/// Runs of anybody: send the directory that `heapmark run` made. It contains no host name.
#[derive(clap::Args)]
pub struct PoolArgs {
    /// Runs, at least one of each machine, or campaigns; the first run says what the others repeat
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<String>,
    /// What is pooled: wall, cpu, memory
    #[arg(long, value_name = "METRIC", default_value = "wall", value_parser = judged)]
    by: &'static Metric,
    /// Write this format instead of a table for the terminal
    #[arg(long, value_name = "FORMAT")]
    to: Option<TableFormat>,
    #[command(flatten)]
    destination: Destination,
}

/// Runs the command.
pub fn run(args: PoolArgs) -> Result<Exit> {
    let mut dirs = Vec::new();
    for word in &args.runs {
        match Campaign::is_at(word.as_ref()) {
            true => dirs.extend(complete(&Campaign::open(word.as_ref()).map_err(usage)?)),
            false => dirs.extend(find_runs(std::slice::from_ref(word))?),
        }
    }
    let [_, _, ..] = &dirs[..] else {
        refuse!("nothing to pool: give two runs or more, or a campaign with two complete shards");
    };
    let output = args.destination.made_of_runs(&dirs)?;
    let Value::Process(value) = args.by.of else {
        refuse!(
            "--by {}: only what each process has is pooled: wall, cpu, memory",
            args.by.key
        );
    };
    for (place, dir) in dirs.iter().enumerate() {
        if let Some(twin) = dirs[..place].iter().find(|twin| has_samples_of(twin, dir)) {
            refuse!(
                "{} and {} hold the same samples: name each run once",
                twin.display(),
                dir.display()
            );
        }
    }
    let runs: Vec<Run> = dirs.iter().map(|dir| read(dir)).collect::<Result<_>>()?;
    for (run, dir) in runs.iter().zip(&dirs).skip(1) {
        if let Some(it) = unlike(&runs[0].head, &run.head) {
            refuse!(
                "{} is no repetition of {}: {} is {} there and {} here",
                dir.display(),
                dirs[0].display(),
                it.what,
                it.new,
                it.old
            );
        }
    }
    let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    let pooled: Vec<PooledRun> = runs
        .iter()
        .zip(&names)
        .map(|(run, name)| PooledRun {
            name,
            side: Side {
                head: &run.head,
                records: &run.records,
            },
        })
        .collect();
    if let Some(why) = pooled.iter().find_map(|run| refusal(&run.side, args.by)) {
        refuse!("--by: {why}");
    }
    let pool = pool(&pooled, value);
    let baseline = &runs[0].head.plan.baseline;
    let text = match args.to {
        Some(TableFormat::Md) => report::pool_markdown(&pool, args.by, baseline),
        Some(TableFormat::Json) => report::pool_json(&pool, args.by, baseline),
        None => report::pool(&pool, args.by, baseline, screen()),
    };
    output.put(&text)?;
    Ok(Exit::Done)
}

/// The runs of a campaign that count.
fn complete(campaign: &Campaign) -> Vec<PathBuf> {
    let states = campaign.states();
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

fn has_samples_of(one: &Path, other: &Path) -> bool {
    is_same(&store::samples_of(one), &store::samples_of(other))
}
