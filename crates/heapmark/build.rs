//! Has cargo notice new files in the folders that the binary embeds: `include_dir!` alone sees only changes to those it
//! knew. Builds nothing.

fn main() {
    for folder in ["allocators", "programs", "workloads", "suites", "claims"] {
        let path = format!("../../{folder}");
        // Cargo takes a path that does not exist for one that always changes.
        if std::path::Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
