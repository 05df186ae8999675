//! The list of commands, nothing else.

use super::{completions, flags, help, list, man, report};
use crate::build::prebuilt_libraries;
use crate::capture::{record, trace};
use crate::cmd::{
    Exit, Manner, add_to_pages, build, clean, compare, doctor, explain, export, fetch, noise, open,
    refuse_few_files, replay, run, selftest, show, try_command,
};
use crate::{check, claims, history, pool, tune, which};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Find out which memory allocator suits your program and your machine, and by how much
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    manner: Manner,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    #[command(name = "try")]
    Trial(Box<try_command::TryArgs>),
    Tune(Box<tune::TuneArgs>),
    Replay(Box<replay::ReplayArgs>),
    Which(which::WhichArgs),
    Doctor(doctor::DoctorArgs),
    List(list::ListArgs),
    Build(build::BuildArgs),
    Show(show::ShowArgs),
    Report(report::ReportArgs),
    Compare(compare::CompareArgs),
    Export(export::ExportArgs),
    History(Box<history::HistoryArgs>),
    Museum(history::MuseumArgs),
    Campaign(pool::CampaignArgs),
    Claims(claims::ClaimsArgs),
    Check(check::CheckArgs),
    Noise(noise::NoiseArgs),
    Selftest(selftest::SelftestArgs),
    Record(record::RecordArgs),
    Trace(trace::TraceArgs),
    Open(open::OpenArgs),
    Explain(explain::ExplainArgs),
    Fetch(fetch::FetchArgs),
    Clean(clean::CleanArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Returns all commands and flags, with the rules between them.
pub fn definition() -> clap::Command {
    help::arranged(flags::with_rules(Cli::command()))
}

/// Returns the version, and the libraries that came with the program.
fn carries() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    if !std::env::args_os().any(|word| word == "--version") {
        return version;
    }
    let mut named: Vec<String> = prebuilt_libraries();
    named.sort();
    let carried = match named.is_empty() {
        true => "no prebuilt allocators: heapmark build makes them".to_owned(),
        false => format!("prebuilt allocators: {}", named.join(", ")),
    };
    // Leaked, since clap takes static strings only.
    format!("{version}\n{carried}").leak()
}

/// Runs the command that the user typed. Never inlined, since its frame is larger than the smallest
/// stacks.
#[inline(never)]
pub fn run() -> ExitCode {
    let line = definition().long_version(carries());
    let read = line
        .clone()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match read {
        Ok(cli) => cli,
        Err(error) => return flags::told(&error, &line).into(),
    };
    if let Err(error) = refuse_few_files() {
        return Exit::of_error(&error).into();
    }
    cli.manner.take_effect();
    add_to_pages(claims::sections_of_runs);
    let result = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Trial(args) => try_command::run(*args),
        Command::Tune(args) => tune::run(*args),
        Command::Replay(args) => replay::run(*args),
        Command::Which(args) => which::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::List(args) => list::run(args),
        Command::Build(args) => build::run(args),
        Command::Show(args) => show::run(args),
        Command::Report(args) => report::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Export(args) => export::run(args),
        Command::History(args) => history::run(*args),
        Command::Museum(args) => history::museum(args),
        Command::Campaign(args) => pool::run(args),
        Command::Claims(args) => claims::run(args),
        Command::Check(args) => check::run(args, claims::sections_of_check),
        Command::Noise(args) => noise::run(args),
        Command::Selftest(args) => selftest::run(args),
        // The exit code of `record` is that of the recorded program.
        Command::Record(args) => match record::run(args) {
            Ok(code) => return code.into(),
            Err(error) => Err(error),
        },
        Command::Trace(args) => trace::run(args),
        Command::Open(args) => open::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Fetch(args) => fetch::run(args),
        Command::Clean(args) => clean::run(args),
        Command::Completions(args) => completions::run(args, line),
        Command::Man(args) => man::run(args, line),
    };
    result.unwrap_or_else(|error| Exit::of_error(&error)).into()
}
