//! Libraries that the dynamic linker preloads into every program.

use super::Root;
use super::item::{PreflightItem, item, warning_if};

const FILE: &str = "etc/ld.so.preload";

pub fn items(root: &Root) -> Vec<PreflightItem> {
    // Most machines have no such file; a folder of copies may just lack it.
    let is_told = root.planted().is_none() || root.path(FILE).exists();
    vec![item(
        "ld-so-preload",
        "libraries in every process, before those of a row: one that defines malloc serves in place of the row's allocator",
        "sudo mv /etc/ld.so.preload /etc/ld.so.preload.off",
        is_told.then(|| preloaded_everywhere(root)),
        |all| {
            let words = match all[..] {
                [] => "none".into(),
                _ => all.join(", "),
            };
            (words, warning_if(!all.is_empty()))
        },
    )]
}

/// Returns the libraries that `/etc/ld.so.preload` names.
pub fn preloaded_everywhere(root: &Root) -> Vec<String> {
    let text = root.text(FILE).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split('#').next());
    let names = lines.flat_map(|line| line.split([' ', '\t', ':']));
    names
        .filter(|name| !name.is_empty())
        .map(String::from)
        .collect()
}
