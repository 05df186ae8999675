//! Duets: two processes that take turns on one CPU.

use clap::ValueEnum;
use heapmark_catalog::joined;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// How two processes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// The scheduler, which is asked for slices of this length (Linux 6.12 and newer); whatever else runs on that CPU ends them
    /// early
    Slices,
    /// heapmark, which stops one process and continues the other
    Stop,
}

/// Turns as the user asks for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// How the turns are made.
    pub by: Turns,
    /// Lengths of the turns in milliseconds, used one after the other from duet to duet.
    pub lengths_ms: Vec<u32>,
}

/// The lengths that are used unless others are asked for: longer turns are noisier, and in shorter ones the caches that are cold
/// when a turn begins weigh more.
pub const LENGTHS_MS: [u32; 2] = [10, 40];
/// CPU time in milliseconds after which a duet of a command ends, used by both sides together.
pub const ENOUGH_MS: u32 = 1500;
/// The longest turn in milliseconds: the kernel gives slices of at most 0.1 s.
const LONGEST_MS: u32 = 100;

impl FromStr for Asked {
    type Err = String;

    /// Parses `slices`, or `stop=20,80`.
    fn from_str(text: &str) -> Result<Asked, String> {
        let (by, lengths) = match text.split_once('=') {
            Some((by, lengths)) => (by, Some(lengths)),
            None => (text, None),
        };
        let by = Turns::from_str(by, false).map_err(|_| "expected slices or stop".to_owned())?;
        let length = |word: &str| match word.trim().parse() {
            Ok(ms @ 1..=LONGEST_MS) => Ok(ms),
            _ => Err(format!(
                "a turn of {word:?}: expected 1 to {LONGEST_MS}, in milliseconds"
            )),
        };
        match lengths {
            Some(words) => Ok(Asked {
                by,
                lengths_ms: words.split(',').map(length).collect::<Result<_, _>>()?,
            }),
            None => Ok(Asked::usual(by)),
        }
    }
}

impl fmt::Display for Asked {
    /// As the user asks for them.
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let by = self.by.to_possible_value();
        let by = by.as_ref().map_or("", |by| by.get_name());
        write!(formatter, "{by}={}", joined(&self.lengths_ms, ","))
    }
}

impl Asked {
    /// Returns turns of the usual lengths.
    fn usual(by: Turns) -> Asked {
        Asked {
            by,
            lengths_ms: LENGTHS_MS.to_vec(),
        }
    }
}

impl Default for Asked {
    fn default() -> Asked {
        Asked::usual(Turns::Stop)
    }
}

/// How the two processes of one duet take turns.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// How the turns are made.
    pub by: Turns,
    /// Length of one turn.
    pub length: Duration,
    /// Once both have used this much CPU time together, no further processes are started.
    pub enough: Duration,
}

impl Turns {
    /// Returns how turns are made, in words.
    pub fn words(self) -> &'static str {
        match self {
            Turns::Slices => "in slices of the scheduler",
            Turns::Stop => "stopped and continued",
        }
    }
}
