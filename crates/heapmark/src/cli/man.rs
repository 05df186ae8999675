//! `heapmark man`: the help of all commands as manual pages.

use crate::cmd::{Exit, say};
use crate::file::{self, PUBLIC, WithPath};
use anyhow::Result;
use clap::Command;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Write manual pages, one for each command, into a folder
#[derive(clap::Args)]
pub struct ManArgs {
    /// The folder; made if it is not there
    folder: PathBuf,
}

/// Runs the command; `line` has all commands and flags.
pub fn run(args: ManArgs, line: Command) -> Result<Exit> {
    let mut line = line.disable_help_subcommand(true);
    line.build();
    file::make_folder(&args.folder).with_path("cannot create", &args.folder)?;
    write(&line, &args.folder)?;
    say(args.folder.display().to_string());
    Ok(Exit::Done)
}

fn write(command: &Command, folder: &Path) -> Result<()> {
    let page = Man::new(command.clone());
    let file = folder.join(page.get_filename());
    let mut text = Vec::new();
    page.render(&mut text)
        .and_then(|()| file::replace(&file, &text, PUBLIC))
        .with_path("cannot write", &file)?;
    command
        .get_subcommands()
        .try_for_each(|command| write(command, folder))
}
