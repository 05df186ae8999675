//! mimalloc's options: an array of value, state, number, name and perhaps a former name, found by
//! the pointers to the names, which are strings in mimalloc's file.

use super::{Mapped, Values, half, word};
use memchr::memmem;

/// The name of the first option in all versions.
const FIRST: &[u8] = b"\0show_errors\0";
/// States of an option: not yet read from the environment, or set. State 1 is an option that keeps
/// its default.
const UNREAD: u32 = 0;
const SET: u32 = 2;
/// The distance from the start of an option to its name.
const NAME_AT: usize = 16;
/// A number of options that no version reaches.
const MOST: usize = 200;

/// The options of a mimalloc.
pub struct Options {
    /// The names of the options, including former names.
    pub names: Vec<String>,
    /// The values of the options that were set.
    pub values: Values,
    /// Whether some options have not been read from the environment yet.
    pub is_unread: bool,
}

/// The options of a mapped object; or why they are not known.
pub fn options(object: &Mapped) -> Result<Options, String> {
    let why = || "mimalloc's table of options was not recognised".to_owned();
    let at = memmem::find(object.data, FIRST).ok_or_else(why)? + 1;
    let address = object.address_of(at).ok_or_else(why)?;
    for (_, bytes) in object.mapped() {
        for place in memmem::find_iter(&bytes, &address.to_ne_bytes()) {
            if place % 8 == 0
                && place >= NAME_AT
                && let Some(options) = read(object, &bytes, place - NAME_AT)
            {
                return Ok(options);
            }
        }
    }
    Err(why())
}

fn read(object: &Mapped, bytes: &[u8], start: usize) -> Option<Options> {
    let number = |at: usize| half(bytes, at + 12);
    // The size of an option with a former name, or without one.
    let size = [32, 24]
        .into_iter()
        .find(|size| number(start) == Some(0) && number(start + size) == Some(1))?;
    let mut options = Options {
        names: Vec::new(),
        values: Values::new(),
        is_unread: false,
    };
    for place in 0..MOST {
        let at = start + place * size;
        let state = half(bytes, at + 8).filter(|state| *state <= SET);
        let name = word(bytes, at + NAME_AT).and_then(|address| object.name(address));
        let (Some(state), Some(name)) = (state, name) else {
            break;
        };
        if number(at) != Some(place as u32) {
            break;
        }
        options.is_unread |= state == UNREAD;
        let former = (size == 32).then(|| word(bytes, at + 24)).flatten();
        let former = former.and_then(|address| object.name(address));
        for name in former.into_iter().chain([name]) {
            if state == SET {
                let value = word(bytes, at).unwrap_or(0) as i64;
                options.values.insert(name.clone(), value.to_string());
            }
            options.names.push(name);
        }
    }
    (!options.names.is_empty()).then_some(options)
}

impl Mapped<'_, '_> {
    /// The process's address of a place in the file.
    fn address_of(&self, place: usize) -> Option<u64> {
        let place = place as u64;
        let holds = |mapping: &&heapmark_core::execute::reach::Mapping| {
            (mapping.offset..mapping.offset + (mapping.end - mapping.start)).contains(&place)
        };
        let mapping = self.mappings.iter().find(holds)?;
        Some(mapping.start + (place - mapping.offset))
    }

    /// The name of an option at an address: lower-case letters, digits and underscores.
    fn name(&self, address: u64) -> Option<String> {
        const LONGEST: usize = 64;
        let bytes = self.memory.bytes(address, LONGEST)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let is_part =
            |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
        let name = &bytes[..end];
        (end > 0 && name.iter().all(is_part)).then(|| String::from_utf8_lossy(name).into_owned())
    }
}
