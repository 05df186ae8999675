//! The command line as a whole: the list of commands, with those of the features, and the commands that all features
//! have a part in.

mod command_line;
mod completions;
mod flags;
mod help;
mod list;
mod man;
mod report;

pub use command_line::{definition, run};
