//! One thing of the machine that results depend on: what is always said of it, and what was found.

use serde::{Deserialize, Serialize};

/// What a found value does to results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Nothing to say.
    Fine,
    /// A part of what was measured: numbers hold for machines that are set up like this. Or it is not told.
    Note,
    /// Makes numbers wander, or mixes something else into them.
    Warning,
}

impl State {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            State::Fine => "fine",
            State::Note => "note",
            State::Warning => "warning",
        }
    }
}

/// One line of the preflight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Short, unique; a heading of docs/REDUCING-NOISE.md.
    pub name: String,
    /// What the machine told; absent where it does not tell.
    pub found: Option<String>,
    /// What that does to results.
    pub state: State,
    /// What it can do to results, in one line.
    pub means: String,
    /// How to change it, in one line.
    pub change: String,
}

/// What is said of an item whatever is found.
pub(super) struct Subject {
    pub name: &'static str,
    pub means: &'static str,
    pub change: &'static str,
}

impl Subject {
    /// Found, and how it is judged.
    pub fn found(&self, found: impl Into<String>, state: State) -> Item {
        self.item(Some(found.into()), state)
    }

    /// Not told by the machine. What is not known is not called fine.
    pub fn not_told(&self) -> Item {
        self.item(None, State::Note)
    }

    /// `judge` says of what was found which words and state it has.
    pub fn judged<T>(&self, found: Option<T>, judge: impl FnOnce(T) -> (String, State)) -> Item {
        found.map(judge).map_or_else(|| self.not_told(), |(found, state)| self.found(found, state))
    }

    fn item(&self, found: Option<String>, state: State) -> Item {
        let Subject { name, means, change } = self;
        Item { name: name.to_string(), found, state, means: means.to_string(), change: change.to_string() }
    }
}

/// `warning` where something is so.
pub(super) fn warning_if(so: bool) -> State {
    if so { State::Warning } else { State::Fine }
}

/// `note` where something is so.
pub(super) fn note_if(so: bool) -> State {
    if so { State::Note } else { State::Fine }
}
