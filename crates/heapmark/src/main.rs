//! Prepares the process, then runs the command.

use heapmark::cli;
use heapmark::cmd::{Exit, signals, surroundings};
use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: this is the first that runs.
    match unsafe { surroundings::prepare() }.and_then(|()| signals::watch()) {
        Ok(()) => cli::run(),
        Err(error) => Exit::of_error(&error).into(),
    }
}
