//! Which files a recipe selects. Reads folders, compiles nothing.

use anyhow::{Context, Result, bail};
use heapmark_catalog::allocator::{Recipe, Unit};
use heapmark_catalog::allocators;
use heapmark_catalog::file::WithPath;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file to compile.
pub struct Task<'a> {
    /// The source file.
    pub path: PathBuf,
    /// How to compile it.
    pub unit: &'a Unit,
    /// The object file.
    pub object: PathBuf,
}

/// Returns the files that a recipe selects in a tree, in the recipe's order; writes heapmark's own
/// extra files into the workshop.
pub fn tasks<'a>(recipe: &'a Recipe, tree: &Path, workshop: &Path) -> Result<Vec<Task<'a>>> {
    let mut all = Vec::new();
    walk(tree, &mut all).with_path("reading the sources in", tree)?;
    all.sort();
    let mut tasks: Vec<Task> = Vec::new();
    let mut add = |path: PathBuf, unit| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let object = workshop.join(format!("{:03}-{stem}.o", tasks.len()));
        tasks.push(Task { path, unit, object });
    };
    for unit in &recipe.compile {
        let is_left_out = |name| unit.except.iter().any(|except| is_file(except, name));
        for pattern in &unit.files {
            let mut found = false;
            for path in &all {
                let name = path.strip_prefix(tree).unwrap_or(path);
                if is_file(pattern, name) && !is_left_out(name) {
                    found = true;
                    add(path.clone(), unit);
                }
            }
            if !found {
                bail!(
                    "build.compile.files: `{pattern}` matches no file in {}; did another version rename it?",
                    tree.display()
                );
            }
        }
        for name in &unit.extra {
            let text = allocators::extra(name).with_context(|| {
                format!("build.compile.extra: allocators/extra/{name} is not there")
            })?;
            let path = workshop.join(name);
            std::fs::write(&path, text).with_path("writing", &path)?;
            add(path, unit);
        }
    }
    Ok(tasks)
}

/// Returns whether a pattern names a file of a source tree.
pub fn is_file(pattern: &str, path: &Path) -> bool {
    fast_glob::glob_match(pattern, path.as_os_str().as_bytes())
}

/// Adds all files below a folder to `files`.
pub fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}
