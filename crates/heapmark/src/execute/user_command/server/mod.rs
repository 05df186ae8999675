//! A server that a client drives: wait until it answers, run the client, note what the server used
//! meanwhile, end the server. All of it happens in short looks of the thread that waits for the
//! server.

mod client;
mod listener;
mod usage;

use super::command_runner::CommandRunner;
use super::in_malloc::{Calls, Times};
use super::last_words::with_words;
use crate::execute::Outcome;
use crate::execute::child::end_tree;
use crate::execute::exit::End;
use crate::execute::report::Report;
use crate::execute::tree::held_descendants;
use crate::plan::Client;
use anyhow::{Result, bail};
use client::ClientProcess;
use heapmark_wire::Phase;
use listener::is_below;
use rustix::process::{Pid, Signal, pidfd_send_signal};
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use usage::Used;

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(1);
/// How long a server may take until it answers, and how long to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection may take on this machine.
const ANSWER: Duration = Duration::from_millis(200);
/// How long another process may seem to answer in place of the server.
const DOUBT: Duration = Duration::from_secs(1);
/// Advice for the most likely reason why a server ends early with exit code 0.
const STAY: &str = "; if it went to the background, tell it to stay in front";

/// What the client measured.
pub(super) struct Served {
    pub wall_ns: u64,
    /// CPU time of the server's processes while the client ran.
    pub cpu_ns: u64,
    /// Calls of malloc and free meanwhile, if they were timed.
    pub calls: Calls,
    /// CPU time of the client itself.
    pub client_cpu_ns: u64,
    fault: Option<Outcome>,
}

impl Served {
    pub fn fault(&self) -> Option<Outcome> {
        self.fault.clone()
    }
}

/// The current step.
#[derive(Clone, Copy)]
enum ServerStep {
    /// The server does not answer yet.
    Waits,
    /// The client runs; this is what the server had used before.
    Runs(Used),
    /// SIGTERM was sent to the server at this time.
    Ends(Instant),
}

/// Drives one server.
pub(super) struct Drive<'a> {
    client: &'a Client,
    tried: &'a CommandRunner<'a>,
    times: Option<&'a Times>,
    step: ServerStep,
    began: Instant,
    /// When another process was first seen to answer.
    doubted: Option<Instant>,
    /// The account that the server's launcher writes; empty while the server lives.
    server: &'a File,
    driver: ClientProcess,
    /// What the server used while the client ran.
    used: Used,
    /// Why it failed.
    fault: Option<Outcome>,
}

impl<'a> Drive<'a> {
    pub fn new(
        client: &'a Client,
        tried: &'a CommandRunner<'a>,
        server: &'a File,
        times: Option<&'a Times>,
    ) -> Result<Drive<'a>> {
        let port = client.port;
        if answers(port) {
            bail!(
                "port {port} is taken: something answers there before the server is started; end it, or take another port"
            );
        }
        let (step, began, driver) = (ServerStep::Waits, Instant::now(), ClientProcess::new()?);
        let (doubted, used, fault) = (None, Used::default(), None);
        Ok(Drive {
            client,
            tried,
            times,
            step,
            began,
            doubted,
            server,
            driver,
            used,
            fault,
        })
    }

    /// One look; `launcher` is the process that has started the server.
    pub fn look(&mut self, launcher: i32) -> Duration {
        match self.step {
            // The server has ended, so its launcher ends soon. What answers now could not be
            // measured to its end.
            ServerStep::Waits | ServerStep::Runs(_)
                if self
                    .server
                    .metadata()
                    .is_ok_and(|account| account.len() > 0) => {}
            ServerStep::Waits if answers(self.client.port) => self.answered(launcher),
            ServerStep::Waits if self.began.elapsed() > PATIENCE => {
                let what = format!(
                    "the server did not answer on port {} within {} s",
                    self.client.port,
                    PATIENCE.as_secs()
                );
                self.give_up(launcher, Outcome::Error { what });
            }
            ServerStep::Waits => {}
            ServerStep::Runs(before) => match self.driver.has_ended() {
                Ok(false) => {}
                Ok(true) => self.finish(launcher, before),
                Err(error) => self.give_up(
                    launcher,
                    Outcome::Error {
                        what: format!("{error:#}"),
                    },
                ),
            },
            ServerStep::Ends(since) if since.elapsed() > PATIENCE => {
                let what = format!(
                    "the server did not end within {} s of SIGTERM",
                    PATIENCE.as_secs()
                );
                self.fault.get_or_insert(Outcome::Error { what });
                Pid::from_raw(launcher).into_iter().for_each(end_tree);
            }
            ServerStep::Ends(_) => {}
        }
        LOOK
    }

    /// The result, once the server has ended.
    pub fn served(mut self, server: &End) -> Result<Served> {
        let fault = self.fault(Some(server));
        let (wall_ns, client_cpu_ns) = self.driver.account().map_or((0, 0), |client| {
            (client.wall_ns, client.user_ns + client.sys_ns)
        });
        Ok(Served {
            wall_ns,
            cpu_ns: self.used.cpu_ns,
            calls: self.used.calls,
            client_cpu_ns,
            fault,
        })
    }

    /// What went wrong, once the server has ended; its end is not always known.
    pub fn fault(&mut self, server: Option<&End>) -> Option<Outcome> {
        // A signal as the cause of the end is more specific than the fact that it ended, unless it
        // is the SIGTERM that heapmark sent.
        let ended = server.and_then(|server| server.outcome(Phase::Run, &Report::parse("")));
        let ended = ended.filter(|outcome| match outcome {
            Outcome::Crash { signal, .. } => {
                !(signal == "SIGTERM" && matches!(self.step, ServerStep::Ends(_)))
            }
            Outcome::Hang { .. } | Outcome::Oom { .. } => true,
            _ => false,
        });
        self.fault.take().or(ended).or_else(|| {
            Some(Outcome::WrongResult {
                what: self.went_wrong(server)?,
            })
        })
    }

    fn went_wrong(&self, server: Option<&End>) -> Option<String> {
        // A process that goes to the background leaves no output and no exit code.
        let why = |server: &End| match server.code()? {
            0 => None,
            code => Some(with_words(
                &format!(" (exit code {code})"),
                &server.last_words(),
            )),
        };
        let why = || server.and_then(why).unwrap_or_else(|| STAY.to_owned());
        match self.step {
            ServerStep::Waits => Some(format!(
                "the server ended before it answered on port {}{}",
                self.client.port,
                why()
            )),
            ServerStep::Runs(_) => Some(format!("the server ended before its client{}", why())),
            ServerStep::Ends(_) => self.driver.went_wrong(),
        }
    }

    /// Called when a process answers on the port.
    fn answered(&mut self, launcher: i32) {
        let port = self.client.port;
        if is_below(launcher, port) != Some(false) {
            if let Err(error) = self.begin(launcher) {
                self.give_up(
                    launcher,
                    Outcome::Error {
                        what: format!("{error:#}"),
                    },
                );
            }
        } else if self.doubted.get_or_insert_with(Instant::now).elapsed() > DOUBT {
            let what = format!(
                "what answers on port {port} is not the server, nor a process of it: end that, or take another port"
            );
            self.give_up(launcher, Outcome::Error { what });
        }
    }

    /// Notes what the server has used, then starts the client.
    fn begin(&mut self, launcher: i32) -> Result<()> {
        let before = Used::until_now(launcher, self.times)?;
        self.driver.start(self.tried, &self.client.command)?;
        self.step = ServerStep::Runs(before);
        Ok(())
    }

    fn finish(&mut self, launcher: i32, before: Used) {
        match Used::until_now(launcher, self.times).map(|after| after.since(before)) {
            Ok(Some(used)) => {
                self.used = used;
                self.ask_to_end(launcher);
            }
            Ok(None) => {
                let what = "the server, or a process of it, ended with its client: it must stay until it is asked to end";
                self.give_up(launcher, Outcome::WrongResult { what: what.into() });
            }
            Err(error) => self.give_up(
                launcher,
                Outcome::Error {
                    what: format!("{error:#}"),
                },
            ),
        }
    }

    fn ask_to_end(&mut self, launcher: i32) {
        // The launcher's child is the server; the launcher must live to report what the server
        // used.
        let server = held_descendants(launcher).into_iter().next();
        server
            .iter()
            .for_each(|server| _ = pidfd_send_signal(server, Signal::TERM));
        self.step = ServerStep::Ends(Instant::now());
    }

    fn give_up(&mut self, launcher: i32, fault: Outcome) {
        self.fault = Some(fault);
        self.ask_to_end(launcher);
    }
}

/// Whether a process on this machine accepts connections on the port.
fn answers(port: u16) -> bool {
    let places = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
    ];
    places
        .iter()
        .any(|place| TcpStream::connect_timeout(place, ANSWER).is_ok())
}
