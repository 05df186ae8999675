//! Links object files into a shared library that exports the malloc family, the allocator's own
//! controls, and nothing else.

use anyhow::Result;
use heapmark_catalog::allocator::{Language, Recipe, Unit};
use heapmark_catalog::file::WithPath;
use std::path::PathBuf;

/// Links `objects` as `lib<name>.so` in the workshop.
pub fn library(name: &str, objects: &[PathBuf], bench: &super::compile::Bench) -> Result<PathBuf> {
    let recipe = bench.recipe;
    let script = bench.workshop.join("exports.map");
    std::fs::write(&script, version_script(recipe)).with_path("writing", &script)?;
    let file = bench.workshop.join(format!("lib{name}.so"));
    let language = language(recipe);
    let mut command = bench.toolchain.compiler(language).command();
    command
        .args(super::toolchain::LINK_FLAGS)
        .arg(format!("-Wl,-soname,lib{name}.so"))
        .arg(format!("-Wl,--version-script={}", script.display()));
    if language == Language::Cpp {
        // Otherwise every C program under this allocator loads libstdc++, which allocates at
        // start-up. libgcc stays shared: with a private copy, exceptions do not propagate out of
        // `operator new`.
        command.arg("-static-libstdc++");
    }
    // With link-time optimisation, code is generated here, so the flags are needed again.
    command
        .args(recipe.flags_here())
        .args(objects)
        .args(&recipe.link)
        .arg("-o")
        .arg(&file);
    bench.steps.run("linking", &mut command)?;
    Ok(file)
}

/// Returns the language of the compiler that links.
pub fn language(recipe: &Recipe) -> Language {
    let is_cpp = |unit: &Unit| unit.language == Language::Cpp;
    match recipe.compile.iter().any(is_cpp) {
        true => Language::Cpp,
        false => Language::C,
    }
}

/// Returns the version script. GNU ld accepts names in it that no object defines, so one list is right for all allocators.
fn version_script(recipe: &Recipe) -> String {
    let names = heapmark_catalog::malloc_api::all()
        .map(String::from)
        .chain(recipe.exports.iter().cloned());
    let global: String = names.map(|name| format!("    {name};\n")).collect();
    format!("{{\n  global:\n{global}  local: *;\n}};\n")
}
