//! Makes cargo notice new files in the folders that the binary embeds, here and in the crates above:
//! `include_dir!` alone notices only changes to known files.

use std::path::Path;

fn main() {
    for folder in [
        "allocators",
        "releases",
        "programs",
        "real-programs",
        "workloads",
        "suites",
        "claims",
        "traces",
        "checks",
    ] {
        let path = format!("../../{folder}");
        // Cargo treats a path that does not exist as a path that always changes.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
