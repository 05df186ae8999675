//! What the system itself preloads into every process, which can be why another library serves a process.

use crate::observe::Root;
use crate::observe::preflight::preloaded_everywhere;

/// A sentence about what the system preloads, to follow another one; empty if it preloads nothing.
pub fn by_system() -> String {
    let all = preloaded_everywhere(&Root::machine());
    match all[..] {
        [] => String::new(),
        _ => format!(
            ". /etc/ld.so.preload puts {} into every process: heapmark doctor says how to change it",
            all.join(", ")
        ),
    }
}
