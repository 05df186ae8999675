//! What a run consists of.

use crate::build::CompiledTrace;
use crate::execute::{Program, Subject};
use crate::file::Draft;
use crate::plan::{CommandVariant, Plan};
use anyhow::{Result, anyhow};

/// The plan of a run, and all that it names.
#[derive(Default)]
pub struct Selection {
    /// What is measured, how often and in which order.
    pub plan: Plan,
    /// The allocators, in the order of `plan.allocators`, then the baseline's copy and the floor.
    pub subjects: Vec<Subject>,
    /// Allocators that rows of programs always run under, whatever the run compares.
    pub pinned: Vec<Subject>,
    /// The programs that the plan's cases name.
    pub programs: Vec<Program>,
    /// Seconds that a process may take, if the user set a timeout.
    pub timeout_s: Option<f64>,
    /// The compiled traces of the cases that replay one: held, so that they are not removed meanwhile.
    pub compiled_traces: Vec<CompiledTrace>,
    /// The folder in which real programs work: removed with the selection.
    pub scratch: Option<Draft>,
    /// Name of the suite.
    pub suite: String,
    /// Name of the preset.
    pub preset: String,
    /// The thread counts that the user gave, as typed.
    pub threads: Vec<String>,
    /// The parameters that the user set: `larson.chunks=100`.
    pub set: Vec<String>,
}

impl Selection {
    /// The allocator of a row.
    pub fn subject(&self, name: &str) -> Result<&Subject> {
        let found = self
            .subjects
            .iter()
            .chain(&self.pinned)
            .find(|subject| subject.allocator.name == name);
        found.ok_or_else(|| anyhow!("the plan names `{name}`, which this run does not have"))
    }

    /// The row of a variant of the command under the baseline's allocator.
    pub fn row_of(&self, variant: &CommandVariant) -> Result<&Subject> {
        let baseline = self.subject(&self.plan.baseline)?;
        let first = baseline.variant.as_deref().unwrap_or_default();
        let allocator = baseline.allocator.name.strip_prefix(first);
        self.subject(&format!(
            "{}{}",
            variant.name,
            allocator.unwrap_or_default()
        ))
    }

    /// The program of a row.
    pub fn program(&self, name: &str) -> Result<&Program> {
        self.programs
            .iter()
            .find(|program| program.name == name)
            .ok_or_else(|| anyhow!("the plan names `{name}`, which this run does not have"))
    }
}
