//! Builds the two files that heapmark carries, guest and recorder. Makes cargo notice new files in
//! the folders that the binary embeds: `include_dir!` alone notices only changes to known files. Also
//! computes the fingerprints of sources whose results are kept in the cache.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[path = "src/build/fingerprint.rs"]
mod fingerprint;

use fingerprint::{COMPILED_TRACES, LIBRARIES, START, fingerprint, hash};

/// Blocks that are jumped to begin at multiples of 32 bytes: otherwise any change to the guest moves
/// its loops, and by that alone the floor of a replay was 3.5 or 4.4 ns per event (`cargo bench
/// --bench replay_floor`).
const ALIGNED: &str = "llvm-args=-align-all-nofallthru-blocks=5";

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
    build_carried();
}

/// A program and a library of this workspace cannot be dependencies, so a cargo inside cargo builds
/// them, in a folder of its own: the outer one holds the lock of the usual folder. Both share their
/// jobs.
fn build_carried() {
    for part in ["guest", "recorder", "wire"] {
        println!("cargo::rerun-if-changed=../{part}/Cargo.toml");
        println!("cargo::rerun-if-changed=../{part}/src");
    }
    println!("cargo::rerun-if-changed=../../Cargo.toml");
    let target = variable("TARGET");
    let profile = match variable("PROFILE").as_str() {
        "release" => "measured",
        _ => "dev",
    };
    let folder = Path::new(&variable("OUT_DIR")).join("carried");
    let mut flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if !flags.contains(ALIGNED) {
        let separator = if flags.is_empty() { "" } else { "\x1f" };
        flags += &format!("{separator}-C\x1f{ALIGNED}");
    }
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["build", "--locked", "--quiet"])
        .args(["-p", "heapmark-guest", "-p", "heapmark-recorder"])
        .args(["--target", &target, "--profile", profile])
        .arg("--target-dir")
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_PROFILE_DEV_STRIP", "symbols")
        // Of `cargo clippy`, which compiles nothing.
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let status = cargo
        .status()
        .unwrap_or_else(|why| panic!("{cargo:?}: {why}"));
    assert!(status.success(), "{cargo:?}: {status}");
    let built = folder.join(target).join(match profile {
        "dev" => "debug",
        other => other,
    });
    for (name, file) in [
        ("GUEST", "heapmark-guest"),
        ("RECORDER", "libheapmark_recorder.so"),
    ] {
        let path = built.join(file);
        let content = fs::read(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
        println!(
            "cargo::rustc-env=HEAPMARK_CARRIED_{name}={}",
            path.display()
        );
        println!(
            "cargo::rustc-env=HEAPMARK_CARRIED_{name}_HASH={:016x}",
            hash(START, &content)
        );
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|why| panic!("{name}: {why}"))
}
