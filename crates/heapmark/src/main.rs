//! The list of commands, nothing else.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use heapmark::cmd::{self, Exit, flags};
use std::process::ExitCode;

/// Find out which memory allocator suits your program and your machine, and by how much
#[derive(Parser)]
#[command(version, max_term_width = 100, after_help = cmd::EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<cmd::run::RunArgs>),
    #[command(name = "try")]
    Trial(Box<cmd::try_command::TryArgs>),
    Replay(Box<cmd::replay::ReplayArgs>),
    Doctor(cmd::doctor::DoctorArgs),
    List(cmd::list::ListArgs),
    Build(cmd::build::BuildArgs),
    Report(cmd::report::ReportArgs),
    Compare(cmd::compare::CompareArgs),
    Export(cmd::export::ExportArgs),
    Claims(cmd::claims::ClaimsArgs),
    Noise(cmd::noise::NoiseArgs),
    Selftest(cmd::selftest::SelftestArgs),
    Record(cmd::record::RecordArgs),
    Trace(cmd::trace::TraceArgs),
}

fn main() -> ExitCode {
    let line = flags::with_numbers_below_zero(Cli::command());
    let read = line
        .clone()
        .try_get_matches()
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (command, matches) = match read {
        Ok((cli, matches)) => (cli.command, matches),
        Err(error) => return flags::told(&error).into(),
    };
    if let Err(error) = flags::refuse_idle(&line, &matches).and_then(|()| cmd::signals::watch()) {
        return Exit::of_error(&error).into();
    }
    let result = match command {
        Command::Run(args) => cmd::run::run(*args),
        Command::Trial(args) => cmd::try_command::run(*args),
        Command::Replay(args) => cmd::replay::run(*args),
        Command::Doctor(args) => cmd::doctor::run(args),
        Command::List(args) => cmd::list::run(args),
        Command::Build(args) => cmd::build::run(args),
        Command::Report(args) => cmd::report::run(args),
        Command::Compare(args) => cmd::compare::run(args),
        Command::Export(args) => cmd::export::run(args),
        Command::Claims(args) => cmd::claims::run(args),
        Command::Noise(args) => cmd::noise::run(args),
        Command::Selftest(args) => cmd::selftest::run(args),
        // Its exit code is the program's.
        Command::Record(args) => match cmd::record::run(args) {
            Ok(code) => return ExitCode::from(code),
            Err(error) => Err(error),
        },
        Command::Trace(args) => cmd::trace::run(args),
    };
    result.unwrap_or_else(|error| Exit::of_error(&error)).into()
}
