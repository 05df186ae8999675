//! One property of the machine that results depend on: its fixed description, and what was found.

use serde::{Deserialize, Serialize};

/// The effect of a found value on results.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// The value has no effect on results.
    Fine,
    /// The value is a part of what was measured: numbers hold for machines with the same setting. Or the machine does not report the value.
    Note,
    /// The value makes numbers vary, or mixes other effects into them.
    Warning,
}

impl ItemState {
    /// Returns the state as a word.
    pub fn word(self) -> &'static str {
        match self {
            ItemState::Fine => "fine",
            ItemState::Note => "note",
            ItemState::Warning => "warning",
        }
    }
}

/// A line of the preflight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreflightItem {
    /// The item's name, short and unique: a heading of docs/REDUCING-NOISE.md.
    pub name: String,
    /// The found value; absent if the machine does not report it.
    pub found: Option<String>,
    /// The effect of the found value.
    pub state: ItemState,
    /// What the property can do to results, in one line.
    pub means: String,
    /// How to change the property, in one line.
    pub change: String,
}

/// Makes an item from its name, its meaning, how to change it, and what was found. `judge` returns
/// the words and the state of a found value; an item that the machine does not report is a note,
/// since what is unknown is not called fine.
pub fn item<T, W: Into<String>>(
    name: &str,
    means: &str,
    change: &str,
    found: Option<T>,
    judge: impl FnOnce(T) -> (W, ItemState),
) -> PreflightItem {
    let (found, state) = found.map(judge).unzip();
    PreflightItem {
        name: name.into(),
        found: found.map(Into::into),
        state: state.unwrap_or(ItemState::Note),
        means: means.into(),
        change: change.into(),
    }
}

/// Returns `on` or `off`.
pub fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Returns `Warning` if `so`, otherwise `Fine`.
pub fn warning_if(so: bool) -> ItemState {
    if so {
        ItemState::Warning
    } else {
        ItemState::Fine
    }
}

/// Returns `Note` if `so`, otherwise `Fine`.
pub fn note_if(so: bool) -> ItemState {
    if so { ItemState::Note } else { ItemState::Fine }
}
