//! The compiler flags of the libraries that heapmark builds, beside their authors' own.

use crate::build::flags::{Difference, flags, for_all};
use crate::catalog::Allocator;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One paragraph for each library.
pub fn text(allocators: &[Allocator]) -> String {
    let mut out = format!("all: {}\n", for_all().collect::<Vec<_>>().join(" "));
    out.push_str("Warnings, dialects, paths and debug information are left out; a later flag of its kind counts.\n");
    for allocator in allocators {
        let Some(flags) = flags(allocator) else {
            continue;
        };
        let _ = writeln!(out, "\n{}", allocator.name);
        let ours = if flags.ours.is_empty() {
            "-"
        } else {
            &flags.ours.join(" ")
        };
        let _ = writeln!(out, "  ours      {ours}");
        for (place, theirs) in &flags.upstream {
            let _ = writeln!(out, "  upstream  {}  ({place})", theirs.join(" "));
        }
        let mut by_reason: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
        for Difference {
            flag,
            is_ours,
            reason,
        } in &flags.differences
        {
            by_reason
                .entry((*is_ours, reason.unwrap_or("no reason is known")))
                .or_default()
                .push(flag);
        }
        for ((is_ours, reason), flags) in by_reason {
            let whose = if is_ours { "only ours" } else { "not ours " };
            let _ = writeln!(out, "  {whose} {}: {reason}", flags.join(" "));
        }
    }
    out
}
