//! Programs under the recorder: they behave as without it, and their calls are recorded.

mod ends;
mod neighbours;
mod real_programs;
mod scenarios;
mod stacks;
mod support;
