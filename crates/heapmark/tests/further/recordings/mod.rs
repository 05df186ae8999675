//! Recording, traces and replay.

mod captured_trees;
mod captures;
mod counts;
mod fidelity;
mod pack;
mod record;
mod replay;
