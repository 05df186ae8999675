//! `heapmark campaign status`.

use super::states;
use crate::campaign::{Campaign, ShardState};
use anyhow::Result;
use heapmark_core::cmd::output::AnswerFormat;
use heapmark_core::cmd::{Exit, print, print_json, usage};
use std::path::PathBuf;

/// Show where each shard of a campaign is: by its own signs of life, not by a scheduler's word
#[derive(clap::Args)]
pub struct StatusArgs {
    /// Directory of the campaign
    #[arg(value_name = "CAMPAIGN")]
    campaign: PathBuf,
    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AnswerFormat,
}

/// Runs the command; exit code 4 unless all shards are complete.
pub fn run(args: StatusArgs) -> Result<Exit> {
    let campaign = Campaign::open(&args.campaign).map_err(usage)?;
    let states = states(&campaign);
    if args.format == AnswerFormat::Json {
        print_json(&states)?;
    } else {
        let lines = states.iter().enumerate().map(|(shard, state)| {
            let words = match state {
                ShardState::Waiting => "waiting".into(),
                ShardState::Running { host } => format!("running on {host}"),
                ShardState::Lost { host } => format!("lost on {host}: run it again"),
                ShardState::Complete { run, others } => {
                    let more = match others.len() {
                        0 => String::new(),
                        count => format!(" (and {count} later, which do not count)"),
                    };
                    format!("complete: {}{more}", run.display())
                }
            };
            format!("shard {shard}: {words}\n")
        });
        print(lines.collect::<String>())?;
    }
    let is_complete = |state: &ShardState| matches!(state, ShardState::Complete { .. });
    Ok(Exit::NotAllOk.when(!states.iter().all(is_complete)))
}
