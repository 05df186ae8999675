//! Runs an allocator's `configure` script for the headers that it writes. Its makefile is never
//! run: the files are compiled as those of other allocators.

use super::compile::Bench;
use super::{files, step, toolchain};
use crate::catalog::allocator::{Configure, Language};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies the tree, since a `configure` script writes into its own folder, and runs the script
/// there.
pub fn tree(
    configure: &Configure,
    directory: &Path,
    version: &str,
    bench: &Bench,
) -> Result<PathBuf> {
    let from = directory.join(&configure.tree);
    let tree = bench.workshop.join("tree");
    let mut found = Vec::new();
    files::walk(&from, &mut found)
        .with_context(|| format!("build.configure.tree: reading {}", from.display()))?;
    let copy = |from: &Path, to: &Path| -> Result<()> {
        std::fs::create_dir_all(to.parent().unwrap_or(to))
            .and_then(|()| std::fs::copy(from, to))
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        Ok(())
    };
    for file in &found {
        copy(file, &tree.join(file.strip_prefix(&from).unwrap_or(file)))?;
    }
    copy(&directory.join(&configure.script), &tree.join("configure"))?;
    let build = version.split_once('+').map_or("", |(_, build)| build);
    let mut command = Command::new("sh");
    command
        .arg("configure")
        .args(
            configure
                .arguments
                .iter()
                .map(|argument| argument.replace("{build}", build)),
        )
        .env("CC", bench.toolchain.compiler(Language::C).program())
        .env("CXX", bench.toolchain.compiler(Language::Cpp).program())
        .current_dir(&tree);
    toolchain::not_taken()
        .iter()
        .for_each(|name| _ = command.env_remove(name));
    step::run("configure", &mut command, bench.slots, bench.log)?;
    Ok(tree)
}
