//! A server that a client drives: wait until it answers, run the client, note what the server used
//! meanwhile, end the server. All of it happens in short looks of the thread that waits for the
//! server.

mod client;
pub mod drain;
mod listener;
mod usage;

use super::command_runner::CommandRunner;
use super::in_malloc::Times;
use super::last_words::with_words;
use super::reached::ReachFile;
use crate::execute::Outcome;
use crate::execute::child::end_tree;
use crate::execute::exit::End;
use crate::execute::handed::Handed;
use crate::execute::tree::{descendants, held_descendants, program};
use crate::plan::Ready;
use anyhow::{Context, Result, bail};
use client::ClientProcess;
use drain::Drain;
use heapmark_wire::{Launched, Phase};
use listener::is_below;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use std::fs::File;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use usage::Used;

/// Time between two looks at the server.
const LOOK: Duration = Duration::from_millis(1);
/// How long a server may take until it answers, and how long to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may take on this machine.
const ANSWER: Duration = Duration::from_millis(200);
/// How long the server rests after its client has ended.
const REST: Duration = Duration::from_secs(1);
/// How long another process may seem to answer in place of the server.
const DOUBT: Duration = Duration::from_secs(1);
/// Advice for the most likely reason why a server ends early with exit code 0.
const STAY: &str = "; if it went to the background, tell it to stay in front";

/// How a server and its client ended.
pub(super) struct Served {
    /// The client's own account.
    pub client: Launched,
    /// What the server used while the client ran.
    pub used: Used,
    /// What was resident after the server's rest.
    pub rest_rss_bytes: Option<u64>,
    /// Memory before the load and after it.
    pub drained: Vec<(String, f64)>,
    pub fault: Option<Outcome>,
}

/// The current step of a server and its client.
#[derive(Clone, Copy)]
enum ServerStep {
    /// The server does not answer yet.
    Waits,
    /// The client runs; the value is what the server had used before.
    Runs(Used),
    /// The client ended at this time, and the server is left alone.
    Rests(Instant),
    /// SIGTERM was sent to the server at this time.
    Ends(Instant),
}

/// The state of one server and its client, which are driven step by step.
pub(super) struct Drive<'a> {
    ready: Ready,
    times: Option<&'a Times>,
    /// The file in which the server counts its live bytes, if it does.
    pub reach: Option<&'a ReachFile>,
    /// Whether the server rests before it is asked to end.
    pub rests: bool,
    /// The observation of the server before its load and after it.
    pub drain: Option<Drain>,
    step: ServerStep,
    began: Instant,
    /// When another process was first seen to answer.
    doubted: Option<Instant>,
    /// The file in which the server's processes report which library serves them, if they do.
    pub reports: Option<&'a Handed>,
    /// When the server was first seen to have executed its program.
    executed: Option<Instant>,
    /// The account that the server's launcher writes; empty while the server lives.
    server: File,
    driver: ClientProcess,
    /// What the server used while the client ran.
    pub used: Used,
    /// What was resident after the server's rest.
    rest_rss_bytes: Option<u64>,
    /// Why the server or its client failed.
    fault: Option<Outcome>,
}

impl<'a> Drive<'a> {
    /// Returns the drive of a command, if it is a server; `server` is its launcher's account. The client prints to
    /// `stdout`.
    pub fn of(
        tried: &CommandRunner<'_>,
        server: &File,
        times: Option<&'a Times>,
        stdout: Stdio,
    ) -> Result<Option<Drive<'a>>> {
        let Some(client) = &tried.command.client else {
            return Ok(None);
        };
        let ready = client.ready.clone();
        if answers(&ready) {
            bail!(
                "{ready} is taken: something answers there before the server is started; end it, or take another one"
            );
        }
        let server = server.try_clone();
        Ok(Some(Drive {
            ready,
            times,
            reach: None,
            rests: false,
            drain: None,
            step: ServerStep::Waits,
            began: Instant::now(),
            doubted: None,
            reports: None,
            executed: None,
            server: server.context("cannot hand on a memory file")?,
            driver: ClientProcess::new(tried, &client.command, stdout)?,
            used: Used::default(),
            rest_rss_bytes: None,
            fault: None,
        }))
    }

    /// Looks at the server once; `launcher` is the process that has started it.
    pub fn look(&mut self, launcher: i32) -> Duration {
        if let Err(fault) = self.go_on(launcher) {
            self.fault = Some(fault);
            self.ask_to_end(launcher);
        }
        LOOK
    }

    /// Takes the next step if it is time to.
    fn go_on(&mut self, launcher: i32) -> Result<(), Outcome> {
        let patience_s = PATIENCE.as_secs();
        let server_has_ended = self.server.metadata().is_ok_and(|file| file.len() > 0);
        let step = self.step;
        match step {
            // The server has ended, so its launcher ends soon. What answers now could not be
            // measured to its end.
            ServerStep::Waits | ServerStep::Runs(_) | ServerStep::Rests(_) if server_has_ended => {}
            ServerStep::Waits if self.is_ready(launcher) => self.answered(launcher)?,
            ServerStep::Waits if self.began.elapsed() > PATIENCE => {
                let what = match &self.ready {
                    Ready::Started => format!("the server did not begin within {patience_s} s"),
                    ready => format!("the server did not answer on {ready} within {patience_s} s"),
                };
                return Err(Outcome::Error { what });
            }
            ServerStep::Runs(before) if self.driver.has_ended()? => {
                let Some(used) = self.used_until_now(launcher)?.since(before) else {
                    let what = "the server, or a process of it, ended with its client: it must stay until it is asked to end";
                    return Err(Outcome::WrongResult { what: what.into() });
                };
                self.used = used;
                self.step = ServerStep::Rests(Instant::now());
            }
            ServerStep::Runs(_) => self.watch_load(launcher)?,
            ServerStep::Rests(since) => self.rest(since.elapsed(), launcher)?,
            ServerStep::Ends(since) if since.elapsed() > PATIENCE => {
                let what = format!("the server did not end within {patience_s} s of SIGTERM");
                self.fault.get_or_insert(Outcome::Error { what });
                Pid::from_raw(launcher).into_iter().for_each(end_tree);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the result, once the server has ended.
    pub fn served(mut self, server: &End) -> Served {
        Served {
            fault: self.fault(Some(server)),
            client: self.driver.account().unwrap_or_default(),
            used: self.used,
            rest_rss_bytes: self.rest_rss_bytes,
            drained: self.drain.map(Drain::figures).unwrap_or_default(),
        }
    }

    /// Returns what went wrong, once the server has ended; how it ended is not always known.
    pub fn fault(&mut self, server: Option<&End>) -> Option<Outcome> {
        // A signal as the cause of the end is more specific than the fact that it ended, unless it
        // is the SIGTERM that heapmark sent.
        let ended = server.and_then(|server| server.outcome(Phase::Run, None));
        let was_asked = matches!(self.step, ServerStep::Ends(_));
        let ended = ended.filter(|outcome| match outcome {
            Outcome::Crash { signal, .. } => !(was_asked && signal == "SIGTERM"),
            Outcome::Hang { .. } | Outcome::Oom { .. } => true,
            _ => false,
        });
        self.fault.take().or(ended).or_else(|| {
            let what = self.went_wrong(server)?;
            Some(Outcome::WrongResult { what })
        })
    }

    fn went_wrong(&self, server: Option<&End>) -> Option<String> {
        // A process that goes to the background leaves no output and no exit code.
        let words = |server: &End| {
            let code = server.code().filter(|code| *code != 0)?;
            let words = server.last_words();
            Some(with_words(&format!(" (exit code {code})"), &words))
        };
        let why = || server.and_then(words).unwrap_or_else(|| STAY.into());
        let step = match self.step {
            ServerStep::Waits if self.ready == Ready::Started => "its client began".into(),
            ServerStep::Waits => format!("it answered on {}", self.ready),
            ServerStep::Runs(_) => "its client".into(),
            ServerStep::Rests(_) | ServerStep::Ends(_) => return self.driver.went_wrong(),
        };
        Some(format!("the server ended before {step}{}", why()))
    }

    fn is_ready(&mut self, launcher: i32) -> bool {
        match self.ready {
            Ready::Started => has_executed(launcher) && self.has_reported(),
            _ => answers(&self.ready),
        }
    }

    /// Returns whether a process of the server has reported which library serves it, and so is loaded. A static one
    /// never reports that.
    fn has_reported(&mut self) -> bool {
        let executed = *self.executed.get_or_insert_with(Instant::now);
        let says_nothing = |reports: &Handed| reports.text().is_empty();
        !self.reports.is_some_and(says_nothing) || executed.elapsed() > DOUBT
    }

    /// Notes what the server has used, then starts the client. Called when a process answers.
    fn answered(&mut self, launcher: i32) -> Result<(), Outcome> {
        let ready = &self.ready;
        if is_below(launcher, ready) != Some(false) {
            let before = self.used_until_now(launcher)?;
            if let Some(drain) = &mut self.drain {
                // A server that has just started may not have reported yet that nothing is live.
                let none = (*ready == Ready::Started).then_some(0);
                drain.before(&descendants(launcher), before.live_bytes.or(none));
            }
            self.driver.start()?;
            self.step = ServerStep::Runs(before);
        } else if self.doubted.get_or_insert_with(Instant::now).elapsed() > DOUBT {
            let what = format!(
                "what answers on {ready} is not the server, nor a process of it: end that, or take another one"
            );
            return Err(Outcome::Error { what });
        }
        Ok(())
    }

    /// Notes the threads while the client runs, and what is live if that is counted.
    fn watch_load(&mut self, launcher: i32) -> Result<()> {
        if let Some(drain) = &mut self.drain
            && drain.is_due()
        {
            let tree = descendants(launcher);
            let live_bytes = self
                .reach
                .map(|reach| reach.live_bytes(&tree))
                .transpose()?;
            drain.loaded(&tree, live_bytes.flatten());
        }
        Ok(())
    }

    /// Leaves the server alone for a while, and notes what memory it holds.
    fn rest(&mut self, since: Duration, launcher: i32) -> Result<()> {
        let has_rested = self.rests && since > REST;
        if has_rested && self.rest_rss_bytes.is_none() {
            self.rest_rss_bytes = Some(self.used_until_now(launcher)?.rss_bytes);
        }
        let is_over = match &mut self.drain {
            None => !self.rests || has_rested,
            Some(drain) => {
                let tree = descendants(launcher);
                let reach = self.reach;
                let live_bytes = || reach.and_then(|reach| reach.live_bytes(&tree).ok()?);
                drain.after(since, &tree, live_bytes)
            }
        };
        if is_over {
            self.ask_to_end(launcher);
        }
        Ok(())
    }

    fn used_until_now(&self, launcher: i32) -> Result<Used> {
        Used::until_now(launcher, self.times, self.reach)
    }

    fn ask_to_end(&mut self, launcher: i32) {
        // The launcher's child is the server; the launcher must live to report what the server
        // used.
        if let Some(server) = held_descendants(launcher).first() {
            let _ = pidfd_send_signal(server, Signal::TERM);
        }
        self.step = ServerStep::Ends(Instant::now());
    }
}

/// Returns whether a child of a launcher has executed another program.
fn has_executed(launcher: i32) -> bool {
    let launcher_program = program(launcher).ok();
    let is_another = |pid: &i32| match program(*pid) {
        Ok(file) => Some(file) != launcher_program,
        // By now the process has other rights, so it has executed a program.
        Err(error) => error.kind() == ErrorKind::PermissionDenied,
    };
    descendants(launcher).iter().any(is_another)
}

/// Returns whether a process on this machine accepts connections on this port or socket.
fn answers(ready: &Ready) -> bool {
    let connects = |place| TcpStream::connect_timeout(&place, ANSWER).is_ok();
    match ready {
        Ready::Port(port) => {
            connects(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
                || connects(SocketAddr::from((Ipv6Addr::LOCALHOST, *port)))
        }
        Ready::Socket(path) => UnixStream::connect(path).is_ok(),
        Ready::Started => false,
    }
}
