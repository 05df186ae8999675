//! Rules for every command line: a flag is used or refused, never ignored, and all mistakes are
//! reported in one style. What depends on the plan, such as thread counts that follow from
//! parameters, is refused when the plan is made.

use super::help::example;
use crate::cmd::Exit;
use crate::cmd::surroundings::stdout;
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

const RESUME: &str = "resume";
/// All flags that have an effect with `--resume`. A new flag is refused until it is listed here.
const WITH_RESUME: [&str; 7] = [
    RESUME,
    "strict",
    "check_again",
    "dry_run",
    "cells",
    "cell",
    "format",
];

/// Applies the rules that hold for every command and its subcommands.
pub fn with_rules(command: Command) -> Command {
    let resumes = command.get_arguments().any(|arg| arg.get_id() == RESUME);
    let command = command.mut_args(|arg| {
        // A number below 0 is not a flag: the parser of the value reports the mistake.
        let is_flag = arg.get_action().takes_values() && !arg.is_positional();
        let arg = arg.allow_negative_numbers(is_flag);
        if resumes && !WITH_RESUME.contains(&arg.get_id().as_str()) {
            arg.conflicts_with(RESUME)
        } else {
            arg
        }
    });
    command.mut_subcommands(with_rules)
}

/// Prints clap's message, help or a mistake; returns the exit code.
pub fn told(error: &clap::Error, line: &Command) -> Exit {
    let mistake = match error.kind() {
        kind @ (ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) => {
            if let Err(closed) = stdout()
                && !error.use_stderr()
            {
                return Exit::of_error(&closed);
            }
            return match error.print() {
                Err(failed) if failed.kind() != std::io::ErrorKind::BrokenPipe => {
                    say!("heapmark: cannot write the help: {failed}");
                    Exit::Failed
                }
                _ => Exit::Usage.when(kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand),
            };
        }
        ErrorKind::InvalidUtf8 => {
            let (place, word) = std::env::args_os()
                .enumerate()
                .find(|(_, word)| word.to_str().is_none())
                .unwrap_or_default();
            format!(
                "argument {place}, {word:?}, is not UTF-8: rename the file, or name a link to it"
            )
        }
        ErrorKind::MissingRequiredArgument => missing(error, line),
        _ => {
            let text = error.render().to_string();
            // Leaves out clap's advice on values that look like flags: no file name of heapmark's looks like one.
            let advice = |line: &str| {
                line.starts_with("For more information") || line.contains("as a value, use '-- ")
            };
            let mut lines: Vec<&str> = text.lines().collect();
            lines.retain(|line| !line.trim().is_empty() && !advice(line));
            // Replaces a message of the standard library by a clearer one.
            let text = lines
                .join("\n")
                .replace("invalid digit found in string", "not a whole number");
            text.strip_prefix("error: ").unwrap_or(&text).to_owned()
        }
    };
    say!("heapmark: {mistake}");
    Exit::Usage
}

/// Returns the message about missing arguments: what is missing, its possible values, and a line to type.
fn missing(error: &clap::Error, line: &Command) -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let mut line = line.clone();
    // Before this call, clap does not show arguments under their full names.
    line.build();
    let mut command = &line;
    let mut path = Vec::new();
    for word in words.filter(|word| !word.starts_with('-')) {
        let Some(below) = command.find_subcommand(&word) else {
            break;
        };
        command = below;
        path.push(word);
    }
    let path = path.join(" ");
    let names = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.clone(),
        _ => Vec::new(),
    };
    let arguments = command.get_arguments();
    let mut values = arguments
        .filter(|arg| names.contains(&arg.to_string()))
        .flat_map(|arg| arg.get_possible_values())
        .map(|value| value.get_name().to_owned())
        .peekable();
    let one_of = match values.peek() {
        Some(_) => format!(", one of {}", values.collect::<Vec<_>>().join(", ")),
        None => String::new(),
    };
    let example = example(&path).map_or_else(
        || format!("see heapmark {path} --help"),
        |line| format!("for example: {line}"),
    );
    format!("{path}: {} is missing{one_of}; {example}", names.join(" "))
}
