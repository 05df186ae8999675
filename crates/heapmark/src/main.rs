//! Prepares the process, then runs the command.

use heapmark::cmd::{Exit, command_line, signals, surroundings};
use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: this is the first that runs.
    match unsafe { surroundings::prepare() }.and_then(|()| signals::watch()) {
        Ok(()) => command_line::run(),
        Err(error) => Exit::of_error(&error).into(),
    }
}
