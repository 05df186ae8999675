//! What other tools read of heapmark's output, and what its scripts say: a browser, Node, Python, Slurm; and what other users do
//! to it.

mod ci;
mod circles;
mod exports;
mod page;
mod series;
mod shape;
mod slurm;
mod strangers;
