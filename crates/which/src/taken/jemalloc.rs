//! jemalloc's options: variables `opt_NAME` with some prefix, whose names only a library that is
//! not stripped has.

use super::{Mapped, Values};
use crate::settings::jemalloc::{OPTIONS, OptionKind};
use object::{Object, ObjectSymbol};

/// The options of a mapped object that are numbers or booleans; or why they are not known.
pub fn values(object: &Mapped) -> Result<Values, String> {
    let mut values = Values::new();
    for symbol in object.elf.symbols().filter(|symbol| symbol.is_definition()) {
        let Ok(name) = symbol.name() else { continue };
        let Some(at) = name.find("opt_") else {
            continue;
        };
        let (prefix, option) = (&name[..at], &name[at + 4..]);
        let Some((_, kind, _)) = OPTIONS.iter().find(|(known, _, _)| *known == option) else {
            continue;
        };
        let is_own = prefix.is_empty() || prefix.ends_with("je_");
        // A symbol whose size is not that of the option's type is something else.
        let size = match kind {
            OptionKind::Bool => 1,
            OptionKind::U32(..) => 4,
            OptionKind::U64(..) | OptionKind::Signed(..) => 8,
            _ => continue,
        };
        if !is_own || symbol.size() != size {
            continue;
        }
        let Some(mut bytes) = object.at(symbol.address(), size as usize) else {
            continue;
        };
        bytes.resize(8, 0);
        let number = u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let value = match kind {
            OptionKind::Bool => (number != 0).to_string(),
            OptionKind::Signed(..) => (number as i64).to_string(),
            _ => number.to_string(),
        };
        values.insert(option.to_owned(), value);
    }
    if values.is_empty() {
        return Err("stripped: the places of jemalloc's options are not known".into());
    }
    Ok(values)
}

/// The settings for jemalloc that a program has compiled in: the text to which the variable
/// `malloc_conf` points.
pub fn compiled_in(object: &Mapped) -> Option<String> {
    const LONGEST: usize = 4096;
    let all = object.elf.symbols().chain(object.elf.dynamic_symbols());
    let is_it = |symbol: &object::read::elf::ElfSymbol64| {
        let names = ["malloc_conf", "je_malloc_conf", "_rjem_malloc_conf"];
        symbol.is_definition() && symbol.name().is_ok_and(|name| names.contains(&name))
    };
    let symbol = all.into_iter().find(is_it)?;
    let pointer =
        super::word(&object.at(symbol.address(), 8)?, 0).filter(|address| *address != 0)?;
    // The string may end just before a page that is not mapped.
    let sizes = [LONGEST, 256, 32];
    let bytes = sizes
        .iter()
        .find_map(|size| object.memory.bytes(pointer, *size))?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    (!text.is_empty()).then_some(text)
}
