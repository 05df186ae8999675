//! The client of a server: one process below its own launcher, which measures its time.

use crate::execute::child::{end_tree, spawn};
use crate::execute::exit::STDERR_BYTES;
use crate::execute::memory_file::{inherited_file, keep_last, stream_file, text};
use crate::execute::user_command::command_runner::{CommandRunner, of_the_user};
use crate::execute::user_command::last_words::with_words;
use anyhow::{Context, Result};
use heapmark_wire::Launched;
use rustix::process::Pid;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// A client, before it starts, while it runs and when it has ended.
pub(super) struct ClientProcess {
    account: File,
    stderr: File,
    /// Set while it runs.
    child: Option<Child>,
}

impl ClientProcess {
    pub fn new() -> Result<ClientProcess> {
        let (account, stderr) = (
            inherited_file("heapmark-client")?,
            stream_file("heapmark-client-stderr")?,
        );
        Ok(ClientProcess {
            account,
            stderr,
            child: None,
        })
    }

    pub fn start(&mut self, tried: &CommandRunner<'_>, words: &[String]) -> Result<()> {
        let mut command = Command::new(tried.launcher);
        command
            .arg("launch")
            .arg(self.account.as_raw_fd().to_string())
            .arg("inherit")
            .arg("--");
        command.args(words).current_dir(&tried.command.folder);
        command
            .env_clear()
            .envs(of_the_user())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(
            self.stderr
                .try_clone()
                .context("cannot hand on a memory file")?,
        );
        self.child = Some(spawn(&mut command).context("cannot start the client")?);
        Ok(())
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        let _ = keep_last(&self.stderr, STDERR_BYTES);
        let Some(child) = &mut self.child else {
            return Ok(true);
        };
        let ended = child.try_wait().context("the client is lost")?.is_some();
        if ended {
            self.child = None;
        }
        Ok(ended)
    }

    /// How it ended, once it has.
    pub fn account(&self) -> Option<Launched> {
        Launched::parse(&text(&self.account, 0))
    }

    /// What went wrong with an ended client.
    pub fn went_wrong(&self) -> Option<String> {
        let Some(account) = self.account() else {
            return Some("the client left no account".into());
        };
        if account.errno != 0 {
            return Some(format!(
                "cannot start the client: {}",
                std::io::Error::from_raw_os_error(account.errno)
            ));
        }
        let failed = || {
            format!(
                "the client failed ({})",
                ExitStatus::from_raw(account.status)
            )
        };
        (account.status != 0).then(|| with_words(&failed(), &text(&self.stderr, 0)))
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // An early stop leaves neither the client nor its descendants behind.
        if let Some(child) = &mut self.child {
            end_tree(Pid::from_child(child));
            let _ = child.wait();
        }
    }
}
