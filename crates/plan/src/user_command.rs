//! A user's command and how it is run: everything that is needed to resume a run.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The command that every allocator runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UserCommand {
    /// The command: an absolute path, then its arguments.
    pub command: Vec<String>,
    /// Hashes of the command's files: of a script and its interpreter, or of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sha256: Vec<String>,
    /// The folder in which the command starts.
    pub folder: PathBuf,
    /// The file that the command gets as standard input, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<PathBuf>,
    /// The hash of that file; `None` if it is no regular file, which may have no end, and in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_sha256: Option<String>,
    /// What heapmark's own stdin held, if the command gets that as standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piped: Option<PipedInput>,
    /// A command line that `sh` runs before each process, and that is not timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// Warm-up processes of each allocator before its check, without results.
    #[serde(default)]
    pub warmup: u32,
    /// Whether each process must print what the baseline prints.
    #[serde(default)]
    pub check_output: bool,
    /// The exit code that the command should return, if not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_exit: Option<i32>,
    /// Whether the command may execute other programs under other allocators, and its processes may end otherwise.
    #[serde(default)]
    pub tree_may_differ: bool,
    /// The user's variables that configure allocators.
    #[serde(default)]
    pub settings: heapmark_catalog::Settings,
    /// Variables that were set, and the parts of them that were removed.
    #[serde(default)]
    pub taken_out: std::collections::BTreeMap<String, String>,
    /// The client that drives the command, if the command is a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Client>,
    /// Builds or settings of the command that are rows, the baseline's first; none if every row runs `command`. `command`
    /// is that of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<CommandVariant>,
    /// Numbers that the command reports about itself; the first is judged in place of its time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<super::OwnValue>,
    /// What belongs to a program of the catalogue. A user's command runs with the user's own files and variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real: Option<RealCommand>,
}

/// A build of the command, or a setting of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandVariant {
    /// The variant's name in the tables.
    pub name: String,
    /// The command: an absolute path, then its arguments.
    pub command: Vec<String>,
    /// The file of the variant's program.
    pub program: PathBuf,
    /// Hashes of the variant's files, as in [`UserCommand::sha256`].
    pub sha256: Vec<String>,
    /// The variant's variables.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub environment: std::collections::BTreeMap<String, String>,
    /// Why nothing can be preloaded into the variant, so that it cannot report what serves its memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent: Option<String>,
    /// What serves the variant's memory, according to its file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<String>,
}

/// What was piped or redirected into heapmark.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PipedInput {
    /// The input's size in bytes.
    pub bytes: u64,
    /// The SHA-256 of the input.
    pub sha256: String,
    /// An unnamed file that holds the input; `None` in a run that was read from disk.
    #[serde(skip)]
    pub file: Option<Arc<File>>,
}

/// What belongs to a real program of the catalogue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealCommand {
    /// The command's input in the cache, of which `folder` is a copy.
    pub input: PathBuf,
    /// A hash of everything that the input depends on.
    pub key: String,
    /// Whether each process gets a new copy of the input.
    pub changes_input: bool,
    /// All environment variables of the program.
    pub environment: std::collections::BTreeMap<String, String>,
    /// A command that prints a digest of what the program wrote; empty if the output is not compared.
    #[serde(default)]
    pub digest: Vec<String>,
}

/// The client of a server. Runs under no allocator but its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Client {
    /// The client, started once the server answers: an absolute path, then its arguments.
    pub command: Vec<String>,
    /// Hashes of the client's files, as in [`UserCommand::sha256`]; none if they cannot be read, and in older runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sha256: Vec<String>,
    /// Where the server answers.
    #[serde(flatten)]
    pub ready: Ready,
    /// How long the server of a check is watched after its load, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_ns: Option<u64>,
}

/// Where a server answers, on this machine, or that it answers nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// A port of this machine.
    Port(u16),
    /// A Unix socket, by an absolute path.
    Socket(PathBuf),
    /// Nowhere: the client begins as soon as the server has been started.
    Started,
}

impl Default for Ready {
    fn default() -> Ready {
        Ready::Port(0)
    }
}

impl std::fmt::Display for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ready::Port(port) => write!(f, "port {port}"),
            Ready::Socket(path) => write!(f, "socket {}", path.display()),
            Ready::Started => f.write_str("its start"),
        }
    }
}

impl Ready {
    /// Returns the same place, with an absolute path if it is a socket.
    pub fn below(self, folder: &Path) -> Ready {
        match self {
            Ready::Port(_) | Ready::Started => self,
            Ready::Socket(path) => Ready::Socket(folder.join(path)),
        }
    }
}

/// Placeholder for the side of a duet in a command, so that its two processes need not share a file.
const SIDE: &str = "{side}";

impl UserCommand {
    /// Returns whether two processes of the command may take turns on one CPU: a server's client would wait, a program that changes its
    /// input changes the other side's, and a preparation is for one process only, unless it is told for which side.
    pub fn may_take_turns(&self) -> bool {
        let prepares_for_one = |line: &String| !line.contains(SIDE);
        self.client.is_none()
            && !self.real.as_ref().is_some_and(|real| real.changes_input)
            && self.values.is_empty()
            && !self.prepare.as_ref().is_some_and(prepares_for_one)
    }

    /// Returns whether the command contains the placeholder for the side of a duet.
    pub fn names_sides(&self) -> bool {
        let mut all = self.command.iter().chain(&self.prepare);
        all.any(|words| words.contains(SIDE))
    }

    /// Returns the command as this side, 0 or 1, runs it.
    pub fn as_side(&self, side: usize) -> UserCommand {
        let of_side = |words: &String| words.replace(SIDE, &side.to_string());
        UserCommand {
            command: self.command.iter().map(of_side).collect(),
            prepare: self.prepare.as_ref().map(of_side),
            ..self.clone()
        }
    }

    /// Returns the variant of this name.
    pub fn variant(&self, name: Option<&str>) -> Option<&CommandVariant> {
        let mut all = self.variants.iter();
        all.find(|variant| name == Some(&variant.name))
    }

    /// Returns the command as this variant runs it.
    pub fn as_variant(&self, variant: Option<&CommandVariant>) -> UserCommand {
        let command = variant.map_or(&self.command, |variant| &variant.command);
        UserCommand {
            command: command.clone(),
            ..self.clone()
        }
    }

    /// Returns the first variant that runs the same command: both must do the same work.
    pub fn model_of<'a>(&'a self, variant: &'a CommandVariant) -> &'a CommandVariant {
        let mut all = self.variants.iter();
        all.find(|other| other.command == variant.command)
            .unwrap_or(variant)
    }

    /// Returns the command as typed in a shell.
    pub fn line(&self) -> String {
        typed(&self.command)
    }
}

impl CommandVariant {
    /// Returns the variant's command as typed in a shell, after its variables.
    pub fn line(&self) -> String {
        let variables = self.environment.iter();
        let variables = variables.map(|(name, value)| {
            let value = shlex::try_quote(value).unwrap_or_default();
            format!("{name}={value} ")
        });
        variables.collect::<String>() + &typed(&self.command)
    }
}

impl Client {
    /// Returns how long the server of a check is watched after its load, if that was asked for.
    pub fn drain(&self) -> Option<std::time::Duration> {
        self.drain_ns.map(std::time::Duration::from_nanos)
    }

    /// Returns the client as typed in a shell.
    pub fn line(&self) -> String {
        typed(&self.command)
    }
}

fn typed(command: &[String]) -> String {
    let mut words = command.iter().map(String::as_str);
    // Users type the name of the program, not its path.
    let first = words
        .next()
        .map(|path| path.rsplit('/').next().unwrap_or(path));
    shlex::try_join(first.into_iter().chain(words)).unwrap_or_else(|_| command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        let command = UserCommand {
            command: words(&["/usr/bin/python3", "-c", "print('a b')"]),
            ..UserCommand::default()
        };
        assert_eq!(command.line(), "python3 -c \"print('a b')\"");
    }
}
