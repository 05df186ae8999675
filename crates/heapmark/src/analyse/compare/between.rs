//! Compares two runs: the same rows, but no shared blocks.

use super::counterpart::{counterpart, differences};
use super::{Compared, Comparison, LeftAlone, PACED, Side, judge};
use crate::analyse::group::Group;
use crate::analyse::ratio::Ratio;
use crate::analyse::role::Role;
use crate::analyse::{counting, grid, judged};
use crate::metric::{Metric, Process};
use crate::plan::Case;
use crate::store::RunFile;
use heapmark_stats::{Tested, unpaired};

/// The value of a process that is compared.
type ProcessValue = fn(&Process) -> Option<f64>;

/// Compares every row of the new run with the same row of the old one.
pub fn between(old: &Side, new: &Side, by: &Metric, threshold: f64) -> Comparison {
    let Some(value) = super::of_process(by) else {
        return super::ranges::between(old, new, by, threshold);
    };
    let old_grid = grid(old.head, &counting(old.records));
    let new_grid = grid(new.head, &counting(new.records));
    let anchor = anchor(old.head, new.head);
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for (case, groups) in new.head.plan.cases.iter().zip(&new_grid) {
        let table = judged(new.head, case, groups);
        let floor_hides = table.floor_hides();
        let earlier =
            counterpart(case, &old.head.plan.cases).map(|place| old_grid[place].as_slice());
        for group in groups
            .iter()
            .filter(|group| !matches!(Role::of(group.allocator, ""), Role::AaCopy | Role::Floor))
        {
            let pair = earlier
                .as_ref()
                .map_err(String::as_str)
                .and_then(|earlier| {
                    let table = Tables {
                        old: earlier,
                        new: groups,
                        anchor,
                        value,
                        threshold: threshold.ln_1p(),
                    };
                    table.row(case, group, floor_hides)
                });
            match pair {
                _ if table.paced => left_out.push(LeftAlone::new(case, group, PACED)),
                Ok(row) => rows.push(row),
                Err(why) => left_out.push(LeftAlone::new(case, group, why)),
            }
        }
    }
    let differences = differences(old.head, new.head);
    // If one of the runs stopped as soon as it was precise enough, its alpha counts.
    let alpha = old.head.plan.alpha().min(new.head.plan.alpha());
    Comparison {
        rows: judge(rows, threshold, alpha),
        left_out,
        differences,
        anchor: anchor.map(String::from),
    }
}

/// One case in both runs.
struct Tables<'a, 'g> {
    old: &'a [Group<'g>],
    new: &'a [Group<'g>],
    anchor: Option<&'a str>,
    value: ProcessValue,
    threshold: f64,
}

impl<'g> Tables<'_, 'g> {
    /// A row and the values that it is judged by: `None` for the anchor, which shows how far the
    /// runs themselves differ.
    fn row(
        &self,
        case: &Case,
        group: &Group,
        floor_hides: bool,
    ) -> Result<(Compared, Option<Tested>), &'static str> {
        let name = group.allocator.name.as_str();
        let earlier = find(self.old, name).ok_or("the old run does not have it")?;
        let time = unpaired(
            &logs(group, self.value),
            &logs(earlier, self.value),
            self.threshold,
        );
        let time = time.ok_or("one of the runs has no numbers for it")?;
        let withheld = floor_hides.then_some(crate::analyse::Verdict::FloorHides);
        let row = Compared::new(case, group, &time, withheld);
        if self.anchor == Some(name) {
            return Ok((
                Compared {
                    verdict: None,
                    ..row
                },
                None,
            ));
        }
        let beside = self.anchor.and_then(|anchor| {
            let beside = |group: &Group, of: &[Group]| -> Option<Vec<f64>> {
                Some(
                    group
                        .log_ratios(find(of, anchor)?, self.value)
                        .into_values()
                        .collect(),
                )
            };
            unpaired(
                &beside(group, self.new)?,
                &beside(earlier, self.old)?,
                self.threshold,
            )
        });
        let beside_anchor = beside.map(|beside| Ratio::of_shift(beside.shift));
        Ok((
            Compared {
                beside_anchor,
                ..row
            },
            Some(beside.unwrap_or(time)),
        ))
    }
}

fn find<'a, 'g>(groups: &'a [Group<'g>], name: &str) -> Option<&'a Group<'g>> {
    groups.iter().find(|group| group.allocator.name == name)
}

fn logs(group: &Group, value: ProcessValue) -> Vec<f64> {
    group.values(|_, process| value(process).map(f64::ln))
}

/// The baseline of both runs, if it is the same library in both. The C library has no file here, so
/// its version is compared instead.
fn anchor<'a>(old: &RunFile, new: &'a RunFile) -> Option<&'a str> {
    let name = new.plan.baseline.as_str();
    let before = old
        .allocators
        .iter()
        .find(|info| info.name == old.plan.baseline && info.name == name)?;
    let now = new.allocators.iter().find(|info| info.name == name)?;
    (before.sha256 == now.sha256 && before.version == now.version).then_some(name)
}
