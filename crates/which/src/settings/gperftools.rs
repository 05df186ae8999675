//! The variables `TCMALLOC_*` of gperftools, as `base/commandlineflags.h` reads them. gperftools
//! does not report names that it does not know, and for a value that is no number it takes what
//! `strtol` finds.

use super::number::leading;
use super::{Judged, Setting};

/// The kind of a variable's value.
#[derive(Clone, Copy, PartialEq)]
pub enum VariableKind {
    /// True if the value begins with one of `tTyY1`, or is empty.
    Bool,
    /// A number as `strtol` reads it: 0 if there is no digit.
    Int,
    /// A number as `strtod` reads it.
    Double,
    /// Any text.
    Text,
}

/// The variables of 2.10 to 2.17, without `TCMALLOC_`.
pub const VARIABLES: [(&str, VariableKind); 17] = [
    ("SAMPLE_PARAMETER", VariableKind::Int),
    ("RELEASE_RATE", VariableKind::Double),
    ("LARGE_ALLOC_REPORT_THRESHOLD", VariableKind::Int),
    ("MAX_TOTAL_THREAD_CACHE_BYTES", VariableKind::Int),
    ("PER_THREAD_CACHE_SIZE_BYTES", VariableKind::Int),
    ("TRANSFER_NUM_OBJ", VariableKind::Int),
    ("AGGRESSIVE_DECOMMIT", VariableKind::Bool),
    ("HEAP_LIMIT_MB", VariableKind::Int),
    ("SKIP_MMAP", VariableKind::Bool),
    ("SKIP_SBRK", VariableKind::Bool),
    ("DEVMEM_START", VariableKind::Int),
    ("DEVMEM_LIMIT", VariableKind::Int),
    ("DISABLE_MEMORY_RELEASE", VariableKind::Bool),
    ("MEMFS_MALLOC_PATH", VariableKind::Text),
    ("MEMFS_LIMIT_MB", VariableKind::Int),
    ("ENABLE_SIZED_DELETE", VariableKind::Bool),
    ("OVERRIDE_PAGESIZE", VariableKind::Int),
];

/// Judges a variable; `is_in_file` says whether the library's file contains a name.
pub fn variable(name: &str, value: &str, is_in_file: impl Fn(&str) -> bool) -> Setting {
    let known = name.strip_prefix("TCMALLOC_").unwrap_or(name);
    let kind = VARIABLES
        .iter()
        .find_map(|(name, kind)| (*name == known).then_some(*kind));
    let judged = match kind {
        _ if !is_in_file(name) => {
            Judged::Ignored("this tcmalloc has no variable of that name, and says nothing".into())
        }
        Some(kind) => Judged::Accepted(kind.read(value)),
        None => Judged::NotKnown("how it reads the value is not known".into()),
    };
    Setting::new(name, value, judged)
}

impl VariableKind {
    fn read(self, value: &str) -> String {
        match self {
            VariableKind::Bool => {
                let is_set = value.is_empty() || value.starts_with(['t', 'T', 'y', 'Y', '1']);
                is_set.to_string()
            }
            VariableKind::Int => leading(value, 10)
                .map_or(0, |number| number.value as i64)
                .to_string(),
            VariableKind::Double => {
                let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
                let text: String = value
                    .trim_start()
                    .chars()
                    .take_while(|c| is_part(*c))
                    .collect();
                text.parse().unwrap_or(0.0_f64).to_string()
            }
            VariableKind::Text => value.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_none_is_taken_as_what_is_read_of_it() {
        let judged = |name, value| variable(name, value, |name| name != "TCMALLOC_RELEASE").judged;
        assert_eq!(
            judged("TCMALLOC_RELEASE_RATE", "x"),
            Judged::Accepted("0".into())
        );
        assert_eq!(
            judged("TCMALLOC_RELEASE_RATE", "2.50"),
            Judged::Accepted("2.5".into())
        );
        assert_eq!(
            judged("TCMALLOC_HEAP_LIMIT_MB", "12G"),
            Judged::Accepted("12".into())
        );
        assert_eq!(
            judged("TCMALLOC_SKIP_SBRK", "on"),
            Judged::Accepted("false".into())
        );
        assert!(matches!(
            judged("TCMALLOC_RELEASE", "1"),
            Judged::Ignored(_)
        ));
        assert!(matches!(judged("TCMALLOC_OTHER", "1"), Judged::NotKnown(_)));
    }
}
