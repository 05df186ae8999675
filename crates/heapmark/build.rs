//! Makes cargo notice new files in the folders that the binary embeds: `include_dir!` alone notices
//! only changes to known files. Also computes the fingerprints of sources whose results are kept in
//! the cache. Builds nothing.

use std::path::Path;

#[path = "src/build/fingerprint.rs"]
mod fingerprint;

use fingerprint::{COMPILED_TRACES, LIBRARIES, fingerprint};

fn main() {
    for folder in [
        "allocators",
        "programs",
        "real-programs",
        "workloads",
        "suites",
        "claims",
        "traces",
    ] {
        let path = format!("../../{folder}");
        // Cargo treats a path that does not exist as one that always changes.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for (name, paths) in [
        ("LIBRARY", &LIBRARIES[..]),
        ("COMPILED_TRACE", &COMPILED_TRACES[..]),
    ] {
        paths
            .iter()
            .for_each(|path| println!("cargo::rerun-if-changed={path}"));
        println!(
            "cargo::rustc-env=HEAPMARK_{name}_SOURCES={}",
            fingerprint(Path::new("."), paths)
        );
    }
}
