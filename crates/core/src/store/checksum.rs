//! A checksum as the last key of each document of the store: a changed byte becomes damage, never
//! another number.

/// The text between a document and its checksum, and the text after the checksum.
const FRONT: &str = ",\"crc\":\"";
const BACK: &str = "\"}";
const DIGITS: usize = 8;

/// Returns a JSON object with one more key, `crc`: the CRC-32 of everything before the comma in
/// front of it.
pub fn sealed(object: &str) -> String {
    let open = object
        .trim_end()
        .strip_suffix('}')
        .unwrap_or(object)
        .trim_end();
    format!("{open}{}", end(open.as_bytes()))
}

/// Returns whether a document ends with the checksum of the rest.
pub fn is_intact(document: &[u8]) -> bool {
    let document = document.trim_ascii_end();
    let length = FRONT.len() + DIGITS + BACK.len();
    document.len() >= length && {
        let (open, seal) = document.split_at(document.len() - length);
        seal == end(open).as_bytes()
    }
}

fn end(open: &[u8]) -> String {
    format!("{FRONT}{}{BACK}", checksum(open))
}

/// Returns the CRC-32 of these bytes, as the store writes it.
pub fn checksum(bytes: &[u8]) -> String {
    format!("{:0DIGITS$x}", crc32fast::hash(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_a_key_like_any_other_and_the_usual_one() {
        // The output of `python3 -c 'import zlib; print(hex(zlib.crc32(b"{\"a\":1")))'`.
        assert_eq!(sealed("{\"a\":1}"), "{\"a\":1,\"crc\":\"a702fc6e\"}");
        let pretty: serde_json::Value =
            serde_json::from_str(&sealed("{\n  \"a\": 1\n}\n")).unwrap();
        assert_eq!(
            (&pretty["a"], pretty["crc"].as_str().map(str::len)),
            (&1.into(), Some(8))
        );
        assert!(!is_intact(b"{\"a\":1}") && !is_intact(b""));
    }

    #[test]
    fn no_byte_can_change_without_being_seen() {
        let whole = sealed("{\"wall_ns\":1234,\"cell\":\"a\"}");
        assert!(is_intact(format!("{whole}\n").as_bytes()));
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                assert!(!is_intact(&bytes), "bit {bit} of byte {place}");
            }
            assert!(
                !is_intact(&whole.as_bytes()[..place]),
                "torn after {place} bytes"
            );
        }
    }
}
