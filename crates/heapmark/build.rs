//! The debug binary, which tests start some ten thousand times, is linked to a fixed address: to relocate it takes a third of its
//! start.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").is_ok_and(|it| it == "debug") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
