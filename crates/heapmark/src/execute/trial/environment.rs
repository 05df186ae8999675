//! The user's environment, as their command gets it.

use std::ffi::OsString;

/// All of it but what is preloaded already: two allocators in one process would prove nothing.
pub(super) fn of_the_user() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD")
}
