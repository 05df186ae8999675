//! What a command prints to stdout and stderr, and how wide and colourful these are.

use super::surroundings;
use crate::report::{Screen, json, plain, plain_lines};
use anyhow::{Context, Result};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// Prints to stdout without sequences that a terminal would interpret, except colours. A reader that stops early, as `| head` does, is not
/// a failure.
pub fn print(text: impl AsRef<str>) -> Result<()> {
    let mut stdout = surroundings::stdout()?.lock();
    match stdout
        .write_all(plain_lines(text.as_ref()).as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Prints a value as JSON to stdout.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(json(value))
}

/// How heapmark prints, whichever command runs.
#[derive(Clone, Copy, clap::Args)]
pub struct Manner {
    /// Print results and errors only: no progress, no remarks
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Whether colours stress words [default: auto, which is on a terminal unless NO_COLOR is set]
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        hide_default_value = true,
        default_value = "auto"
    )]
    color: Color,
}

/// When colours are used.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

impl Manner {
    /// Takes effect for the rest of the process.
    pub fn take_effect(self) {
        let _ = MANNER.set(self);
    }
}

/// Whether only results and errors are wanted.
pub fn is_quiet() -> bool {
    MANNER.get().is_some_and(|manner| manner.quiet)
}

/// Prints a remark to stderr, unless `--quiet` is set.
pub fn note(text: impl AsRef<str>) {
    if !is_quiet() {
        say(text);
    }
}

/// Prints to stderr, line by line: the text may quote a file or a process. Write errors are
/// ignored, so that a run goes on if stderr is closed.
pub fn say(text: impl AsRef<str>) {
    text.as_ref()
        .lines()
        .for_each(|line| drop(writeln!(io::stderr(), "{}", plain(line))));
}

/// The screen that stdout goes to.
pub fn screen() -> Screen {
    screen_of(io::stdout())
}

pub fn screen_of(stream: impl AsFd + IsTerminal) -> Screen {
    let variable = std::env::var_os;
    let colour = match MANNER.get().map_or(Color::Auto, |manner| manner.color) {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            stream.is_terminal()
                && variable("NO_COLOR").is_none_or(|value| value.is_empty())
                && variable("TERM").is_none_or(|term| term != "dumb")
        }
    };
    Screen {
        width: width_of(stream),
        colour,
    }
}

/// The width of a stream in characters; 100 if it is not a terminal.
pub fn width_of(stream: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        // A terminal whose size was never set reports 0.
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(40),
        _ => 100,
    }
}
