//! Why a step of a measurement has no value.

use super::{Attempt, Outcome};
use anyhow::Result;

/// Ends a measurement before its last step.
pub enum EarlyEnd {
    /// `stop` was set.
    Stopped,
    /// This is the result of the measurement.
    Attempt(Box<Attempt>),
    /// An error of heapmark itself.
    Error(anyhow::Error),
}

/// The value of a step, unless the measurement ends with it.
pub type StepResult<T> = Result<T, EarlyEnd>;

impl EarlyEnd {
    /// The result of all steps; `None` if `stop` was set.
    pub(super) fn settle(attempt: StepResult<Attempt>) -> Result<Option<Attempt>> {
        match attempt {
            Ok(attempt) => Ok(Some(attempt)),
            Err(EarlyEnd::Attempt(attempt)) => Ok(Some(*attempt)),
            Err(EarlyEnd::Stopped) => Ok(None),
            Err(EarlyEnd::Error(error)) => Err(error),
        }
    }
}

impl From<anyhow::Error> for EarlyEnd {
    fn from(error: anyhow::Error) -> EarlyEnd {
        EarlyEnd::Error(error)
    }
}

impl From<Attempt> for EarlyEnd {
    fn from(attempt: Attempt) -> EarlyEnd {
        EarlyEnd::Attempt(Box::new(attempt))
    }
}

/// Without a process.
impl From<Outcome> for EarlyEnd {
    fn from(outcome: Outcome) -> EarlyEnd {
        Attempt::without_process(outcome).into()
    }
}
