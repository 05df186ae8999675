//! Documents as text: for a terminal, and as Markdown. Only these files, and those of the page, know
//! width, colour and what must be escaped.

mod markdown;
mod terminal;

pub use markdown::{escaped, markdown, row};
pub use terminal::terminal;
