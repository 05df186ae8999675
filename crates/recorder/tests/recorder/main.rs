//! Programs under the recorder: they do what they do without it, and what they did is on record.

mod ends;
mod neighbours;
mod real_programs;
mod scenarios;
mod stacks;
mod support;
