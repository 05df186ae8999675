//! What `scripts/setup.sh test` installs for: other languages, allocators from their sources, a browser, Slurm, valgrind.

// Tests start in the order of their names: `recordings`, which wait for seconds, are not the last.
mod allocators;
mod programs;
mod recordings;
mod run;
#[path = "../support/mod.rs"]
mod support;
mod tools;
