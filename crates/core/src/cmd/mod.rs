//! One file per command: each reads flags, calls the stages and prints. Commands neither judge nor measure.

/// Like the function `say`, with the arguments of `format!`.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::cmd::say(format!($($words)*)) };
}

/// Ends a function with a usage error, as `bail!` does with other errors.
#[macro_export]
macro_rules! refuse {
    ($($words:tt)*) => { return Err($crate::cmd::Usage(format!($($words)*)).into()) };
}

#[doc(hidden)]
pub mod build;
mod cargo_flags;
mod catalogue;
#[doc(hidden)]
pub mod clean;
#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod doctor;
mod exit;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod fetch;
#[doc(hidden)]
pub mod long;
#[doc(hidden)]
pub mod noise;
#[doc(hidden)]
pub mod open;
#[doc(hidden)]
pub mod output;
mod own_values;
#[doc(hidden)]
pub mod page;
mod piped_input;
#[doc(hidden)]
pub mod replay;
#[doc(hidden)]
pub mod run;
mod runs;
#[doc(hidden)]
pub mod selftest;
#[doc(hidden)]
pub mod show;
pub mod signals;
pub mod surroundings;
mod terminal;
#[doc(hidden)]
pub mod try_command;
mod variants;

pub use catalogue::{catalog, described_machine, told_version, unexpected};
pub use exit::{EXIT_CODES, Exit, Usage, in_file, parsed, usage};
pub use page::add_to_pages;
pub use runs::{find_runs, say_damage};
pub use surroundings::refuse_few_files;
pub use terminal::{Manner, note, print, print_json, say, screen, width_of};

use exit::is_of_disk;
use terminal::{is_quiet, screen_of};
