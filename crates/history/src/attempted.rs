//! How far the versions of a history have come: a version without numbers is measured again, unless it is known to fail.

use heapmark_core::analyse::compare::Side;
use heapmark_core::store::{Purpose, Record};

/// The versions of a history's runs, by what is known of them.
#[derive(Debug, Default, PartialEq)]
pub struct Attempted {
    /// Versions with numbers, beside a reference with numbers.
    pub measured: Vec<String>,
    /// Versions whose library was there, and failed in each process.
    pub failing: Vec<String>,
}

impl Attempted {
    /// What these runs have shown.
    pub fn of(runs: &[Side]) -> Attempted {
        let mut attempted = Attempted::default();
        for run in runs {
            let has = |name: &str, is_it: fn(&Record) -> bool| {
                let mut own = run.records.iter().filter(|one| one.allocator == name);
                own.any(is_it)
            };
            let has_numbers = |name: &str| {
                has(name, |one| {
                    one.purpose.is_of_a_block() && one.outcome.is_ok()
                })
            };
            let has_failed = |name: &str| {
                has(name, |one| {
                    one.purpose != Purpose::Corners && !one.outcome.is_ok()
                })
            };
            let can_compare = has_numbers(&run.head.plan.baseline);
            for info in &run.head.allocators {
                let name = &info.name;
                if has_numbers(name) && can_compare {
                    attempted.measured.push(name.clone());
                } else if !has_numbers(name) && has_failed(name) && !info.sha256.is_empty() {
                    attempted.failing.push(name.clone());
                }
            }
        }
        attempted
    }

    /// Whether a version has numbers.
    pub fn is_measured(&self, name: &str) -> bool {
        self.measured.iter().any(|measured| measured == name)
    }

    /// Whether measuring a version again would show nothing new.
    pub fn is_known(&self, name: &str) -> bool {
        self.is_measured(name) || self.failing.iter().any(|failing| failing == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_run::FakeRun;
    use heapmark_core::execute::Outcome;

    /// A run of three versions, `v3` as reference, where one failed so, and has a library or none.
    fn run_where(failed: &str, outcome: &Outcome, library: bool) -> Attempted {
        let fake = FakeRun::new(&["v3", "v1", "v2"], &["larson"], 6);
        let mut fake = fake.fill(|_, _, _| 50.0);
        // If the reference fails, other versions are checked only.
        fake.records
            .retain(|record| failed != "v3" || !record.purpose.is_of_a_block());
        let records = fake.records.iter_mut();
        for record in records.filter(|record| record.allocator == failed) {
            record.outcome = outcome.clone();
        }
        for name in ["v1", "v2", "v3"] {
            let hash = (name != failed || library).then(|| "hash".to_owned());
            fake.allocator(name).sha256 = hash.into_iter().collect();
        }
        Attempted::of(&[Side {
            head: &fake.run,
            records: &fake.records,
        }])
    }

    #[test]
    fn what_has_no_numbers_is_measured_again_unless_it_fails_by_itself() {
        let crash = Outcome::Crash {
            signal: "SIGABRT".into(),
            phase: "run".into(),
        };
        let absent = Outcome::NotLoaded {
            why: "no such file".into(),
        };
        let known = |failed: &str, outcome: &Outcome, library: bool| {
            let attempted = run_where(failed, outcome, library);
            let names = ["v1", "v2", "v3"];
            (
                names.map(|name| attempted.is_known(name)),
                attempted.measured.len(),
            )
        };
        assert_eq!(known("", &crash, true), ([true; 3], 3));
        assert_eq!(known("v1", &absent, false), ([false, true, true], 2));
        assert_eq!(known("v1", &crash, true), ([true; 3], 2));
        assert_eq!(known("v3", &crash, true), ([false, false, true], 0));
    }
}
