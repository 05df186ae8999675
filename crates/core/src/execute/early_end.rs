//! Why a step of a measurement has no value.

use super::{Attempt, Outcome};

/// Why a measurement ends before its last step.
pub enum EarlyEnd {
    /// The attempt that is the result of the measurement.
    Attempt(Box<Attempt>),
    /// An error of heapmark itself, or [`super::Interrupted`].
    Error(anyhow::Error),
}

/// The value of a step, unless the measurement ends with it.
pub type StepResult<T> = Result<T, EarlyEnd>;

impl From<anyhow::Error> for EarlyEnd {
    fn from(error: anyhow::Error) -> EarlyEnd {
        EarlyEnd::Error(error)
    }
}

/// An outcome that was reached without a process.
impl From<Outcome> for EarlyEnd {
    fn from(outcome: Outcome) -> EarlyEnd {
        EarlyEnd::Attempt(Attempt::without_process(outcome).into())
    }
}
