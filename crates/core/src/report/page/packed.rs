//! Packs what only the page's script reads, so that a page is small enough to be mailed.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::deflate::compress_to_vec_zlib;

/// The level of compression: a higher one takes several times as long and saves one part in a hundred.
const LEVEL: u8 = 6;

/// Packs a text in the format that a browser's `DecompressionStream` calls `deflate`, encoded as base64.
pub fn packed(text: &str) -> String {
    BASE64_STANDARD.encode(compress_to_vec_zlib(text.as_bytes(), LEVEL))
}
