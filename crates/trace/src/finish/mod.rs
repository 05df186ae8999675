//! Turns a capture into a trace: streams become one order, addresses become tokens. Takes memory
//! for the live objects only, whatever the length.

mod capture;
mod clock;
mod inherited;
mod merge;
mod process_tree;
mod stream;

use super::addresses::Mended;
use super::check::alone;
use super::fault::Result;
use super::{Done, Event, Head, MOST_THREADS, Totals, Writer};
use capture::Capture;
use inherited::Heritage;
use merge::{Merge, MergeStep};
use process_tree::{Family, Turn};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The share of repairs among all events above which the order of a trace is doubtful.
const MOST_REPAIRS: f64 = 1e-4;
/// The most captures of processes that forked one another that are read at once, each with a chunk
/// of its trace in memory; further children wait.
const MOST_AT_ONCE: usize = 16;

/// The result of finishing a capture.
pub struct Finished {
    /// The metadata about the process.
    pub head: Head,
    /// The totals of the trace that was written.
    pub totals: Totals,
    /// Objects that the parent had when it forked this process.
    pub inherited: u64,
    /// The inconsistencies that were repaired.
    pub mended: Mended,
    /// Calls that use addresses which were never given out; left out of the trace.
    pub unknown_uses: u64,
    /// Events that the recorder could not write, and those of chunks that cannot be read.
    pub lost: u64,
    /// Bytes of the process's events in the capture.
    pub capture_bytes: u64,
    /// Peak of the live bytes.
    pub peak_live_bytes: u64,
    /// Faults of the capture, a line each.
    pub damage: Vec<String>,
}

impl Finished {
    /// Returns the number of events of the process itself, without those inherited from its parent.
    pub fn own_events(&self) -> u64 {
        // The `Inherit` event is not the process's own either.
        self.totals.events - self.inherited - u64::from(self.inherited > 0)
    }

    /// Returns the number of repairs that may be due to a wrong order; `unseen` ones are not, if
    /// the process has only one thread.
    pub fn doubts(&self) -> u64 {
        let unseen = if self.totals.threads > 1 {
            self.mended.unseen
        } else {
            0
        };
        self.mended.repairs() + unseen
    }

    /// Returns whether so much was repaired that the order of events is doubtful.
    pub fn is_doubtful(&self) -> bool {
        self.doubts() as f64 > self.totals.events as f64 * MOST_REPAIRS
    }
}

/// Returns the metadata that a capture holds about its process.
pub fn head_of(capture: &Path) -> Result<Head> {
    Ok(Capture::open(capture)?.head)
}

/// Makes the trace of one capture. If its process was forked and the parent's capture lies beside
/// it, the trace begins with the inherited objects.
pub fn finish(capture: &Path, to: &mut dyn Write) -> Result<Finished> {
    let mut to = Some(to);
    let mut finished = None;
    finish_all(&[capture.to_path_buf()], Done::default(), &mut |one| {
        finished = to.take().map(|to| one.finish(to, &mut |_| {}))
    });
    finished.expect("each capture has its turn")
}

/// Makes traces from captures: calls `each` for every capture, and `each` chooses the trace's
/// destination. Captures of processes that forked each other are read once. Adds the bytes that
/// have been read to `done`.
pub fn finish_all(captures: &[PathBuf], done: Done, each: &mut dyn FnMut(Unfinished)) {
    let family = Family::of(captures, done);
    while let Some(turn) = family.next() {
        begin(turn, &family, each);
    }
}

/// Lets `each` finish a capture, or reads it only for its children.
fn begin(turn: Turn, family: &Family, each: &mut dyn FnMut(Unfinished)) {
    let wanted = turn.member.wanted;
    let capture = Unfinished {
        turn,
        family,
        without_argv: false,
        killed_by: None,
    };
    if wanted {
        each(capture);
    } else if let Ok(file) = Capture::open(capture.path()) {
        // A parent's faults do not matter to its children.
        let _ = capture.merge(&file, each, |_, _| Ok(()));
    }
}

/// A capture that can be finished now.
pub struct Unfinished<'f> {
    turn: Turn,
    family: &'f Family,
    /// Whether the words of the command line are left out of the trace.
    pub without_argv: bool,
    /// The signal that killed the process, which the recorder could not record.
    pub killed_by: Option<String>,
}

impl Unfinished<'_> {
    /// Returns the path of the capture.
    pub fn path(&self) -> &Path {
        &self.turn.member.path
    }

    /// Writes the trace. If the process forks, `each` gets the child, as in [`finish_all`].
    pub fn finish(self, to: &mut dyn Write, each: &mut dyn FnMut(Unfinished)) -> Result<Finished> {
        let mut capture = Capture::open(self.path())?;
        capture.done = self.family.done.clone();
        let mut damage = std::mem::take(&mut capture.damage);
        let mut head = capture.head.clone().without(stream::EVENTS);
        if self.without_argv {
            head = head.without("argv.");
        }
        if let Some(signal) = &self.killed_by {
            head.set("end.signal", signal);
        }
        let mut writer = Writer::new(to, &head)?;
        let inherited = self.turn.inherited.len() as u64;
        if inherited > 0 {
            writer.write(0, &Event::Inherit { objects: inherited })?;
        }
        let mut impossible = 0;
        let mut first = None;
        let mut beyond = 0;
        let Merge {
            streams,
            addresses,
            ns,
            ..
        } = self.merge(&capture, each, |thread, event| {
            let highest = match event {
                Event::ThreadStart { child } => thread.max(*child),
                _ => thread,
            };
            if beyond > 0 || highest >= MOST_THREADS {
                beyond += 1;
                return Ok(());
            }
            if let Err(fault) = alone(event) {
                impossible += 1;
                first.get_or_insert(fault);
            }
            writer.write(thread, event)
        })?;
        if beyond > 0 {
            damage.push(format!(
                "a trace has {MOST_THREADS} threads at most: it ends before the first further one"
            ));
        }
        let mut lost = capture.dropped + beyond;
        let mut capture_bytes = 0;
        for stream in streams {
            lost = lost.saturating_add(stream.lost);
            capture_bytes += stream.bytes;
            damage.extend(stream.damage);
        }
        if let Some(length) = capture.shortened.get() {
            damage.push(format!(
                "the file became shorter while it was read: what stood behind byte {length} is lost"
            ));
        }
        damage.extend(
            first.map(|first| format!("{impossible} events cannot have happened: {first}")),
        );
        // The program may have gone on for long after its last event.
        let end_ns: Option<u64> = capture.head.number("end.ns");
        if let Some(ns) = end_ns.filter(|end| *end > ns) {
            writer.write(0, &Event::Clock { ns })?;
        }
        if lost > 0 {
            writer.write(0, &Event::Dropped { count: lost })?;
        }
        if let Some(peak_rss_bytes) = capture.head.number("end.peak-rss-bytes") {
            writer.write(0, &Event::End { peak_rss_bytes })?;
        }
        Ok(Finished {
            head: capture.head,
            totals: writer.finish()?,
            inherited,
            mended: addresses.mended,
            unknown_uses: addresses.unknown_uses,
            lost,
            capture_bytes,
            peak_live_bytes: addresses.most_bytes,
            damage,
        })
    }

    /// Emits the inherited objects of the process and its own events; a child begins at its fork.
    fn merge<'c>(
        self,
        capture: &'c Capture,
        each: &mut dyn FnMut(Unfinished),
        mut put: impl FnMut(u32, &Event) -> Result<()>,
    ) -> Result<Merge<'c>> {
        let turn = self.turn;
        let family = self.family;
        let process = turn.member.process.filter(|process| family.awaits(process));
        let mut heritage = process.map(|process| (process, Heritage::default()));
        let mut merge = Merge::new(capture, turn.inherited);
        while let Some(step) = merge.next() {
            match step {
                MergeStep::Event(thread, event) => {
                    if let Some((_, known)) = &mut heritage {
                        known.follow(thread, &event);
                    }
                    put(thread, &event)?;
                }
                MergeStep::Forking(moment) => {
                    if let Some((process, known)) = &heritage
                        && let Some(member) = family.born(process, moment)
                    {
                        let child = Turn {
                            member,
                            inherited: known.alive(&merge.addresses),
                            depth: turn.depth + 1,
                        };
                        if child.depth < MOST_AT_ONCE {
                            begin(child, family, each);
                        } else {
                            family.later(child);
                        }
                        if !family.awaits(process) {
                            heritage = None;
                        }
                    }
                }
            }
            if !turn.member.wanted && heritage.is_none() {
                break;
            }
        }
        Ok(merge)
    }
}
