//! `heapmark completions`: command lines completed by the shell.

use crate::cmd::{Exit, print};
use anyhow::Result;
use clap::Command;
use clap_complete::Shell;

/// Print the script with which a shell completes command lines of heapmark
#[derive(clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Runs the command; `line` has all commands and flags.
pub fn run(args: CompletionsArgs, mut line: Command) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "heapmark", &mut script);
    print(String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
