//! What other tools read of heapmark's output, and what its scripts and documents say: a browser, Node, Python, Slurm, a shell; and
//! what other users do to it.

mod ci;
mod circles;
mod commands;
mod exports;
mod page;
mod series;
mod shape;
mod slurm;
mod strangers;
