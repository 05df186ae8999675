//! The compiler flags of the libraries that heapmark builds, beside the flags that their authors use.

use super::text::join;
use crate::build::flags::{flags, for_all};
use crate::catalog::Allocator;
use std::collections::BTreeMap;

/// One paragraph for each library.
pub fn text(allocators: &[Allocator]) -> String {
    let mut out = format!(
        "all: {}\nWarnings, dialects, paths and debug information are left out; a later flag of its kind counts.\n",
        join(for_all(), " ")
    );
    for allocator in allocators {
        let Some(flags) = flags(allocator) else {
            continue;
        };
        let ours = match flags.ours.join(" ") {
            none if none.is_empty() => "-".into(),
            ours => ours,
        };
        out += &format!("\n{}\n  ours      {ours}\n", allocator.name);
        for (place, theirs) in &flags.upstream {
            out += &format!("  upstream  {}  ({place})\n", theirs.join(" "));
        }
        let mut by_reason: BTreeMap<_, Vec<&str>> = BTreeMap::new();
        for difference in &flags.differences {
            let reason = difference.reason.unwrap_or("no reason is known");
            by_reason
                .entry((difference.is_ours, reason))
                .or_default()
                .push(difference.flag);
        }
        for ((is_ours, reason), flags) in by_reason {
            let whose = if is_ours { "only ours" } else { "not ours " };
            out += &format!("  {whose} {}: {reason}\n", flags.join(" "));
        }
    }
    out
}
