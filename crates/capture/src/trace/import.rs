//! `heapmark trace import`: converts traces of other tools.

use super::{Exit, in_file, print_written};
use anyhow::Result;
use heapmark_core::cmd::long::Long;
use heapmark_core::cmd::output::{Force, Output};
use heapmark_core::file::WithPath;
use heapmark_trace::{Watched, import};
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

/// Make a trace from another tool's recording: the text of glibc's mtrace, a .rep file of malloclab, or
/// a text for Android's memory_replay
#[derive(clap::Args)]
pub struct ImportArgs {
    /// The other tool's file: for mtrace, the one that MALLOC_TRACE named
    file: PathBuf,
    /// Trace; `-` is stdout
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// Runs the command.
pub fn run(args: ImportArgs) -> Result<Exit> {
    let output = Output::new(&args.output, args.force, [&args.file])?;
    let from = File::open(&args.file).with_path("cannot open", &args.file)?;
    let long = Long::on(&args.file, format!("trace import {}", args.file.display()));
    let mut from = BufReader::new(Watched::new(from, long.done()));
    let written = output.write(|to| in_file(import(&mut from, to), &args.file))?;
    drop(long);
    let Some(imported) = written else {
        return Ok(Exit::Done);
    };
    let mended = imported.mended;
    let name = args.file.display();
    if mended.unknown > 0 {
        say!(
            "{name}: {} objects ended that had begun before; they are left out",
            mended.unknown
        );
    }
    if mended.unseen > 0 {
        say!(
            "{name}: {} addresses were given out while they were in use; what used them ends there",
            mended.unseen
        );
    }
    if !imported.lost.is_empty() {
        say!("{name}: {}", imported.lost);
    }
    if imported.torn {
        say!("{name}: its last line is cut off, and left out: the text was shortened");
    } else if !imported.ended {
        say!(
            "{name}: no `= End` stands at its end: the program did not call muntrace(), or the text was shortened"
        );
    }
    print_written(&output, &imported.totals)?;
    Ok(Exit::Damaged.when(imported.torn))
}
