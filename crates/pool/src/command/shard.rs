//! `heapmark campaign run`: one shard, on this machine.

use super::Started;
use super::plan::parsed;
use crate::campaign::Campaign;
use anyhow::{Context, Result};
use heapmark_core::analyse::reads_figure;
use heapmark_core::cmd::run::comparison::PartOf;
use heapmark_core::cmd::{Exit, page, run as run_command, usage};
use heapmark_core::file::{Draft, Existing};
use heapmark_core::store::{self, Paths};

/// Run one shard of a campaign on this machine: what a scheduler starts
#[derive(clap::Args)]
pub struct ShardArgs {
    #[command(flatten)]
    started: Started,
    /// Number of the shard, from 0
    #[arg(long, value_name = "K")]
    shard: u32,
}

/// Runs the command.
pub fn run(args: ShardArgs) -> Result<Exit> {
    attempt(&args.started.open()?, args.shard)
}

/// Makes an attempt at a shard. Its run lies on this machine's own disk until it is whole.
pub fn attempt(campaign: &Campaign, shard: u32) -> Result<Exit> {
    let plan = &campaign.plan;
    if !plan.shards().contains(&shard) {
        refuse!(
            "--shard {shard}: the campaign has shards 0 to {}",
            plan.shards().end - 1
        );
    }
    let version = env!("CARGO_PKG_VERSION");
    if plan.heapmark != version {
        refuse!(
            "the campaign was planned by heapmark {}, and this is {version}: runs of two versions are not pooled",
            plan.heapmark
        );
    }
    let mut line = parsed(&plan.run).map_err(usage)?;
    let here = Draft::folder(&std::env::temp_dir())
        .context("cannot write to the folder for temporary files")?;
    let run = here.path().join("run");
    line.args.comparison.output = Some(run.clone());
    line.args.comparison.seed = Some(plan.seed_of(shard));
    line.args.comparison.part_of = PartOf::Campaign;
    let attempt = campaign.begin(shard)?;
    let exit = run_command::run(line)?;
    match exit {
        Exit::Done | Exit::NotAllOk => match attempt.keep(&run) {
            Ok(place) => {
                // Its page names the directory that readers are to type.
                let kept = store::read_for_tables(&place, Paths::Published, reads_figure)?;
                page::beside(&place, &kept)?;
                say!("shard {shard}: {}", place.display());
            }
            Err(error) => {
                let number = std::process::id();
                let stays = std::env::temp_dir().join(format!("heapmark-shard-{shard}-{number}"));
                here.keep(&stays, Existing::Stays)?;
                let place = stays.join("run");
                return Err(error.context(format!(
                    "shard {shard} is whole and stays in {}, since it could not be put into the campaign",
                    place.display()
                )));
            }
        },
        // Another machine cannot go on with the shard.
        _ => say!("shard {shard}: not whole, so nothing of it is kept; run it again"),
    }
    Ok(exit)
}
