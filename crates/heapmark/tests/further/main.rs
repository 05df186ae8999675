//! What `scripts/setup.sh test` installs for: other languages, allocators from their sources, a browser, Slurm, valgrind.

// Tests start in the order of their names: those of a browser and those that wait are not the last.
mod allocators;
mod outside;
mod programs;
mod recordings;
mod run;
#[path = "../support/mod.rs"]
mod support;
