//! Signals that ask heapmark to end: Ctrl-C, SIGTERM, a closed terminal. All get the same answer,
//! whatever is running.

use super::{Exit, say};
use crate::execute::child::end_all;
use crate::file::abandon_drafts;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a signal is answered.
pub enum Answer {
    /// Prints this text and ends; leaves no half-written file and no process behind.
    End(&'static str),
    /// The running work polls this flag and ends in its own way. A second signal ends it at once.
    Stop(Arc<AtomicBool>),
    /// The signal is meant for the program that heapmark has started for the user.
    PassOn,
}

static ANSWER: Mutex<Answer> = Mutex::new(Answer::End(
    "interrupted before anything was measured or written; what was built stays",
));

/// Whether work was asked to end.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Two signals within this time count as one: `timeout` signals a process, and then its group,
/// which includes the process.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Sets the answer from now on.
pub fn answer(answer: Answer) {
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = answer;
}

/// Returns whether a signal has asked running work to end, so that the next part of that work must not begin.
pub fn has_stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// Starts to watch for signals.
pub fn watch() -> Result<()> {
    let mut watched = vec![SIGINT, SIGTERM];
    // `nohup` asks for heapmark to go on without its terminal.
    if !is_ignored(SIGHUP) {
        watched.push(SIGHUP);
    }
    // With a handler, a file beyond `ulimit -f` is an error that can be reported. Processes that heapmark starts get the default action
    // again, as for each signal with a handler.
    if !is_ignored(SIGXFSZ) {
        flag::register(SIGXFSZ, Arc::default()).context("cannot watch for signals")?;
    }
    let mut signals = Signals::new(watched).context("cannot watch for signals")?;
    let answer_all = move || {
        let mut first = None;
        for _ in signals.forever() {
            let again = first.get_or_insert_with(Instant::now).elapsed() > AT_ONCE;
            match &*ANSWER.lock().unwrap_or_else(PoisonError::into_inner) {
                Answer::Stop(stop) if !again => {
                    STOPPED.store(true, Ordering::SeqCst);
                    stop.store(true, Ordering::SeqCst);
                }
                Answer::Stop(_) => end("interrupted again: ended at once; what was stored stays"),
                Answer::End(words) => end(words),
                // The next signal may be meant for heapmark.
                Answer::PassOn => first = None,
            }
        }
    };
    std::thread::Builder::new()
        .spawn(answer_all)
        .context("cannot watch for signals: no thread (ulimit -v, ulimit -u)")?;
    Ok(())
}

fn end(words: &str) -> ! {
    abandon_drafts();
    say(words);
    // Silences other threads, which fail when their processes end and would print that.
    let _silence = std::io::stderr().lock();
    end_all();
    // SAFETY: ends the process. Not `exit`, which would wait for a thread that writes to stdout.
    unsafe { libc::_exit(Exit::Interrupted as i32) }
}

/// Returns whether a signal is ignored, as whoever started heapmark may have asked for.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: writes into a local, for which zeros are valid.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}
