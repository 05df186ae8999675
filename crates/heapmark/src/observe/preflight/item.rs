//! One property of the machine that results depend on: its fixed description, and what was found.

use serde::{Deserialize, Serialize};

/// The effect of a found value on results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// No effect.
    Fine,
    /// A part of what was measured: numbers hold for machines with the same setting. Or the machine
    /// does not report it.
    Note,
    /// Makes numbers vary, or mixes other effects into them.
    Warning,
}

impl ItemState {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            ItemState::Fine => "fine",
            ItemState::Note => "note",
            ItemState::Warning => "warning",
        }
    }
}

/// One line of the preflight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightItem {
    /// Short, unique; a heading of docs/REDUCING-NOISE.md.
    pub name: String,
    /// The found value; absent if the machine does not report it.
    pub found: Option<String>,
    /// The effect of the found value.
    pub state: ItemState,
    /// What the property can do to results, in one line.
    pub means: String,
    /// How to change it, in one line.
    pub change: String,
}

/// The fixed description of an item.
pub(super) struct ItemSubject {
    pub name: &'static str,
    pub means: &'static str,
    pub change: &'static str,
}

impl ItemSubject {
    /// An item with a found value and its state.
    pub fn found(&self, found: impl Into<String>, state: ItemState) -> PreflightItem {
        self.item(Some(found.into()), state)
    }

    /// An item that the machine does not report. What is unknown is not called fine.
    pub fn not_told(&self) -> PreflightItem {
        self.item(None, ItemState::Note)
    }

    /// `judge` returns the words and the state of a found value.
    pub fn judged<T>(
        &self,
        found: Option<T>,
        judge: impl FnOnce(T) -> (String, ItemState),
    ) -> PreflightItem {
        found.map(judge).map_or_else(
            || self.not_told(),
            |(found, state)| self.found(found, state),
        )
    }

    fn item(&self, found: Option<String>, state: ItemState) -> PreflightItem {
        let ItemSubject {
            name,
            means,
            change,
        } = self;
        PreflightItem {
            name: name.to_string(),
            found,
            state,
            means: means.to_string(),
            change: change.to_string(),
        }
    }
}

/// `warning` if `so`.
pub(super) fn warning_if(so: bool) -> ItemState {
    if so {
        ItemState::Warning
    } else {
        ItemState::Fine
    }
}

/// `note` if `so`.
pub(super) fn note_if(so: bool) -> ItemState {
    if so { ItemState::Note } else { ItemState::Fine }
}
