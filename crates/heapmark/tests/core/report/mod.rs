//! What is made of stored runs: comparisons, claims, exports, the page; of runs that are damaged, too.

mod campaign;
mod claims;
mod compare;
mod fuzz;
mod hostile;
mod mutants;
mod outputs;
mod pool;
mod robust;
mod screens;
mod tables;
