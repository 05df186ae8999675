//! Builds the files that heapmark carries (`carried.rs`), and computes the fingerprints of sources
//! whose results are kept in the cache.

use std::borrow::BorrowMut;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "src/fingerprint.rs"]
mod fingerprint;

use fingerprint::{COMPILED_TRACES, LIBRARIES, START, fingerprint, hash};

/// Compiler option that aligns every block which is jumped to at a multiple of 32 bytes: otherwise
/// any change to the guest moves its loops, which alone made the floor of a replay 3.5 or 4.4 ns
/// per event (`cargo bench --bench replay_floor`).
const ALIGNED: &str = "llvm-args=-align-all-nofallthru-blocks=5";

fn main() {
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
    if is_for_lints() {
        return LEFT.iter().for_each(|file| {
            fs::write(out(file), "").unwrap_or_else(|why| panic!("{file}: {why}"));
            carry(file);
        });
    }
    build_guest_and_recorder();
    build_preloaded();
    build_checks();
}

/// Names of the files that this script leaves for the binary to embed.
const LEFT: [&str; 10] = [
    "heapmark-guest",
    "libheapmark_recorder.so",
    "witness.so",
    "time-in-malloc.so",
    "sizes.so",
    "reach.so",
    "litter.so",
    "heapmark-check",
    "heapmark-check-c++",
    "heapmark-check-replacing",
];

/// Returns whether `cargo clippy` runs this script. Empty files, in a folder of their own, then suffice, since nothing that the lints build
/// is run.
fn is_for_lints() -> bool {
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").unwrap_or_default();
    Path::new(&wrapper).file_stem() == Some(OsStr::new("clippy-driver"))
}

/// Builds the guest and the recorder, which cannot be dependencies because they are a program and a
/// library of this workspace. A cargo inside cargo builds them in a folder of its own, since the
/// outer one holds the lock of the usual folder. Both share their jobs.
fn build_guest_and_recorder() {
    for part in ["guest", "recorder", "wire"] {
        println!("cargo::rerun-if-changed=../{part}/Cargo.toml");
        println!("cargo::rerun-if-changed=../{part}/src");
    }
    println!("cargo::rerun-if-changed=../../Cargo.toml");
    let target = variable("TARGET");
    let profile = match variable("PROFILE").as_str() {
        "release" => "measured",
        _ => "tested",
    };
    let folder = out("carried");
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
        .env("CARGO_ENCODED_RUSTFLAGS", flags);
    run(cargo);
    let built = folder.join(target).join(profile);
    for file in ["heapmark-guest", "libheapmark_recorder.so"] {
        let to = out(file);
        fs::copy(built.join(file), &to).unwrap_or_else(|why| panic!("{to:?}: {why}"));
        carry(file);
    }
}

/// Builds the C libraries that `heapmark try` preloads: a C compiler is always there, since rustc links with it.
fn build_preloaded() {
    println!("cargo::rerun-if-env-changed=CC");
    println!("cargo::rerun-if-env-changed=CXX");
    println!("cargo::rerun-if-changed=preloaded");
    for (name, more) in [
        ("witness", &[][..]),
        ("time-in-malloc", &[]),
        ("sizes", &[]),
        ("reach", &["-pthread"]),
        ("litter", &["-pthread"]),
    ] {
        let (source, library) = (format!("preloaded/{name}.c"), format!("{name}.so"));
        let mut cc = Command::new(env::var_os("CC").unwrap_or("cc".into()));
        cc.args(["-std=gnu11", "-O2", "-Wall", "-shared", "-fPIC", "-s"])
            // Without this flag, the compiler treats the library's calls of malloc as calls of a built-in function.
            .arg("-fno-builtin")
            .args(more)
            .args([&source, "-o"])
            .arg(out(&library));
        run(cc);
        carry(&library);
    }
}

/// Builds the programs that run the checks of `heapmark check`: each check is a file of a folder. Checks in C++ have a program of their
/// own, so that the C++ library is in no other process, and so do those that replace operators.
fn build_checks() {
    println!("cargo::rerun-if-changed=../../checks");
    let folder = Path::new("../../checks");
    let files = files_of(folder);
    let written_in = |ending: &'static str| {
        let is_one = move |file: &&PathBuf| {
            file.extension()
                .is_some_and(|extension| extension == ending)
        };
        files.iter().filter(is_one)
    };
    let main = folder.join("harness/main.c");
    let program = "heapmark-check";
    let cc = env::var_os("CC").unwrap_or("cc".into());
    let mut in_c = compiler(&cc, "gnu11");
    in_c.args(written_in("c"))
        .args(files_of(&folder.join("hardening")))
        .arg(folder.join("harness/misuse.c"));
    in_c.arg(&main).arg("-o");
    in_c.arg(out(program)).arg("-ldl");
    run(in_c);
    carry(program);

    let cxx = env::var_os("CXX").unwrap_or("c++".into());
    let has_cxx = Command::new(&cxx).arg("--version").output().is_ok();
    let object = out("heapmark-check-main.o");
    let mut to_object = compiler(&cc, "gnu11");
    if !has_cxx {
        println!("cargo::warning={cxx:?} is missing: checks in C++ will be unsupported");
        to_object.arg("-DWITHOUT_CXX");
    }
    run(to_object.arg("-c").arg(main).arg("-o").arg(&object));
    let replacing = files_of(&folder.join("replacing"));
    let programs: [(&str, Vec<&PathBuf>); 2] = [
        ("heapmark-check-c++", written_in("cc").collect()),
        ("heapmark-check-replacing", replacing.iter().collect()),
    ];
    for (program, files) in programs {
        let mut in_cxx = if has_cxx {
            let mut cxx = compiler(&cxx, "gnu++17");
            // Without this flag the compiler assumes that operator new never returns NULL.
            cxx.arg("-fcheck-new").args(files);
            cxx
        } else {
            compiler(&cc, "gnu11")
        };
        run(in_cxx.arg(&object).arg("-o").arg(out(program)).arg("-ldl"));
        carry(program);
    }
}

/// Returns a compiler with the flags for checks, which use the allocator wrongly on purpose.
fn compiler(name: &OsStr, standard: &str) -> Command {
    let mut compiler = Command::new(name);
    compiler
        .arg(format!("-std={standard}"))
        .args(["-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-s"])
        .args(["-fno-builtin", "-Wno-use-after-free", "-pthread"])
        // Some compilers define this macro, and glibc then aborts if a block is larger than the size that was requested.
        .arg("-U_FORTIFY_SOURCE")
        .arg("-I../../checks");
    compiler
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{folder:?}: {why}"));
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.sort();
    files
}

/// Writes the hash of a file's content into a file beside it.
fn carry(file: &str) {
    let path = out(file);
    let content = fs::read(&path).unwrap_or_else(|why| panic!("{path:?}: {why}"));
    let hash = format!("{:016x}", hash(START, &content));
    let path = out(&format!("{file}.hash"));
    fs::write(&path, hash).unwrap_or_else(|why| panic!("{path:?}: {why}"));
}

fn run(mut command: impl BorrowMut<Command>) {
    let command = command.borrow_mut();
    let status = command
        .status()
        .unwrap_or_else(|why| panic!("{command:?}: {why}"));
    assert!(status.success(), "{command:?}: {status}");
}

fn out(file: &str) -> PathBuf {
    Path::new(&variable("OUT_DIR")).join(file)
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|why| panic!("{name}: {why}"))
}
