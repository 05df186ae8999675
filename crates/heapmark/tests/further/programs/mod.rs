//! Whole programs: those in other languages, those that only print, and the user's own (`heapmark try`).

mod binary_trees;
mod cpus_seen;
mod drain;
mod out_of_reach;
mod pmdk;
mod printed;
mod reach;
mod real_programs;
mod rows;
mod try_age;
mod try_cargo;
mod try_command;
mod try_inputs;
mod try_server;
mod try_values;
mod try_variants;
mod tune;
mod which;
