//! Tells a command that there are more CPUs than this machine has (`try --cpus-seen`): allocators size their arenas by
//! that, and containers by the machine's number under a quota of less.
//!
//! No library can do it: glibc's malloc asks by a call of its own, and Go and static programs load none. So the kernel
//! asks here (seccomp's user notification; the launcher sets the filter, `answered.rs` of the guest): each
//! `sched_getaffinity`, and each opening of a file for reading. Of these only what says how many CPUs there are is answered
//! from here ([`files`]); all others go on in the kernel. What a program asks otherwise (`access`, `stat`, `getcpu`,
//! 32-bit programs), and where its threads run, is the machine's.

mod answerer;
mod files;

pub use answerer::Answerer;

use super::child::{Launch, Rules};
use super::memory_file::{stream_file, text};
use crate::build::GUEST;
use crate::plan::{CpusSeen, Plan};
use anyhow::{Context, Result, ensure};
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How long a process may take that only asks.
const SHORT: Duration = Duration::from_secs(20);

/// Refuses a plan whose commands cannot be told here how many CPUs there are.
pub fn knows_cpus_seen(plan: &Plan) -> Result<()> {
    let told = plan
        .cases
        .iter()
        .find_map(|case| match plan.cpus_seen_of(case) {
            Some(CpusSeen::Count(count)) => Some(count),
            _ => None,
        });
    let Some(count) = told else {
        return Ok(());
    };
    let own = files::possible();
    ensure!(
        own <= count,
        "--cpus-seen {count}: this machine has {own}, and a program that believes in fewer would run on CPUs that it has no \
         room for: taskset -c 0 gives a command fewer"
    );
    let heard = asked(count)?;
    ensure!(
        heard.trim_end() == format!("{count} {}", files::list(count)),
        "--cpus-seen: a program that was told {count} has seen {heard:?}: most likely this machine allows no process to write \
         into another one's memory (kernel.yama.ptrace_scope), or is older than Linux 5.14"
    );
    Ok(())
}

/// What a program of ours hears that asks.
fn asked(count: u32) -> Result<String> {
    let guest = GUEST.find()?;
    let rules = Rules {
        cpus_seen: Some(CpusSeen::Count(count)),
        ..Rules::default()
    };
    let mut launch = Launch::new(&guest, &[], &rules, [])?;
    let said = stream_file("heapmark-cpus")?;
    let stdout = said.try_clone().context("cannot hand on a memory file")?;
    let word = heapmark_guest::cpus::WORD.to_string_lossy();
    launch.command.arg(&guest).args([&word, "-"]);
    launch.command.stdin(Stdio::null()).stdout(stdout);
    let end = launch.run(SHORT, &AtomicBool::new(false), None)?;
    end.was_started(&guest).context(
        "--cpus-seen: the kernel does not let heapmark answer for a program (seccomp user notification, Linux 5.5; not below another \
         program that does the same)",
    )?;
    Ok(text(&said, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_sees_as_many_cpus_as_it_is_told() {
        for count in [64, 200] {
            let wanted = format!("{count} 0-{}\n", count - 1);
            assert_eq!(asked(count).unwrap(), wanted);
        }
    }
}
