//! Compares a library with its catalogue entry. A library that heapmark builds is kept only if it
//! passes: libc would silently serve a function that is missing by mistake.

use super::inspect::Inspection;
use heapmark_catalog::allocator::{Allocator, Recipe};
use heapmark_catalog::malloc_api;

/// Returns a fault for each function that the library neither defines nor explains, and for each
/// function that it defines although the function is in `left-to-libc`.
pub fn completeness(
    allocator: &Allocator,
    exports: &std::collections::BTreeSet<String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for name in malloc_api::required() {
        match (
            exports.contains(name),
            allocator.left_to_libc.contains_key(name),
        ) {
            (false, false) => faults.push(format!(
                "it does not define {name}; if that is so by nature, say why in `left-to-libc`"
            )),
            (true, true) => faults.push(format!("it defines {name}, which `left-to-libc` denies")),
            _ => {}
        }
    }
    faults
}

/// Returns a fault for each name that the library exports although the name is neither in the
/// malloc family nor in the recipe's `exports`, and for each pattern in `exports` without a match.
pub fn purity(recipe: &Recipe, inspection: &Inspection) -> Vec<String> {
    let allowed = |name: &&String| {
        recipe
            .exports
            .iter()
            .any(|pattern| malloc_api::matches(pattern, name))
    };
    let mut faults: Vec<String> = inspection
        .others
        .iter()
        .filter(|name| !allowed(name))
        .map(|name| format!("it exports {name}; add it to `exports` if it is a control function"))
        .collect();
    for pattern in &recipe.exports {
        if !inspection
            .others
            .iter()
            .any(|name| malloc_api::matches(pattern, name))
        {
            faults.push(format!(
                "nothing it exports matches `{pattern}` in `exports`"
            ));
        }
    }
    faults
}
