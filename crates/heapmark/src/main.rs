//! The list of commands, nothing else.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use heapmark::cmd::{
    EXIT_CODES, Exit, Manner, build, campaign, check, claims, clean, compare, completions, doctor,
    explain, export, fetch, flags, help, list, man, noise, open, record, refuse_few_files, replay,
    report, run, selftest, show, signals, surroundings, trace, try_command,
};
use std::process::ExitCode;

/// Find out which memory allocator suits your program and your machine, and by how much
#[derive(Parser)]
#[command(version, max_term_width = 100, after_help = EXIT_CODES)]
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
    Replay(Box<replay::ReplayArgs>),
    Doctor(doctor::DoctorArgs),
    List(list::ListArgs),
    Build(build::BuildArgs),
    Show(show::ShowArgs),
    Report(report::ReportArgs),
    Compare(compare::CompareArgs),
    Export(export::ExportArgs),
    Campaign(campaign::CampaignArgs),
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

fn main() -> ExitCode {
    // SAFETY: this is the first that runs.
    match unsafe { surroundings::prepare() }.and_then(|()| signals::watch()) {
        Ok(()) => command(),
        Err(error) => Exit::of_error(&error).into(),
    }
}

/// Its frame is larger than the smallest stacks.
#[inline(never)]
fn command() -> ExitCode {
    let line = help::arranged(flags::with_numbers_below_zero(Cli::command()));
    let read = line
        .clone()
        .try_get_matches()
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match read {
        Ok(read) => read,
        Err(error) => return flags::told(&error).into(),
    };
    if let Err(error) = flags::refuse_idle(&line, &matches).and_then(|()| refuse_few_files()) {
        return Exit::of_error(&error).into();
    }
    cli.manner.take_effect();
    let result = match cli.command {
        Command::Run(args) => run::run(*args),
        Command::Trial(args) => try_command::run(*args),
        Command::Replay(args) => replay::run(*args),
        Command::Doctor(args) => doctor::run(args),
        Command::List(args) => list::run(args),
        Command::Build(args) => build::run(args),
        Command::Show(args) => show::run(args),
        Command::Report(args) => report::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Export(args) => export::run(args),
        Command::Campaign(args) => campaign::run(args),
        Command::Claims(args) => claims::run(args),
        Command::Check(args) => check::run(args),
        Command::Noise(args) => noise::run(args),
        Command::Selftest(args) => selftest::run(args),
        // Its exit code is the program's.
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
