//! `heapmark campaign`: the same work on many machines, and what the results show about the next
//! one.

mod beside;
mod plan;
mod pool;
mod shard;
mod status;
mod submit;

pub use beside::page_beside;

use crate::campaign::{Campaign, ShardState};
use anyhow::Result;
use heapmark_core::cmd::{Exit, usage};
use std::path::PathBuf;

/// Measure the same work on many machines: what holds on the next one, too
#[derive(clap::Args)]
pub struct CampaignArgs {
    #[command(subcommand)]
    command: CampaignCommand,
}

#[derive(clap::Subcommand)]
enum CampaignCommand {
    Plan(plan::PlanArgs),
    Submit(submit::SubmitArgs),
    Print(submit::PrintArgs),
    Run(shard::ShardArgs),
    Status(status::StatusArgs),
    Pool(pool::PoolArgs),
}

/// The campaign whose plan is started.
#[derive(clap::Args)]
struct Started {
    /// Directory of the campaign
    #[arg(value_name = "CAMPAIGN")]
    campaign: PathBuf,
    /// Start what the plan names, though another user owns it
    #[arg(long)]
    trust: bool,
}

/// The state of each shard; reports which attempts do not count.
fn states(campaign: &Campaign) -> Vec<ShardState> {
    for why in campaign.unreadable() {
        say!("left out: {why:#}");
    }
    campaign.states()
}

impl Started {
    fn open(&self) -> Result<Campaign> {
        Campaign::trusted(&self.campaign, self.trust).map_err(usage)
    }
}

/// Runs the command.
pub fn run(args: CampaignArgs) -> Result<Exit> {
    match args.command {
        CampaignCommand::Plan(args) => plan::run(args),
        CampaignCommand::Submit(args) => submit::run(args),
        CampaignCommand::Print(args) => submit::print_script(args),
        CampaignCommand::Run(args) => shard::run(args),
        CampaignCommand::Status(args) => status::run(args),
        CampaignCommand::Pool(args) => pool::run(args),
    }
}
