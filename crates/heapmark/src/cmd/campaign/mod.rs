//! `heapmark campaign`: the same work on many machines, and what it says about the next one.

mod plan;
mod pool;
mod shard;
mod status;
mod submit;

use super::Exit;
use anyhow::Result;

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
