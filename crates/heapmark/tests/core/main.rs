//! What needs no more than a C compiler: `make test-core` runs it for a first change.

mod kernels;
mod report;
mod source;
#[path = "../support/mod.rs"]
mod support;
