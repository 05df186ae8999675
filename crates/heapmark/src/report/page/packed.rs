//! What only the script of the page reads, packed: a page is small enough to be mailed.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::deflate::compress_to_vec_zlib;
use std::sync::LazyLock;

/// A higher level takes several times as long and saves one part in a hundred.
const LEVEL: u8 = 6;

/// The plotting script, packed once for all pages.
pub static PLOTTING: LazyLock<String> = LazyLock::new(|| packed(&plotting_script()));

/// In the format that a browser's `DecompressionStream` calls `deflate`, as base64.
pub fn packed(text: &str) -> String {
    BASE64_STANDARD.encode(compress_to_vec_zlib(text.as_bytes(), LEVEL))
}

/// The script as its crate supplies it. The crate appends one for formulas, which no chart here
/// needs.
fn plotting_script() -> String {
    plotly::Plot::offline_js_sources()
        .split_once("</script>")
        .and_then(|(first, _)| first.split_once('>'))
        .map_or("", |(_, text)| text)
        .to_owned()
}
