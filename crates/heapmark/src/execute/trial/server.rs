//! A server that a client drives: wait until it answers, let the client run, note what the server used meanwhile, end it. All of it
//! in short looks of the thread that waits for the server.

use super::Tried;
use crate::execute::Outcome;
use crate::execute::child::{End, descendants, inherited_file, memory_file, text};
use crate::plan::Client;
use anyhow::{Context, Result, bail};
use heapmark_wire::Launched;
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// From one look to the next.
const LOOK: Duration = Duration::from_millis(1);
/// How long a server may take until it answers, and then to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long an answer may take on this machine.
const ANSWER: Duration = Duration::from_millis(200);

/// What the client measured.
pub(super) struct Served {
    pub wall_ns: u64,
    /// CPU time of the server's processes while the client ran.
    pub cpu_ns: u64,
    /// CPU time of the client itself.
    pub client_cpu_ns: u64,
    fault: Option<Outcome>,
}

impl Served {
    pub fn fault(&self) -> Option<Outcome> {
        self.fault.clone()
    }
}

/// Where it stands.
enum Step {
    /// The server does not answer yet.
    Waits,
    /// The client runs; the server had used so much CPU time before.
    Runs { client: Child, before_ns: u64 },
    /// The server was asked to end, then.
    Ends(Instant),
}

/// Drives one server.
pub(super) struct Drive<'a> {
    client: &'a Client,
    tried: &'a Tried<'a>,
    step: Step,
    began: Instant,
    account: File,
    stderr: File,
    cpu_ns: u64,
    /// Why it went wrong.
    fault: Option<Outcome>,
}

impl<'a> Drive<'a> {
    pub fn new(client: &'a Client, tried: &'a Tried<'a>) -> Result<Drive<'a>> {
        if answers(client.port) {
            bail!("port {} is taken: something answers there before the server is started", client.port);
        }
        let (account, stderr) = (inherited_file("heapmark-client")?, memory_file("heapmark-client-stderr")?);
        let (step, began) = (Step::Waits, Instant::now());
        Ok(Drive { client, tried, step, began, account, stderr, cpu_ns: 0, fault: None })
    }

    /// One look; `launcher` is the process that has started the server.
    pub fn look(&mut self, launcher: i32) -> Duration {
        match &mut self.step {
            Step::Waits if answers(self.client.port) => match self.start_client() {
                Ok(client) => self.step = Step::Runs { client, before_ns: cpu_ns(launcher) },
                Err(error) => self.give_up(launcher, Outcome::Error { what: format!("{error:#}") }),
            },
            Step::Waits if self.began.elapsed() > PATIENCE => {
                let what =
                    format!("the server did not answer on port {} within {} s", self.client.port, PATIENCE.as_secs());
                self.give_up(launcher, Outcome::Error { what });
            }
            Step::Waits => {}
            Step::Runs { client, before_ns } => {
                if let Ok(Some(_)) = client.try_wait() {
                    self.cpu_ns = cpu_ns(launcher).saturating_sub(*before_ns);
                    self.ask_to_end(launcher);
                }
            }
            Step::Ends(since) if since.elapsed() > PATIENCE => {
                let what = format!("the server did not end within {} s of SIGTERM", PATIENCE.as_secs());
                self.fault.get_or_insert(Outcome::Error { what });
                signal(launcher, libc::SIGKILL);
            }
            Step::Ends(_) => {}
        }
        LOOK
    }

    /// What came of it, once the server has ended.
    pub fn served(mut self, server: &End) -> Result<Served> {
        if let Step::Runs { client, .. } = &mut self.step {
            // The server was first: its client waits for nobody.
            let _ = client.kill();
            client.wait().context("cannot reap a client")?;
        }
        let launched = Launched::parse(&text(&self.account, 0));
        let words = || text(&self.stderr, 0).trim_end().lines().last().unwrap_or_default().to_owned();
        let ended = match (&self.step, &launched) {
            (Step::Waits, _) => Some(format!("the server ended before it answered on port {}", self.client.port)),
            (Step::Runs { .. }, _) => Some("the server ended before its client".into()),
            (_, Some(client)) if client.errno != 0 => {
                Some(format!("cannot start the client: {}", std::io::Error::from_raw_os_error(client.errno)))
            }
            (_, Some(client)) if client.status != 0 => {
                Some(format!("the client failed (wait status {}): {}", client.status, words()))
            }
            (_, None) => Some("the client left no account".into()),
            _ => None,
        };
        let fault = self.fault.take().or_else(|| {
            let what = ended?;
            // How it ended says more than that it did, where a signal ended it.
            let of_server = server.outcome(heapmark_wire::Phase::Run, &super::Report::parse(""));
            let first = !matches!(self.step, Step::Ends(_));
            let crash = of_server
                .filter(|_| first)
                .filter(|outcome| matches!(outcome, Outcome::Crash { .. } | Outcome::Hang { .. }));
            Some(crash.unwrap_or(Outcome::WrongResult { what }))
        });
        let (wall_ns, client_cpu_ns) =
            launched.map_or((0, 0), |client| (client.wall_ns, client.user_ns + client.sys_ns));
        Ok(Served { wall_ns, cpu_ns: self.cpu_ns, client_cpu_ns, fault })
    }

    /// Below a launcher of its own, which is its clock.
    fn start_client(&self) -> Result<Child> {
        let mut command = Command::new(self.tried.launcher);
        command.arg("launch").arg(self.account.as_raw_fd().to_string()).arg("inherit").arg("--");
        command.args(&self.client.command).current_dir(&self.tried.trial.folder).process_group(0);
        command.env_clear().envs(super::environment::of_the_user()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(self.stderr.try_clone().context("cannot hand on a memory file")?);
        command.spawn().context("cannot start the client")
    }

    fn ask_to_end(&mut self, launcher: i32) {
        // The launcher's children are the server; it lives to tell what they used.
        let server = descendants(launcher).first().copied();
        server.into_iter().for_each(|pid| signal(pid, libc::SIGTERM));
        self.step = Step::Ends(Instant::now());
    }

    fn give_up(&mut self, launcher: i32, fault: Outcome) {
        self.fault = Some(fault);
        self.ask_to_end(launcher);
    }
}

impl Drop for Drive<'_> {
    fn drop(&mut self) {
        // Whoever stops early leaves no client behind.
        if let Step::Runs { client, .. } = &mut self.step {
            let _ = client.kill();
            let _ = client.wait();
        }
    }
}

/// Whether something on this machine takes connections there.
fn answers(port: u16) -> bool {
    let places = [SocketAddr::from((Ipv4Addr::LOCALHOST, port)), SocketAddr::from((Ipv6Addr::LOCALHOST, port))];
    places.iter().any(|place| TcpStream::connect_timeout(place, ANSWER).is_ok())
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid, signal) };
}

/// CPU time of what the launcher has started, as the kernel's clocks of other processes tell it.
fn cpu_ns(launcher: i32) -> u64 {
    let of = |pid: i32| {
        let mut clock = 0;
        // SAFETY: writes into locals.
        let time = unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            let known = libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0;
            known.then_some(time)
        };
        time.map_or(0, |time| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    };
    descendants(launcher).into_iter().map(of).sum()
}
