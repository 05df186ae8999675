//! `heapmark open`: shows a run's page in the browser.

use super::{Exit, page, say, say_damage, usage};
use crate::analyse::reads_figure;
use crate::build::in_path;
use crate::store::{self, Paths};
use anyhow::{Context, Result, bail};
use std::path::absolute;
use std::process::{Command, Stdio};

/// Write a stored run's page and show it in the browser
#[derive(clap::Args)]
pub struct OpenArgs {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
}

/// The program that starts the user's browser on every desktop.
const STARTER: &str = "xdg-open";

/// Runs `heapmark open`.
pub fn run(args: OpenArgs) -> Result<Exit> {
    let dir = store::find(&args.run).map_err(usage)?;
    let run = store::read_for_tables(&dir, Paths::Published, reads_figure)?;
    say_damage(&dir, &run);
    // The page is written anew, since an existing page may come from another user; the absolute path cannot look like a flag.
    let file = absolute(page::beside(&dir, &run)?).context("cannot find the page")?;
    let name = file.display();
    let starter = in_path(STARTER).with_context(|| {
        format!("no {STARTER} here, which would start a browser: open {name} in one")
    })?;
    let status = Command::new(starter)
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {STARTER}: open {name} in a browser"))?;
    if !status.success() {
        bail!("{STARTER} ended with {status}: open {name} in a browser");
    }
    say(name.to_string());
    Ok(Exit::Done)
}
