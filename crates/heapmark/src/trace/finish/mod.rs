//! A capture becomes a trace: streams become one order, addresses become tokens. Memory is what is alive, whatever the length.

mod capture;
mod clock;
mod family;
mod merge;
mod stream;

use super::addresses::Mended;
use super::fault::Fault;
use super::{Event, Head, Totals, Writer};
use capture::Capture;
use merge::Merge;
use std::io::Write;
use std::path::Path;

/// From this share of repairs on, the order of a trace is not to be trusted.
const MOST_REPAIRS: f64 = 1e-4;

/// What became of a capture.
#[derive(Debug)]
pub struct Finished {
    /// What is known of the process.
    pub head: Head,
    /// What was written.
    pub totals: Totals,
    /// Objects that the parent had when it made this process.
    pub inherited: u64,
    /// What did not fit.
    pub mended: Mended,
    /// Calls about addresses that nobody had been given, left out.
    pub unknown_uses: u64,
    /// Events that the recorder could not write, and those of chunks that cannot be read.
    pub lost: u64,
    /// What is wrong with the capture, a line each.
    pub damage: Vec<String>,
}

impl Finished {
    /// Events of the process itself, without what it has from its parent.
    pub fn own_events(&self) -> u64 {
        // The announcement is an event, too.
        self.totals.events - self.inherited - u64::from(self.inherited > 0)
    }

    /// Repairs that a wrong order may be the reason of. In a process of one thread there is none.
    pub fn doubts(&self) -> u64 {
        self.mended.repairs() + if self.totals.threads > 1 { self.mended.unseen } else { 0 }
    }

    /// Whether so much was repaired that the order of events is doubtful.
    pub fn is_doubtful(&self) -> bool {
        self.doubts() as f64 > self.totals.events as f64 * MOST_REPAIRS
    }
}

/// Makes a trace of a capture. Where the process was forked by one whose capture lies beside it, it begins with what that had.
pub fn finish<W: Write>(path: &Path, to: W) -> Result<Finished, Fault> {
    let capture = Capture::open(path)?;
    let inherited = family::inherited(path, &capture.head);
    let mut writer = Writer::new(to, &capture.head)?;
    let mut merge = Merge::new(&capture);
    let count = inherited.len() as u64;
    if count > 0 {
        writer.write(0, &Event::Inherit { objects: count })?;
    }
    let mut wrong = Ok(());
    for (address, event) in inherited {
        merge.inherit(address, event, &mut |thread, event| {
            if wrong.is_ok() {
                wrong = writer.write(thread, &event);
            }
        });
    }
    wrong?;
    let merged = merge.run(|_, thread, event| writer.write(thread, &event).map(|()| true))?;
    let lost = capture.dropped.saturating_add(merged.lost);
    if lost > 0 {
        writer.write(0, &Event::Dropped { count: lost })?;
    }
    if let Some(peak_rss_bytes) = capture.head.get("end.peak-rss-bytes").and_then(|text| text.parse().ok()) {
        writer.write(0, &Event::End { peak_rss_bytes })?;
    }
    let mut damage = capture.damage.clone();
    damage.extend(merged.damage);
    let (_, totals) = writer.finish()?;
    let (mended, unknown_uses) = (merged.mended, merged.unknown_uses);
    Ok(Finished { head: capture.head.clone(), totals, inherited: count, mended, unknown_uses, lost, damage })
}
