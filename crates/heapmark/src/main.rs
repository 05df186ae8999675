//! Prepares the process, then runs the command.

use heapmark::cli;
use heapmark::cmd::{Exit, signals, surroundings};
use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: no other code of this program has run before.
    match unsafe { surroundings::prepare() }.and_then(|()| signals::watch()) {
        Ok(()) => cli::run(),
        Err(error) => Exit::of_error(&error).into(),
    }
}
