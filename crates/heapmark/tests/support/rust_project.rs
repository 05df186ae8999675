//! A Rust project that is built by `heapmark try --cargo`.

use std::fs;
use std::path::Path;
use std::process::Command;

/// A workspace of two packages of edition 2024, one with a build script.
pub fn write_project(folder: &Path) {
    let files = [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"app\", \"lib\"]\nresolver = \"3\"\n",
        ),
        (".gitignore", "target\n"),
        (
            "app/Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[features]\nmore = []\n[dependencies]\nlib = { path = \"../lib\" }\n",
        ),
        (
            "app/build.rs",
            "fn main() { println!(\"cargo:rustc-env=BUILT_BY=build.rs\"); }\n",
        ),
        (
            "app/src/main.rs",
            "//! Counts.\n#![forbid(unsafe_code)]\nfn main() {\n    println!(\"{} {}\", env!(\"BUILT_BY\"), lib::count());\n}\n",
        ),
        (
            "lib/Cargo.toml",
            "[package]\nname = \"lib\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
        ),
        (
            "lib/src/lib.rs",
            "pub fn count() -> usize {\n    (0..300_000usize).map(|n| std::hint::black_box(vec![n; n % 50]).len()).sum()\n}\n",
        ),
    ];
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

/// Lets a command with a home of its own find cargo, with its crates.
pub fn find_cargo(command: &mut Command) {
    let home = std::env::var("HOME").unwrap();
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let usual = || format!("{home}/{folder}");
        command.env(name, std::env::var(name).unwrap_or_else(|_| usual()));
    }
}
