//! Traces for people and programs: events one per line, and what all of them come to.

mod dump;

pub use dump::Dump;
