//! The client of a server: one process below its own launcher, which measures its time.

use crate::build::spawn_launcher;
use crate::execute::child::{Launch, Rules, end_tree};
use crate::execute::exit::STDERR_BYTES;
use crate::execute::memory_file::{keep_last, text};
use crate::execute::user_command::command_runner::CommandRunner;
use crate::execute::user_command::last_words::with_words;
use anyhow::{Context, Result};
use heapmark_wire::Launched;
use rustix::process::Pid;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};

/// A client, before it starts, while it runs and when it has ended.
pub struct ClientProcess {
    launch: Launch,
    /// The launcher of the client, while the client runs.
    child: Option<Child>,
}

impl ClientProcess {
    pub fn new(
        tried: &CommandRunner<'_>,
        words: &[String],
        stdout: Stdio,
    ) -> Result<ClientProcess> {
        let mut launch = Launch::new(tried.launcher, &["inherit"], &Rules::default(), [])?;
        launch
            .command
            .args(words)
            .current_dir(&tried.command.folder)
            .envs(tried.unmeasured())
            .stdin(Stdio::null())
            .stdout(stdout);
        let child = None;
        Ok(ClientProcess { launch, child })
    }

    pub fn start(&mut self) -> Result<()> {
        let child = spawn_launcher(&mut self.launch.command);
        self.child = Some(child.context("cannot start the client")?);
        Ok(())
    }

    /// Returns whether the client has ended.
    pub fn has_ended(&mut self) -> Result<bool> {
        let _ = keep_last(&self.launch.stderr, STDERR_BYTES);
        let Some(child) = &mut self.child else {
            return Ok(true);
        };
        let ended = child.try_wait().context("the client is lost")?.is_some();
        if ended {
            self.child = None;
        }
        Ok(ended)
    }

    /// Returns how the client ended, once it has.
    pub fn account(&self) -> Option<Launched> {
        Launched::parse(&text(&self.launch.account, 0))
    }

    /// Returns what went wrong with an ended client.
    pub fn went_wrong(&self) -> Option<String> {
        let Some(account) = self.account() else {
            return Some("the client left no account".into());
        };
        if account.errno != 0 {
            let why = std::io::Error::from_raw_os_error(account.errno);
            return Some(format!("cannot start the client: {why}"));
        }
        let failed = || {
            let status = ExitStatus::from_raw(account.status);
            format!("the client failed ({status})")
        };
        (account.status != 0).then(|| with_words(&failed(), &text(&self.launch.stderr, 0)))
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
