//! Long work reports its progress on stderr after two seconds: on a terminal in one line that is
//! rewritten, elsewhere in plain lines, each after twice the time of the previous one.

use super::{is_quiet, say};
use crate::file::length;
use crate::report::{plain, units};
use heapmark_trace::Done;
use indicatif::{ProgressBar, ProgressStyle};
use std::convert::Infallible;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Work that takes less time than this reports nothing.
const AFTER: Duration = Duration::from_secs(2);
/// The interval at which the line on a terminal is rewritten.
const ANEW: Duration = Duration::from_millis(250);

/// Long work, which reports its progress as long as this value lives.
pub struct Long {
    done: Done,
    /// The thread that prints progress, and the sender whose drop ends that thread.
    teller: Option<(Sender<Infallible>, JoinHandle<()>)>,
}

impl Long {
    /// Starts reporting on work named `what` over this many bytes; 0 if the size is unknown.
    pub fn new(what: impl Into<String>, bytes: u64) -> Long {
        if is_quiet() {
            return Long::silent();
        }
        let done = Done::default();
        let what = what.into();
        let began = Instant::now();
        let (here, there) = channel();
        let seen = done.clone();
        let teller = move || {
            let line = || line(&what, seen.bytes(), bytes, began.elapsed());
            if std::io::stderr().is_terminal() {
                rewrite(&there, line)
            } else {
                repeat(&there, line)
            }
        };
        // If no thread can be started, there is no progress line; the work is done all the same.
        let teller = thread::Builder::new().spawn(teller).ok();
        Long {
            done,
            teller: teller.map(|teller| (here, teller)),
        }
    }

    /// Starts reporting on work over a whole file. The length of a pipe is not known.
    pub fn on(file: &Path, what: impl Into<String>) -> Long {
        Long::new(what, length(file))
    }

    /// Silent work: its results stream to a terminal or to another program, which may use the
    /// screen.
    pub fn silent() -> Long {
        Long {
            done: Done::default(),
            teller: None,
        }
    }

    /// The counter that the work adds to.
    pub fn done(&self) -> Done {
        self.done.clone()
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        if let Some((end, teller)) = self.teller.take() {
            drop(end);
            let _ = teller.join();
        }
    }
}

/// Waits; returns whether the work goes on.
fn goes_on(work: &Receiver<Infallible>, pause: Duration) -> bool {
    work.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
}

fn rewrite(work: &Receiver<Infallible>, line: impl Fn() -> String) {
    if !goes_on(work, AFTER) {
        return;
    }
    let bar = styled(ProgressBar::new_spinner(), "{wide_msg}");
    loop {
        bar.set_message(plain(&line()));
        bar.tick();
        if !goes_on(work, ANEW) {
            return bar.finish_and_clear();
        }
    }
}

/// Gives a bar the look of a template.
pub fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Formats the remaining time: `at most 1 min 20 s left`.
pub fn time_left(how: &str, seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ ..60 => format!("{how} {seconds} s left"),
        seconds => format!("{how} {} min {:02} s left", seconds / 60, seconds % 60),
    }
}

fn repeat(work: &Receiver<Infallible>, line: impl Fn() -> String) {
    let mut pause = AFTER;
    while goes_on(work, pause) {
        say(line());
        pause *= 2;
    }
}

/// A line of progress: `trace stats a.trace: 43 %, about 12.0 s left`.
fn line(what: &str, done: u64, all: u64, passed: Duration) -> String {
    let passed = passed.as_nanos() as f64;
    // The file may have grown while it is read.
    match (done.min(all), all) {
        (_, 0) => format!("{what}: for {} now", units::duration(passed)),
        (0, _) => format!("{what}: 0 %"),
        (done, all) => {
            let share = done as f64 / all as f64;
            format!(
                "{what}: {:.0} %, about {} left",
                (share * 100.0).floor(),
                units::duration(passed / share * (1.0 - share))
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_work_is_and_how_long_it_still_takes() {
        let second = Duration::from_secs(1);
        assert_eq!(line("a", 0, 100, 2 * second), "a: 0 %");
        assert_eq!(line("a", 25, 100, 3 * second), "a: 25 %, about 9.00 s left");
        assert_eq!(line("a", 150, 100, 3 * second), "a: 100 %, about 0 ns left");
        assert_eq!(line("a", 7, 0, 3 * second), "a: for 3.00 s now");
    }

    #[test]
    fn minutes_that_are_left_have_seconds() {
        assert_eq!(time_left("about", 59.0), "about 59 s left");
        assert_eq!(time_left("at most", 79.2), "at most 1 min 20 s left");
    }

    #[test]
    fn short_work_says_nothing_and_ends_at_once() {
        let (here, there) = channel();
        drop(here);
        repeat(&there, || panic!("it has ended"));
        rewrite(&there, || panic!("it has ended"));
    }
}
