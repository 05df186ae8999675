//! A case with the clock by which it is judged.

use super::clock::Clock;
use super::group::CaseGroups;
use super::table::Table;

/// A case and the processes by which it is judged.
#[derive(Clone, Copy)]
pub struct JudgedCase<'a> {
    pub case: &'a Table,
    pub table: &'a CaseGroups<'a>,
    /// The clock by which the case is judged.
    pub clock: Clock,
}

impl<'a> JudgedCase<'a> {
    pub fn new(case: &'a Table, table: &'a CaseGroups<'a>) -> JudgedCase<'a> {
        JudgedCase {
            case,
            table,
            clock: Clock::Wall,
        }
    }

    /// Returns the case, judged by another clock.
    pub fn by(&self, clock: Clock) -> JudgedCase<'a> {
        JudgedCase { clock, ..*self }
    }
}
