//! Documents as text: for a terminal, and as Markdown. Only these files, and those of the page, handle width, colour and escaping.

mod markdown;
mod terminal;

pub use markdown::{escaped, markdown, row};
pub use terminal::terminal;
