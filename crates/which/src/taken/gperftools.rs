//! The flags of gperftools: exported variables whose names tell their purpose and their type.

use super::{Mapped, Values, word};
use crate::settings::gperftools::VARIABLES;
use object::{Object, ObjectSymbol};

/// The flags of a mapped object, by the names of their environment variables; or why they are not
/// known.
pub fn values(object: &Mapped) -> Result<Values, String> {
    let mut values = Values::new();
    for symbol in object
        .elf
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition())
    {
        let Ok(name) = symbol.name() else { continue };
        let Some((kind, flag)) = flag(name) else {
            continue;
        };
        let Some(bytes) = object.at(symbol.address(), 8) else {
            continue;
        };
        let value = match kind {
            FlagKind::Bool => (bytes[0] != 0).to_string(),
            FlagKind::Int => (word(&bytes, 0).unwrap_or(0) as i64).to_string(),
            FlagKind::Double => f64::from_bits(word(&bytes, 0).unwrap_or(0)).to_string(),
        };
        values.insert(flag, value);
    }
    if values.is_empty() {
        return Err("it exports no flags of gperftools".into());
    }
    Ok(values)
}

#[derive(Clone, Copy)]
enum FlagKind {
    Bool,
    Int,
    Double,
}

/// The environment variable that a symbol stands for: `TCMALLOC_RELEASE_RATE` for
/// `…DECLARE_double_instead27FLAGS_tcmalloc_release_rateE`.
fn flag(symbol: &str) -> Option<(FlagKind, String)> {
    // The symbol is a member of a class that holds this size, not a flag.
    if symbol.ends_with("overall_thread_cache_size_E") {
        return Some((
            FlagKind::Int,
            "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES".into(),
        ));
    }
    let (kind, name) = symbol.split_once("FLAGS_")?;
    let kind = match () {
        () if kind.contains("DECLARE_bool_") => FlagKind::Bool,
        () if kind.contains("DECLARE_int64_") => FlagKind::Int,
        () if kind.contains("DECLARE_double_") => FlagKind::Double,
        () => return None,
    };
    let name = name.strip_suffix('E')?.to_ascii_uppercase();
    let name = name
        .strip_prefix("TCMALLOC_")
        .or(name.strip_prefix("MALLOC_"))?;
    let is_known = VARIABLES.iter().any(|(known, _)| *known == name);
    is_known.then(|| (kind, format!("TCMALLOC_{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_known_by_its_symbol() {
        let start = "_ZN62FLAG__namespace_do_not_use_directly_use_DECLARE_";
        let of = |rest: &str| flag(&format!("{start}{rest}")).map(|(_, name)| name);
        let name = of("double_instead27FLAGS_tcmalloc_release_rateE");
        assert_eq!(name.as_deref(), Some("TCMALLOC_RELEASE_RATE"));
        let name = of("bool_instead22FLAGS_malloc_skip_sbrkE");
        assert_eq!(name.as_deref(), Some("TCMALLOC_SKIP_SBRK"));
        // The flag's negation, which nothing reads.
        assert_eq!(of("double_instead29FLAGS_notcmalloc_release_rateE"), None);
    }
}
