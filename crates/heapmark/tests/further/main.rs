//! What `scripts/setup.sh test` installs for: other languages, allocators from their sources, a browser, Slurm, valgrind.

mod allocators;
mod programs;
mod run;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod traces;
