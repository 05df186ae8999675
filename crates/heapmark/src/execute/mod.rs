//! One cell -> a fresh child process -> an [`Outcome`]: environment, proof, limits, timeout, kill the group.

pub mod measurement;
pub mod outcome;

pub use measurement::{Iteration, LoadedObject, Measurement, Proof, ThreadTime, Usage};
pub use outcome::Outcome;
