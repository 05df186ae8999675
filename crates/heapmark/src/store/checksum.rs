//! A checksum as the last key of each document of the store: a changed byte becomes damage, never
//! another number.

/// Between a document and its checksum, and after it.
const FRONT: &str = ",\"crc\":\"";
const BACK: &str = "\"}";
const DIGITS: usize = 8;

/// The result of comparing a document with its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// No byte has changed.
    Whole,
    /// Some byte has changed.
    Broken,
    /// It has no checksum.
    Absent,
}

/// A JSON object with one more key, `crc`: the CRC-32 of everything before the comma in front of
/// it.
pub fn sealed(object: &str) -> String {
    let open = object.trim_end().strip_suffix('}').unwrap_or(object).trim_end();
    format!("{open}{}", end(open.as_bytes()))
}

/// Compares a document with its checksum.
pub(super) fn check(document: &[u8]) -> Seal {
    let document = document.trim_ascii_end();
    let end_at = document.len().checked_sub(FRONT.len() + DIGITS + BACK.len());
    match end_at.map(|at| document.split_at(at)) {
        Some((open, told)) if told.starts_with(FRONT.as_bytes()) => {
            if told == end(open).as_bytes() {
                Seal::Whole
            } else {
                Seal::Broken
            }
        }
        _ => Seal::Absent,
    }
}

fn end(open: &[u8]) -> String {
    format!("{FRONT}{}{BACK}", checksum(open))
}

/// The CRC-32 of these bytes, as the store writes it.
pub(super) fn checksum(bytes: &[u8]) -> String {
    format!("{:0DIGITS$x}", crc32fast::hash(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_a_key_like_any_other_and_the_one_that_everybody_computes() {
        // The output of `python3 -c 'import zlib; print(hex(zlib.crc32(b"{\"a\":1")))'`.
        assert_eq!(sealed("{\"a\":1}"), "{\"a\":1,\"crc\":\"a702fc6e\"}");
        let pretty: serde_json::Value = serde_json::from_str(&sealed("{\n  \"a\": 1\n}\n")).unwrap();
        assert_eq!((&pretty["a"], pretty["crc"].as_str().map(str::len)), (&1.into(), Some(8)));
        assert_eq!(check(b"{\"a\":1}"), Seal::Absent);
        assert_eq!(check(b""), Seal::Absent);
    }

    #[test]
    fn no_byte_can_change_without_being_seen() {
        let whole = sealed("{\"wall_ns\":1234,\"cell\":\"a\"}");
        assert_eq!(check(format!("{whole}\n").as_bytes()), Seal::Whole);
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                assert_ne!(check(&bytes), Seal::Whole, "bit {bit} of byte {place}");
            }
            assert_ne!(check(&whole.as_bytes()[..place]), Seal::Whole, "torn after {place} bytes");
        }
    }
}
