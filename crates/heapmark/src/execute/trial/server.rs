//! A server that a client drives: wait until it answers, let the client run, note what the server used meanwhile, end it. All of it
//! in short looks of the thread that waits for the server.

use super::in_malloc::{Calls, Times};
use super::process::of_the_user;
use super::{Outcome, Tried};
use crate::execute::descendants;
use crate::execute::end::{End, STDERR_BYTES};
use crate::execute::memory_file::{inherited_file, keep_last, memory_file, text};
use crate::execute::report::Report;
use crate::plan::Client;
use anyhow::{Context, Result, bail};
use heapmark_wire::{Launched, Phase};
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
/// What helps against the most likely reason for a server that ends early.
const STAY: &str = "if it went to the background, tell it to stay in front";

/// What the client measured.
pub(super) struct Served {
    pub wall_ns: u64,
    /// CPU time of the server's processes while the client ran.
    pub cpu_ns: u64,
    /// Calls of malloc and free meanwhile, where they were timed.
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

/// What a server has used until a moment.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu_ns: u64,
    calls: Calls,
}

/// Where it stands.
enum Step {
    /// The server does not answer yet.
    Waits,
    /// The client runs; this is what the server had used before.
    Runs { client: Child, before: Used },
    /// The server was asked to end, then.
    Ends(Instant),
}

/// Drives one server.
pub(super) struct Drive<'a> {
    client: &'a Client,
    tried: &'a Tried<'a>,
    times: Option<&'a Times>,
    step: Step,
    began: Instant,
    /// What the server's launcher writes: nothing, while the server lives.
    server: &'a File,
    /// What the client's does.
    account: File,
    stderr: File,
    /// While the client ran.
    used: Used,
    /// Why it went wrong.
    fault: Option<Outcome>,
}

impl<'a> Drive<'a> {
    pub fn new(
        client: &'a Client,
        tried: &'a Tried<'a>,
        server: &'a File,
        times: Option<&'a Times>,
    ) -> Result<Drive<'a>> {
        if answers(client.port) {
            bail!("port {} is taken: something answers there before the server is started", client.port);
        }
        let (account, stderr) = (inherited_file("heapmark-client")?, memory_file("heapmark-client-stderr")?);
        let (step, began) = (Step::Waits, Instant::now());
        Ok(Drive { client, tried, times, step, began, server, account, stderr, used: Used::default(), fault: None })
    }

    /// One look; `launcher` is the process that has started the server.
    pub fn look(&mut self, launcher: i32) -> Duration {
        match &mut self.step {
            // Its launcher ends soon. What answers meanwhile would not have been measured to its end.
            Step::Waits | Step::Runs { .. } if self.server.metadata().is_ok_and(|account| account.len() > 0) => {}
            Step::Waits if answers(self.client.port) => {
                if let Err(error) = self.begin(launcher) {
                    self.give_up(launcher, Outcome::Error { what: format!("{error:#}") });
                }
            }
            Step::Waits if self.began.elapsed() > PATIENCE => {
                let what =
                    format!("the server did not answer on port {} within {} s", self.client.port, PATIENCE.as_secs());
                self.give_up(launcher, Outcome::Error { what });
            }
            Step::Waits => {}
            Step::Runs { client, before } => {
                let before = *before;
                let _ = keep_last(&self.stderr, STDERR_BYTES);
                match client.try_wait() {
                    Ok(None) => {}
                    Ok(Some(_)) => self.finish(launcher, before),
                    Err(error) => {
                        self.give_up(launcher, Outcome::Error { what: format!("the client is lost: {error}") })
                    }
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
        let fault = self.fault(Some(server));
        let (wall_ns, client_cpu_ns) =
            self.account().map_or((0, 0), |client| (client.wall_ns, client.user_ns + client.sys_ns));
        Ok(Served { wall_ns, cpu_ns: self.used.cpu_ns, calls: self.used.calls, client_cpu_ns, fault })
    }

    /// What went wrong, once the server has ended; how it did so is not always known.
    pub fn fault(&mut self, server: Option<&End>) -> Option<Outcome> {
        // How it ended says more than that it did, where a signal ended it that is not the one it was sent.
        let ended = server.and_then(|server| server.outcome(Phase::Run, &Report::parse("")));
        let ended = ended.filter(|outcome| match outcome {
            Outcome::Crash { signal, .. } => !(signal == "SIGTERM" && matches!(self.step, Step::Ends(_))),
            Outcome::Hang { .. } | Outcome::Oom { .. } => true,
            _ => false,
        });
        self.fault.take().or(ended).or_else(|| Some(Outcome::WrongResult { what: self.went_wrong()? }))
    }

    fn went_wrong(&self) -> Option<String> {
        let (port, words) = (self.client.port, text(&self.stderr, 0));
        let words = words.trim_end().lines().last().unwrap_or_default();
        match (&self.step, self.account()) {
            (Step::Waits, _) => Some(format!("the server ended before it answered on port {port}; {STAY}")),
            (Step::Runs { .. }, _) => Some(format!("the server ended before its client; {STAY}")),
            (_, None) => Some("the client left no account".into()),
            (_, Some(client)) if client.errno != 0 => {
                Some(format!("cannot start the client: {}", std::io::Error::from_raw_os_error(client.errno)))
            }
            (_, Some(client)) if client.status != 0 => {
                Some(format!("the client failed (wait status {}): {words}", client.status))
            }
            _ => None,
        }
    }

    fn account(&self) -> Option<Launched> {
        Launched::parse(&text(&self.account, 0))
    }

    /// Looks at what the server has used, then starts the client.
    fn begin(&mut self, launcher: i32) -> Result<()> {
        let before = self.used(launcher)?;
        self.step = Step::Runs { client: self.start_client()?, before };
        Ok(())
    }

    fn finish(&mut self, launcher: i32, before: Used) {
        match self.used(launcher) {
            Ok(after) => {
                let cpu_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
                self.used = Used { cpu_ns, calls: after.calls.since(before.calls) };
                self.ask_to_end(launcher);
            }
            Err(error) => self.give_up(launcher, Outcome::Error { what: format!("{error:#}") }),
        }
    }

    fn used(&self, launcher: i32) -> Result<Used> {
        let calls = self.times.map(Times::read).transpose()?.unwrap_or_default();
        Ok(Used { cpu_ns: descendants(launcher).into_iter().map(cpu_ns).sum(), calls })
    }

    /// Below a launcher of its own, which is its clock.
    fn start_client(&self) -> Result<Child> {
        let mut command = Command::new(self.tried.launcher);
        command.arg("launch").arg(self.account.as_raw_fd().to_string()).arg("inherit").arg("--");
        command.args(&self.client.command).current_dir(&self.tried.trial.folder).process_group(0);
        command.env_clear().envs(of_the_user()).stdin(Stdio::null()).stdout(Stdio::null());
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

/// CPU time of a process and of the children that it has waited for, as the kernel tells of other processes.
fn cpu_ns(pid: i32) -> u64 {
    let mut clock = 0;
    // SAFETY: writes into locals.
    let own = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        let known = libc::clock_getcpuclockid(pid, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0;
        known.then_some(time)
    };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    own.map_or(0, |time| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64) + of_its_children_ns(&stat)
}

/// The 16th and 17th field, counted from the end of the second: a program's name may hold anything.
fn of_its_children_ns(stat: &str) -> u64 {
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 = fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_waited_for_is_its_own() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 30 40 20 0";
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!(of_its_children_ns(stat), 70 * tick_ns);
        assert_eq!(of_its_children_ns(""), 0);
    }
}
