//! Duets: the baseline and a candidate take turns on one CPU, each in a stream of fresh processes.

use super::processes::Processes;
use super::run::now;
use super::runner::{Due, Observed, SideEnded};
use crate::execute::child::end_orphans;
use crate::execute::lanes::side_by_side;
use crate::execute::turns::{Over, Side};
use crate::execute::{Attempt, Duet, held};
use crate::observe::Interference;
use crate::observe::machine::allowed_cpus;
use crate::plan::Turn;
use anyhow::Result;

/// The padding of a later process of a stream: another one of the 4096.
const PADDING_STEP: u32 = 1237;

impl Processes {
    /// Runs both sides until they have done enough. A side has no result if the other failed first.
    pub(super) fn take_turns(&self, turn: Turn, pair: [&Due; 2]) -> Result<[Option<SideEnded>; 2]> {
        let first = &pair[0].cell;
        let choice = first.seed.wrapping_add(u64::from(first.part));
        let duet = Duet::new(turn, allowed_cpus(), choice)?;
        let before = held(&self.counters).snapshot();
        let mut ended = [None, None];
        let one = |index: &usize| {
            let side = duet.side(*index);
            let started = now();
            let stream = self.stream(pair[*index], &side);
            if !matches!(&stream, Ok(Some(attempt)) if attempt.outcome.is_ok()) {
                // Nothing can be compared with a process that failed.
                duet.end();
            }
            Ok(stream?.map(|attempt| (started, attempt)))
        };
        let done = std::thread::scope(|scope| {
            scope.spawn(|| duet.conduct());
            let done = side_by_side(2, &[0, 1], one, |index, made| {
                ended[index] = made;
                Ok(())
            });
            duet.end();
            done
        });
        end_orphans();
        done?;
        let interference = Interference::between(&before, &held(&self.counters).snapshot());
        let usages = ended.each_ref().map(|side: &Option<(String, Attempt)>| {
            let usage = side
                .as_ref()
                .and_then(|(_, attempt)| attempt.usage.as_ref());
            usage.map_or((0, 0), |it| (it.cpu_ns(), it.involuntary_switches))
        });
        let taken = duet.taken(usages);
        let mut sides = ended.into_iter().zip(taken).map(|(side, taken)| {
            let (started, mut attempt) = side?;
            if let Some(measurement) = &mut attempt.measurement {
                measurement.turns = Some(taken);
            }
            let observed = Observed {
                interference: attempt.usage.is_some().then_some(interference),
                ..Observed::from(attempt)
            };
            Some((started, observed))
        });
        Ok([sides.next().flatten(), sides.next().flatten()])
    }

    /// Starts a process again until the duet is over: the results of all that ended by themselves as one.
    fn stream(&self, due: &Due, side: &Side) -> Result<Option<Attempt>> {
        let mut job = due.job.clone();
        job.side = Some(side.clone());
        let mut stream: Option<Attempt> = None;
        loop {
            let attempt = match self.start(due, &job, None) {
                Err(error) if error.is::<Over>() => return Ok(stream),
                attempt => attempt?,
            };
            let cpu_ns = attempt.usage.as_ref().map_or(0, |usage| usage.cpu_ns());
            let is_ok = attempt.outcome.is_ok();
            stream = Some(match stream {
                None => attempt,
                Some(before) => before.followed_by(attempt),
            });
            if !is_ok || side.has_done(cpu_ns) {
                return Ok(stream);
            }
            job.padding = (job.padding + PADDING_STEP) % 4096;
        }
    }
}
