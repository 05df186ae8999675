//! Duets: the baseline and a candidate take turns, each in a stream of fresh processes. Two duets of kernels run at a time,
//! on two CPUs.

use super::Progress;
use super::calibrate::Pace;
use super::cpus::Cpus;
use super::lanes::lanes;
use super::processes::Processes;
use super::run::{Session, now};
use super::runner::{Due, DueDuet, Observed, SideEnded};
use crate::execute::lanes::spread;
use crate::execute::turns::{Over, Side, running_ns};
use crate::execute::{Attempt, Duet, held};
use crate::observe::Interference;
use crate::observe::machine::{allowed_cpus, cores};
use crate::plan::{Cell, Part, Turn};
use crate::store::RunFile;
use anyhow::Result;

/// The difference in padding between consecutive processes of a stream, modulo 4096.
const PADDING_STEP: u32 = 1237;

/// The most duets at a time: more would share too much of the caches and of the memory.
const MOST_LANES: usize = 2;

impl Session {
    /// Whether the processes of a part are a duet.
    pub(super) fn takes_turns(&self, part: &Part) -> bool {
        self.due_turn(part).is_some()
    }

    /// Runs the duets of a case in a block, unless one side is known or has failed too often: the other side alone
    /// could not be compared with anything.
    pub(super) fn duets(
        &mut self,
        block: u32,
        parts: &[Part],
        head: &RunFile,
        paces: &[Pace],
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut work = Vec::new();
        for part in parts {
            let part = self.whole(part.clone());
            match self.due_duet(&part, paces)? {
                Some(duet) => work.push(duet),
                None => part.iter().for_each(|_| progress.step(false)),
            }
        }
        let Some(first) = work.first() else {
            return Ok(());
        };
        progress.begin(&first.sides[1].cell.id);
        // All of these duets are of one case.
        let lanes = self.lanes_of(first).min(work.len());
        let runner = self.runner.clone();
        runner.duets(lanes, &work, &mut |(index, sides)| {
            for (due, side) in work[index].sides.iter().zip(sides) {
                if let Some((started, observed)) = side {
                    self.ended(due, started, observed, progress)?;
                }
                progress.step(true);
            }
            progress.part(block, head, self.known.all(), self.used_s());
            Ok(())
        })
    }

    pub(super) fn due_turn(&self, part: &[Cell]) -> Option<Turn> {
        let [one, other] = part else {
            return None;
        };
        self.plan.turn([one, other])
    }

    fn due_duet(&self, part: &Part, paces: &[Pace]) -> Result<Option<DueDuet>> {
        let (Some(turn), [one, other]) = (self.due_turn(part), &part[..]) else {
            return Ok(None);
        };
        if !part.iter().all(|cell| self.is_due(cell)) {
            return Ok(None);
        }
        let pace = &paces[one.case];
        let due = |cell: &Cell| self.measured(cell, pace.iterations, pace.timeout);
        Ok(Some(DueDuet {
            turn,
            sides: [due(one)?, due(other)?],
            largest_bytes: self.largest_bytes(one),
        }))
    }

    /// How many duets like this one may run at a time. Duets of kernels each run on a core of their own, if there is
    /// enough memory for both sides. Two duets of a command could disturb each other by what the command does outside
    /// of its process.
    fn lanes_of(&self, duet: &DueDuet) -> usize {
        let cell = &duet.sides[0].cell;
        let is_kernel = self.case(cell).command().is_none();
        if !is_kernel {
            return 1;
        }
        let by_memory = lanes(1, 4 * self.most_held_bytes(cell), self.memory_bytes);
        by_memory.min(cores().len()).clamp(1, MOST_LANES)
    }
}

impl Processes {
    /// Runs both sides until they have done enough. A side has no result if the other failed first.
    pub(super) fn take_turns(&self, due: &DueDuet, cpus: &Cpus) -> Result<[Option<SideEnded>; 2]> {
        let first = &due.sides[0].cell;
        let cpu = cpus.take(first.seed.wrapping_add(u64::from(first.part)))?;
        let duet = Duet::new(due.turn, allowed_cpus(), cpu)?;
        // The CPU time that other duets have used so far counts as heapmark's own, too.
        let machine = || {
            let mut now = held(&self.counters).snapshot();
            now.own_cpu_ns += running_ns();
            now
        };
        let before = machine();
        let mut ended = [None, None];
        let one = |index: &usize| {
            let side = duet.side(*index);
            let started = now();
            let stream = self.stream(&due.sides[*index], &side);
            if !matches!(&stream, Ok(Some(attempt)) if attempt.outcome.is_ok()) {
                // Nothing can be compared with a process that failed.
                duet.end();
            }
            Ok(stream?.map(|attempt| (started, attempt)))
        };
        let done = std::thread::scope(|scope| {
            scope.spawn(|| duet.conduct());
            let done = spread(2, &[0, 1], one, |index, made| {
                ended[index] = made;
                Ok(())
            });
            duet.end();
            done
        });
        cpus.give_back(cpu);
        done?;
        let interference = Interference::between(&before, &machine());
        let usages = ended.each_ref().map(|side: &Option<(String, Attempt)>| {
            let usage = side
                .as_ref()
                .and_then(|(_, attempt)| attempt.usage.as_ref());
            usage.map_or((0, 0), |usage| (usage.cpu_ns(), usage.involuntary_switches))
        });
        let taken = duet.taken(usages, cpus.lanes);
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

    /// Starts a process again until the duet is over. Returns the results of all that ended by themselves as one.
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
