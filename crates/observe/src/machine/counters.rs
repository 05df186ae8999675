//! The kernel's counters as numbers: `/proc/stat`, `/proc/pressure`, `/proc/vmstat` and `cpu.stat`.
//! Text in, numbers out.

use crate::memory::stat_words;
use std::ops::Add;

/// CPU time since the machine started, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuTicks {
    /// CPU time of programs and the kernel.
    pub programs: u64,
    /// CPU time of interrupts, including work that they deferred.
    pub interrupts: u64,
    /// CPU time that the hypervisor gave to others while one of this machine's CPUs was ready to
    /// run.
    pub steal: u64,
}

impl CpuTicks {
    /// Reads the ticks of the whole machine from the first line of /proc/stat.
    pub fn read(stat: &str) -> Option<CpuTicks> {
        CpuTicks::of_line(stat.lines().next()?.strip_prefix("cpu ")?)
    }

    /// Adds up the ticks of these CPUs; `cpus` is sorted. `None` unless each of them has a line: some containers number CPUs differently.
    pub fn of(stat: &str, cpus: &[usize]) -> Option<CpuTicks> {
        let numbered = stat
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix("cpu")?.split_once(' '));
        let wanted = numbered.filter(|(number, _)| {
            number
                .parse()
                .is_ok_and(|cpu| cpus.binary_search(&cpu).is_ok())
        });
        let ticks: Option<Vec<CpuTicks>> =
            wanted.map(|(_, rest)| CpuTicks::of_line(rest)).collect();
        ticks
            .filter(|ticks| ticks.len() == cpus.len())?
            .into_iter()
            .reduce(CpuTicks::add)
    }

    /// Reads the fields of a line; guests' time is already part of that of programs.
    fn of_line(line: &str) -> Option<CpuTicks> {
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let [
            user,
            nice,
            system,
            _idle,
            _waiting,
            interrupts,
            soft,
            steal,
            ..,
        ] = ticks[..]
        else {
            return None;
        };
        Some(CpuTicks {
            programs: user + nice + system,
            interrupts: interrupts + soft,
            steal,
        })
    }

    /// Returns the ticks that were not stolen.
    pub fn busy(&self) -> u64 {
        self.programs + self.interrupts
    }
}

impl Add for CpuTicks {
    type Output = CpuTicks;

    fn add(self, other: CpuTicks) -> CpuTicks {
        CpuTicks {
            programs: self.programs + other.programs,
            interrupts: self.interrupts + other.interrupts,
            steal: self.steal + other.steal,
        }
    }
}

/// Returns the user and system time of a process in clock ticks, from /proc/PID/stat.
pub fn process_ticks(stat: &str) -> Option<u64> {
    let mut times = stat_words(stat).skip(11).map(str::parse::<u64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

/// Pressure: at least one task was stalled for lack of a resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// Share of the last ten seconds in which tasks were stalled, in per cent.
    pub last_10s_percent: f64,
    /// Time for which tasks were stalled since the machine started, in microseconds.
    pub total_us: u64,
}

impl Stall {
    /// Reads the line `some` of a file of /proc/pressure.
    pub fn read(pressure: &str) -> Option<Stall> {
        let line = pressure
            .lines()
            .find_map(|line| line.strip_prefix("some "))?;
        let value = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key));
        Some(Stall {
            last_10s_percent: value("avg10=")?.parse().ok()?,
            total_us: value("total=")?.parse().ok()?,
        })
    }
}

/// How often, and for how long, a group was throttled because its CPU time was used up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttled {
    /// The number of periods in which the group was throttled.
    pub times: u64,
    /// The total time for which the group was throttled.
    pub total_ns: u64,
}

impl Throttled {
    /// Reads cpu.stat: version 2 of control groups reports microseconds, version 1 nanoseconds.
    pub fn read(cpu_stat: &str) -> Option<Throttled> {
        let microseconds = value(cpu_stat, "throttled_usec");
        Some(Throttled {
            times: value(cpu_stat, "nr_throttled")?,
            total_ns: microseconds
                .map(|us| us * 1000)
                .or_else(|| value(cpu_stat, "throttled_time"))?,
        })
    }
}

impl Add for Throttled {
    type Output = Throttled;

    fn add(self, other: Throttled) -> Throttled {
        Throttled {
            times: self.times + other.times,
            total_ns: self.total_ns + other.total_ns,
        }
    }
}

/// Returns the number after a key, in a file of lines `key number`.
pub fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        line.strip_prefix(key)?
            .strip_prefix(' ')?
            .trim()
            .parse()
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_stat_is_the_whole_machine() {
        let stat = "cpu  1400314 133698 287044 737821 5625 3 1357 1773 50 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 1 0\n";
        let expected = CpuTicks {
            programs: 1400314 + 133698 + 287044,
            interrupts: 3 + 1357,
            steal: 1773,
        };
        assert_eq!(CpuTicks::read(stat), Some(expected));
        assert_eq!(expected.busy(), expected.programs + expected.interrupts);
        for no in [
            "",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu  1 2 3 4 5 6 7",
            "cpu  1 2 x 4 5 6 7 8",
        ] {
            assert_eq!(CpuTicks::read(no), None, "{no}");
        }
    }

    #[test]
    fn some_cpus_are_the_sum_of_their_lines_and_of_nothing_if_one_has_none() {
        let stat = "cpu  9 9 9 9 9 9 9 9\ncpu0 1 0 0 5 0 0 0 1\ncpu1 2 0 0 5 0 0 0 2\ncpu10 4 1 0 5 0 3 0 4 0 0\nintr 1 0\n";
        let ticks = |programs, interrupts, steal| {
            Some(CpuTicks {
                programs,
                interrupts,
                steal,
            })
        };
        assert_eq!(CpuTicks::of(stat, &[1]), ticks(2, 0, 2));
        assert_eq!(CpuTicks::of(stat, &[0, 10]), ticks(6, 3, 5));
        assert_eq!(
            (CpuTicks::of(stat, &[0, 2]), CpuTicks::of(stat, &[])),
            (None, None)
        );
    }

    #[test]
    fn a_process_is_its_user_and_its_system_time_whatever_it_is_called() {
        assert_eq!(
            process_ticks("7 (a) b (c) S 2 2 3 4 5 6 7 8 9 10 11 12 30 40 20 0"),
            Some(23)
        );
        assert_eq!(
            (process_ticks("7 (a) S 1 2"), process_ticks("")),
            (None, None)
        );
    }

    #[test]
    fn pressure_is_the_line_some() {
        let text = "some avg10=1.46 avg60=0.95 avg300=0.32 total=78948091\nfull avg10=1.04 avg60=0.71 avg300=0.21 total=34459662\n";
        assert_eq!(
            Stall::read(text),
            Some(Stall {
                last_10s_percent: 1.46,
                total_us: 78948091
            })
        );
        assert_eq!(
            Stall::read("full avg10=1.04 avg60=0.71 avg300=0.21 total=34459662\n"),
            None
        );
    }

    #[test]
    fn both_versions_of_control_groups_tell_throttling() {
        let two = "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 9\nnr_throttled 4\nthrottled_usec 2500\n";
        let one =
            "nr_periods 9\nnr_throttled 4\nthrottled_time 2500000\nnr_bursts 0\nburst_time 0\n";
        let expected = Some(Throttled {
            times: 4,
            total_ns: 2_500_000,
        });
        assert_eq!(
            (Throttled::read(two), Throttled::read(one)),
            (expected, expected)
        );
        assert_eq!(
            Throttled::read("usage_usec 100\nuser_usec 60\nsystem_usec 40\n"),
            None
        );
    }

    #[test]
    fn a_key_is_a_whole_word() {
        let text = "pswpin_all 1\npswpin 2\npswpout 3\n";
        assert_eq!(
            (
                value(text, "pswpin"),
                value(text, "pswpout"),
                value(text, "pswp")
            ),
            (Some(2), Some(3), None)
        );
    }
}
