//! Packs the script that draws a page's charts.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[path = "src/report/page/packed.rs"]
mod packed;

fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    println!("cargo::rerun-if-changed=src/report/page/packed.rs");
    let script = plotting_script();
    let text = fs::read_to_string(&script).unwrap_or_else(|why| panic!("{script:?}: {why}"));
    let path = Path::new(&variable("OUT_DIR")).join("plotly.js.packed");
    fs::write(&path, packed::packed(&text)).unwrap_or_else(|why| panic!("{path:?}: {why}"));
}

/// It lies in the sources of its crate, whose code is not needed, and so never compiled: cargo fetches it, and says where it is.
fn plotting_script() -> PathBuf {
    let mut cargo = Command::new(variable("CARGO"));
    cargo
        .args(["metadata", "--locked", "--quiet", "--format-version", "1"])
        .args(["--features", "plotly", "--filter-platform"])
        .arg(variable("TARGET"));
    let said = cargo
        .output()
        .unwrap_or_else(|why| panic!("{cargo:?}: {why}"));
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{cargo:?}: {errors}");
    let said = String::from_utf8(said.stdout).expect("cargo writes UTF-8");
    said.split('"')
        .filter(|word| word.ends_with("/Cargo.toml"))
        .map(|manifest| Path::new(manifest).with_file_name("resource/plotly.min.js"))
        .find(|script| script.exists())
        .expect("plotly's crate has its script")
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|why| panic!("{name}: {why}"))
}
