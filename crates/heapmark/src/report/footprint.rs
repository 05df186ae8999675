//! The tables of a run that sampled memory. Strings from outside are not yet escaped.

use super::sheet::{Column, Numberless, Sheet, heading, missing};
use super::{text, units};
use crate::analyse::{Analysis, FootprintCase, FootprintRow, Footprints, Spread};

/// All tables.
pub(super) fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis
        .footprints
        .iter()
        .map(|case| of_case(case, analysis.planned_blocks))
        .collect()
}

/// The meaning of the columns, in their order.
pub(super) fn legend(analysis: &Analysis) -> Vec<String> {
    let held = || {
        analysis
            .footprints
            .iter()
            .flat_map(|case| &case.rows)
            .filter_map(|row| row.footprints.as_ref())
    };
    if held().next().is_none() {
        return Vec::new();
    }
    let mut lines = vec![
        "Memory of processes in which every call is watched: each takes longer, so an allocator that gives memory back by the clock \
         has had more time to.",
        "at peak demand, at peak RSS, mean: overhead there, which is the growth of the resident set over requested bytes.",
    ];
    lines.extend(
        held()
            .any(|held| held.blow_up.is_some())
            .then_some("blow-up: highest memory over that of one thread that makes all calls."),
    );
    lines.extend(held().any(|held| held.internal.is_some()).then_some(
        "internal, external: at peak demand, over requested bytes; rounding of block sizes, and free blocks, caches and metadata.",
    ));
    lines.push("idle: resident this long after everything was freed, without a single call.");
    lines.into_iter().map(String::from).collect()
}

fn of_case(case: &FootprintCase, planned_blocks: u32) -> Sheet {
    let rows: Vec<(&FootprintRow, &Footprints)> = case
        .rows
        .iter()
        .filter_map(|row| Some((row, row.footprints.as_ref()?)))
        .collect();
    let sampled = case.sampling_share.filter(|share| *share > 0.0);
    let sampled =
        sampled.map(|share| format!("sampling took at most {} of a core", units::percent(share)));
    let off = rows
        .iter()
        .filter_map(|(row, held)| Some(count_off(&row.allocator, held.count_off_by?)));
    Sheet {
        heading: format!(
            "{}: memory",
            heading(&case.workload, case.threads, case.oversubscribed)
        ),
        columns: if rows.is_empty() {
            Vec::new()
        } else {
            columns(&rows)
        },
        trust: sampled.into_iter().chain(off).collect(),
        caution: case.caution.clone(),
        numberless: case
            .rows
            .iter()
            .filter_map(|row| numberless(row, planned_blocks))
            .collect(),
        ..Sheet::default()
    }
}

fn count_off(allocator: &str, share: f64) -> String {
    let share = units::percent(share);
    format!(
        "{allocator}: the kernel's quick count of memory was {share} off its page tables: at peak demand is exact, the other \
         figures may be that far off"
    )
}

fn columns(rows: &[(&FootprintRow, &Footprints)]) -> Vec<Column> {
    let number = |title: &str, cell: &dyn Fn(&Footprints) -> String| {
        Column::numbers(title, rows.iter().map(|(_, held)| cell(held)))
    };
    let mut columns = vec![
        Column::words(
            "allocator",
            rows.iter().map(|(row, _)| row.allocator.clone()),
        ),
        number("peak demand", &|held| {
            units::bytes(held.peak_demand_bytes.median)
        })
        .spare(),
        number("at peak demand", &|held| {
            median(held.overhead_at_peak_demand, units::times)
        }),
        number("at peak RSS", &|held| {
            median(held.overhead_at_peak_footprint, units::times)
        }),
        number("peak/peak", &|held| {
            median(held.peak_over_peak, units::times)
        })
        .spare(),
        number("mean", &|held| median(held.mean_overhead, units::times)),
        number("page occupancy", &|held| {
            median(held.page_occupancy, units::percent)
        })
        .spare(),
        number("huge pages", &|held| {
            median(held.huge_share, units::percent)
        })
        .spare(),
    ];
    if rows.iter().any(|(_, held)| held.blow_up.is_some()) {
        columns.push(number("blow-up", &|held| {
            median(held.blow_up, units::times)
        }));
    }
    let strict = rows.iter().any(|(_, held)| held.tenth_page.is_some());
    if strict {
        columns.extend([
            number("internal", &|held| median(held.internal, units::percent)),
            number("external", &|held| median(held.external, units::percent)),
            number("tenth page", &|held| {
                median(held.tenth_page, units::percent)
            })
            .spare(),
            number("sparse pages", &|held| {
                median(held.sparse_pages, units::percent)
            })
            .spare(),
        ]);
    }
    let moments = rows
        .first()
        .map(|(_, held)| held.retained.iter().map(|kept| kept.after_ms))
        .into_iter()
        .flatten();
    let moments: Vec<u64> = moments.collect();
    let ends = [moments.first().copied(), moments.last().copied()];
    for after_ms in moments {
        let kept = |held: &Footprints| {
            let kept = held.retained.iter().find(|kept| kept.after_ms == after_ms);
            kept.map_or_else(|| "-".into(), |kept| units::bytes(kept.heap_bytes.median))
        };
        let column = number(&format!("idle {} s", after_ms as f64 / 1000.0), &kept);
        // Besides, a usual terminal fits the first and the last of them, a narrow one only the
        // last.
        columns.push(match ends {
            _ if !strict => column,
            [_, last] if last == Some(after_ms) => column,
            [first, _] if first == Some(after_ms) => column.spare_late(),
            _ => column.spare(),
        });
    }
    columns
}

fn median(spread: Option<Spread>, text: fn(f64) -> String) -> String {
    spread.map_or_else(|| "-".into(), |spread| text(spread.median))
}

fn numberless(row: &FootprintRow, planned_blocks: u32) -> Option<Numberless> {
    let otherwise = || match row.unseen {
        0 => missing(planned_blocks),
        unseen => {
            let processes = text::count(unseen, "process");
            format!("{processes} ended before a sample saw live memory: use more work (--set)")
        }
    };
    row.footprints
        .is_none()
        .then(|| Numberless::new(&row.allocator, row.failed.as_ref(), otherwise))
}

#[cfg(test)]
mod tests {
    use crate::analyse::fake_run::FakeRun;
    use crate::observe::memory_profile::RssCrossCheck;
    use crate::report::Format;
    use crate::report::tests::exported;

    #[test]
    fn a_row_that_was_over_too_soon_says_so() {
        let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
        let lab = lab.following_memory(|name| (name == "glibc").then_some((8, 16)));
        let page = exported(Format::Markdown, &lab);
        assert!(
            !page.contains("blow-up") && !page.contains("quick count"),
            "{page}"
        );
        assert!(
            page.contains("3 processes ended before a sample saw live memory"),
            "{page}"
        );
    }

    #[test]
    fn a_count_that_is_off_is_a_line_below_the_table_and_what_the_case_has_to_say_stands_there_too()
    {
        let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3);
        lab.run.plan.cases[0].caution = Some("Calls that failed: 3.".into());
        let mut lab = lab.fill(|_, _, _| 20.0).following_memory(|_| Some((8, 16)));
        let course = lab.cell("larson@2/b01/hoard").memory.as_mut().unwrap();
        let end = RssCrossCheck {
            counted_bytes: 97 << 20,
            walked_bytes: 100 << 20,
        };
        course.rss_cross_check = Some([RssCrossCheck::default(), end]);
        let page = exported(Format::Markdown, &lab);
        assert!(
            page.contains(
                "hoard: the kernel's quick count of memory was 3.0 % off its page tables"
            ),
            "{page}"
        );
        assert_eq!(page.matches("quick count").count(), 1, "{page}");
        assert!(page.contains("Calls that failed: 3."), "{page}");
        assert_eq!(page.matches("every call is watched").count(), 1, "{page}");
    }
}
