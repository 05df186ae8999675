//! A command that is started to be looked at, with all processes that it starts. None of them is
//! left running.

use crate::look::ProcessView;
use crate::process::{Process, has_gone};
use anyhow::{Context, Result, bail};
use heapmark_core::build::command::as_a_shell_starts;
use heapmark_core::build::ending_with_heapmark;
use heapmark_core::catalog::Allocator;
use heapmark_core::cmd::usage;
use heapmark_core::execute::child::{adopt_orphans, end_all, end_orphans};
use heapmark_core::execute::descendants;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two searches for new processes.
const PACE: Duration = Duration::from_millis(5);
/// A process is looked at again at this age, and then each time that its age has doubled: earlier,
/// it may not have loaded its libraries or read its settings.
const YOUNG: Duration = Duration::from_millis(40);

/// A process that was found, identified by its number and program.
struct StartedProcess {
    since: Instant,
    next: Duration,
    look: Option<ProcessView>,
    /// Why the last look failed, unless the process was gone.
    fault: Option<String>,
}

/// The processes that a command started.
pub struct Started {
    /// What was seen of the processes, in the order in which they were first seen.
    pub looks: Vec<ProcessView>,
    /// Processes that could not be judged, one line each: this user may not look at them, or no look succeeded.
    pub closed: Vec<String>,
}

/// Starts a command and looks at its processes until this time has passed or all have ended. Then
/// ends them.
pub fn looks(command: &[OsString], after: Duration, known: &[Allocator]) -> Result<Started> {
    let folder = std::env::current_dir().context("cannot tell where this is")?;
    let words = as_a_shell_starts(command.to_vec(), &folder).map_err(usage)?;
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    adopt_orphans();
    let mut starting = Command::new(&words[0]);
    starting
        .args(&words[1..])
        .stdin(Stdio::null())
        // Stdout is for the answer.
        .stdout(stderr.context("cannot hand on stderr")?)
        .process_group(0);
    let mut child = ending_with_heapmark(&mut starting)
        .spawn()
        .with_context(|| format!("cannot start {}", words[0].display()))?;
    let mut seen: BTreeMap<(i32, PathBuf), StartedProcess> = BTreeMap::new();
    let mut closed: BTreeMap<i32, String> = BTreeMap::new();
    let own_pid = std::process::id() as i32;
    let began = Instant::now();
    let end = loop {
        let is_over = began.elapsed() >= after;
        for pid in descendants(own_pid) {
            let process = match Process::unless_closed(pid) {
                Ok(Ok(process)) => process,
                Ok(Err(line)) => {
                    closed.insert(pid, line);
                    continue;
                }
                Err(error) => {
                    if !has_gone(pid, &error) {
                        closed.insert(pid, format!("{error:#}"));
                    }
                    continue;
                }
            };
            closed.remove(&pid);
            let known_so_far = seen.entry((pid, process.program.clone()));
            let started = known_so_far.or_insert_with(|| StartedProcess {
                since: Instant::now(),
                next: Duration::ZERO,
                look: None,
                fault: None,
            });
            let age = started.since.elapsed();
            if age >= started.next || is_over {
                match ProcessView::at(pid, known) {
                    Ok(look) => (started.look, started.fault) = (Some(look), None),
                    // If the process has gone, the look was at two programs.
                    Err(error) if !is_gone(&process) => {
                        started.fault = Some(format!("{error:#}"));
                    }
                    Err(_) => {}
                }
                started.next = (age * 2).max(YOUNG);
            }
        }
        let end = child.try_wait().context("cannot wait for the command")?;
        if is_over || end.is_some() && descendants(own_pid).is_empty() {
            break end;
        }
        sleep(PACE);
    };
    end_all();
    let is_refused = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    // It may have ended between the two.
    if child.kill().is_err_and(is_refused) && matches!(child.try_wait(), Ok(None)) {
        bail!(
            "{} ({}) may not be ended by this user: it is still running",
            words[0].display(),
            child.id()
        );
    }
    let _ = child.wait();
    end_orphans();
    // In the order in which the processes were first seen.
    let mut seen: Vec<StartedProcess> = seen.into_values().collect();
    seen.sort_by_key(|started| started.since);
    let mut looks = Vec::new();
    let mut closed: Vec<String> = closed.into_values().collect();
    for started in seen {
        match started.look {
            Some(look) => looks.push(look),
            None => closed.extend(started.fault),
        }
    }
    if looks.is_empty() && closed.is_empty() {
        let how = end.map_or("it was ended".into(), |end| end.to_string());
        bail!(
            "{} ended before heapmark could look at it ({how}): which needs a process that lives some tens of milliseconds",
            words[0].display()
        );
    }
    Ok(Started { looks, closed })
}

/// Whether a process has ended, or executes another program than when it was opened.
fn is_gone(process: &Process) -> bool {
    let same = process.is_the_same_program();
    same.is_err_and(|error| has_gone(process.pid, &error))
}
