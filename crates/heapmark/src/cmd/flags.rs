//! Rules for every command line: a flag is used or refused, never ignored, and all mistakes are
//! reported in one style. What depends on the plan, such as thread counts that follow from
//! parameters, is refused when the plan is made.

use super::{Exit, say, usage};
use anyhow::{Result, anyhow};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// A flag that leaves most others without effect.
struct Sole {
    /// The name of its field in the command.
    flag: &'static str,
    /// All flags that have an effect beside it. A new flag is refused until it is listed here.
    beside: &'static [&'static str],
    /// Why the others have no effect.
    why: &'static str,
}

const SOLE: [Sole; 1] = [Sole {
    flag: "resume",
    beside: &["strict", "check_again", "dry_run", "cells", "cell"],
    why: "does nothing beside --resume: what is measured, and how, stands in the stored run. Start a new run, or leave all of \
          it out: heapmark run --resume RUN",
}];

/// A number below 0 is not a flag: the parser of the value reports the mistake.
pub fn with_numbers_below_zero(command: Command) -> Command {
    let takes = |arg: &Arg| arg.get_action().takes_values() && !arg.is_positional();
    let command = command.mut_args(|arg| {
        if takes(&arg) {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    });
    command.mut_subcommands(with_numbers_below_zero)
}

/// Refuses arguments that would have no effect beside the others.
pub fn refuse_idle(command: &Command, matches: &ArgMatches) -> Result<()> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let Some(command) = command.find_subcommand(name) else {
        return Ok(());
    };
    let is_typed =
        |arg: &&Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let typed: Vec<&Arg> = command.get_arguments().filter(is_typed).collect();
    for sole in SOLE {
        if !typed.iter().any(|arg| arg.get_id() == sole.flag) {
            continue;
        }
        let is_idle = |arg: &&&Arg| {
            arg.get_id() != sole.flag && sole.beside.iter().all(|flag| arg.get_id() != flag)
        };
        let idle: Vec<String> = typed.iter().filter(is_idle).map(|arg| named(arg)).collect();
        if !idle.is_empty() {
            return Err(usage(anyhow!("{} {}", idle.join(", "), sole.why)));
        }
    }
    Ok(())
}

/// The argument as users write it: `--allocators`, `SUITE`.
fn named(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_value_names()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some([name, ..])) => name.to_string(),
        (None, _) => arg.get_id().as_str().to_uppercase(),
    }
}

/// Prints clap's message, help or a mistake; returns the exit code.
pub fn told(error: &clap::Error) -> Exit {
    let code = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Done,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Exit::Usage,
        ErrorKind::InvalidUtf8 => {
            let mut arguments = std::env::args_os().enumerate();
            let wrong = arguments.find(|(_, word)| word.to_str().is_none());
            let (place, word) = wrong.unwrap_or_default();
            say(&format!(
                "heapmark: argument {place}, {word:?}, is not UTF-8: rename the file, or name a link to it"
            ));
            return Exit::Usage;
        }
        _ => {
            let text = error.render().to_string();
            // What looks like a flag but is not is no file name of ours either.
            let advice = |line: &str| {
                line.starts_with("For more information") || line.contains("as a value, use '-- ")
            };
            let lines: Vec<&str> = text
                .lines()
                .filter(|line| !line.trim().is_empty() && !advice(line))
                .collect();
            let text = lines.join("\n");
            say(&format!(
                "heapmark: {}",
                text.strip_prefix("error: ").unwrap_or(&text)
            ));
            return Exit::Usage;
        }
    };
    match error.print() {
        Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => {
            say(&format!("heapmark: cannot write the help: {failed}"));
            Exit::Failed
        }
        _ => code,
    }
}
