//! The screen that a text is for.

use crate::observe::preflight::ItemState;

/// The properties of the output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns of characters in a line.
    pub width: usize,
    /// Whether escape sequences are allowed.
    pub colour: bool,
}

pub(super) const BOLD: &str = "1";
pub(super) const RED: &str = "31";
pub(super) const YELLOW: &str = "33";

impl Screen {
    /// A heading in the colour of its state.
    pub(super) fn heading(&self, state: ItemState, text: &str) -> String {
        self.paint(
            if state == ItemState::Warning {
                YELLOW
            } else {
                BOLD
            },
            text,
        )
    }

    /// Text in a colour, if the screen has any.
    pub(super) fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
