//! `heapmark run` and the commands around it: plans, flags, signals, files, and what is said of a run.

mod age;
mod around;
mod directory;
mod doctor;
mod files;
mod flags;
mod huge_pages;
mod interrupt;
mod latency;
mod limits;
mod memory_shapes;
mod one_file;
mod placement;
mod plan;
mod preflight;
mod process_life;
mod progress;
mod retained;
mod said;
mod smallest_limit;
mod trust;
