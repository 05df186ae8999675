//! Runs an allocator's `configure` script for the headers that it writes. Its makefile is never
//! run: the files are compiled as those of other allocators.

use super::{files, toolchain};
use anyhow::{Context, Result};
use heapmark_catalog::allocator::{Configure, Language};
use heapmark_catalog::file::WithPath;
use std::path::{Path, PathBuf};

/// Copies the tree, since a `configure` script writes into its own folder, and runs the script
/// there.
pub fn tree(
    configure: &Configure,
    version: &str,
    bench: &super::compile::Bench,
) -> Result<PathBuf> {
    let from = bench.sources.join(&configure.tree);
    let tree = bench.workshop.join("tree");
    let mut found = Vec::new();
    files::walk(&from, &mut found).with_path("build.configure.tree: reading", &from)?;
    let copy = |from: &Path, to: &Path| -> Result<()> {
        std::fs::create_dir_all(to.parent().unwrap_or(to))
            .and_then(|()| std::fs::copy(from, to))
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        Ok(())
    };
    for file in &found {
        copy(file, &tree.join(file.strip_prefix(&from).unwrap_or(file)))?;
    }
    let script = bench.sources.join(&configure.script);
    match script.exists() {
        true => copy(&script, &tree.join("configure"))?,
        // A repository lacks the script, and has only the files from which autoconf makes it.
        false => {
            let mut command = std::process::Command::new("autoconf");
            bench.steps.run(
                "autoconf (apt-get install autoconf if it is missing)",
                command.current_dir(&tree),
            )?;
        }
    }
    let build = version.split_once('+').map_or("", |(_, build)| build);
    let mut command = std::process::Command::new("sh");
    let arguments = configure.arguments.iter();
    command
        .arg("configure")
        .args(arguments.map(|argument| argument.replace("{build}", build)))
        .env("CC", &bench.toolchain.compiler(Language::C).program)
        .env("CXX", &bench.toolchain.compiler(Language::Cpp).program)
        .current_dir(&tree);
    toolchain::remove_flags(&mut command);
    bench.steps.run("configure", &mut command)?;
    Ok(tree)
}
