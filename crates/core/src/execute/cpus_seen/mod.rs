//! Reports to a command more CPUs than this machine has (`try --cpus-seen`): allocators choose their number of arenas
//! by the number of CPUs, and in a container with a smaller CPU quota they still find all CPUs of the machine.
//!
//! A preloaded library cannot do this: glibc's malloc asks by a system call of its own, and Go and static programs load
//! no library. So the kernel asks heapmark (seccomp's user notification; the launcher sets the filter, `answered.rs` of
//! the guest) at each `sched_getaffinity`, and at each opening of a file for reading. heapmark answers only the calls
//! that reveal the number of CPUs ([`files`]); the kernel carries out all others. If a program asks in another way
//! (`access`, `stat`, `getcpu`, 32-bit programs), it gets the machine's own answer, and its threads run on the
//! machine's own CPUs.

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

/// The longest time that a process which only asks for the number of CPUs may take.
const SHORT: Duration = Duration::from_secs(20);

/// Refuses a plan that sets the number of CPUs reported to commands, if this machine cannot do that.
pub fn knows_cpus_seen(plan: &Plan) -> Result<()> {
    let planned = plan
        .cases
        .iter()
        .find_map(|case| match plan.cpus_seen_of(case) {
            Some(CpusSeen::Count(count)) => Some(count),
            _ => None,
        });
    let Some(count) = planned else {
        return Ok(());
    };
    let cpus = files::possible();
    ensure!(
        cpus <= count,
        "--cpus-seen {count}: this machine has {cpus}, and a program that believes in fewer would run on CPUs that it has no \
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

/// Starts a program of heapmark's own, and returns what it gets when it asks for the number of CPUs.
fn asked(count: u32) -> Result<String> {
    let guest = GUEST.find()?;
    let rules = Rules {
        cpus_seen: Some(CpusSeen::Count(count)),
        ..Rules::default()
    };
    let mut launch = Launch::new(&guest, &[], &rules, [])?;
    let output = stream_file("heapmark-cpus")?;
    let stdout = output.try_clone().context("cannot hand on a memory file")?;
    let word = heapmark_guest::cpus::WORD.to_string_lossy();
    launch.command.arg(&guest).args([&word, "-"]);
    launch.command.stdin(Stdio::null()).stdout(stdout);
    let end = launch.run(SHORT, &AtomicBool::new(false), None)?;
    end.was_started(&guest).context(
        "--cpus-seen: the kernel does not let heapmark answer for a program (seccomp user notification, Linux 5.5; not below another \
         program that does the same)",
    )?;
    Ok(text(&output, 0))
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
