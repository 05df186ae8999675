//! What is made of stored runs: comparisons, claims, exports, the page; of runs that are damaged, too.

mod campaign;
mod ci;
mod claims;
mod commands;
mod compare;
mod exports;
mod fuzz;
mod hostile;
mod outputs;
mod page;
mod pool;
mod robust;
#[path = "../support/mod.rs"]
mod support;
mod tables;
