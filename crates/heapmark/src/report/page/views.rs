//! Cases of all runs sorted into views: one per workload, in it a chart per thread count with all
//! runs side by side.

use super::section::{Data, Plot, View};
use crate::analyse::{Case, FootprintCase, LatencyCase, Table};
use crate::report::text::plain;
use crate::report::{sheet, timed};

/// A case of some kind, with the index of its run.
pub(super) type Placed<'a, T> = (usize, &'a T);

/// The keys that cases are sorted by.
pub(super) trait SortedCase {
    fn workload(&self) -> &str;
    fn threads(&self) -> u32;
    fn heading(&self) -> String;
}

macro_rules! kind {
    ($($case:ty: $heading:expr),*) => {$(
        impl SortedCase for $case {
            fn workload(&self) -> &str {
                &self.workload
            }
            fn threads(&self) -> u32 {
                self.threads
            }
            fn heading(&self) -> String {
                ($heading)(self)
            }
        }
    )*};
}

/// For cases that only kernels have.
macro_rules! heading {
    () => {
        |case: &Self| sheet::heading(&case.workload, case.threads, case.oversubscribed)
    };
}

kind!(Case: timed::heading_of, LatencyCase: heading!(), Table: heading!(), FootprintCase: heading!());

/// A view per workload. `draw` makes the charts of one thread count and records their data; empty
/// views and charts are left out.
pub(super) fn by_threads<'a, T: SortedCase>(
    cases: &[Placed<'a, T>],
    columns: &[&'static str],
    draw: impl Fn(&[Placed<'a, T>], &str, &mut Data) -> Vec<Plot>,
) -> Vec<View> {
    by_workload(cases, columns, |cases, data| {
        let groups = grouped(cases, |case| case.threads());
        let draw_one =
            |cases: &Vec<Placed<'a, T>>, data: &mut Data| draw(cases, &heading(cases[0].1), data);
        groups
            .iter()
            .flat_map(|cases| draw_one(cases, data))
            .collect()
    })
}

/// A view per workload, with charts over all its thread counts.
pub(super) fn by_workload<'a, T: SortedCase>(
    cases: &[Placed<'a, T>],
    columns: &[&'static str],
    draw: impl Fn(&[Placed<'a, T>], &mut Data) -> Vec<Plot>,
) -> Vec<View> {
    let view = |cases: Vec<Placed<'a, T>>| {
        let mut data = Data::new(columns);
        let mut plots = draw(&cases, &mut data);
        plots.retain(|plot| !plot.traces.is_empty());
        View {
            workload: Some(plain(cases[0].1.workload())),
            plots,
            data,
        }
    };
    let views = grouped(cases, |case| case.workload().to_owned())
        .into_iter()
        .map(view);
    views.filter(|view| !view.plots.is_empty()).collect()
}

/// `larson, 2 threads`.
pub(super) fn heading(case: &impl SortedCase) -> String {
    super::plain(&case.heading())
}

/// Groups those with the same key, in the order in which the keys first occur.
pub(super) fn grouped<'a, T, K: PartialEq>(
    cases: &[Placed<'a, T>],
    key: impl Fn(&T) -> K,
) -> Vec<Vec<Placed<'a, T>>> {
    let mut groups: Vec<(K, Vec<Placed<'a, T>>)> = Vec::new();
    for (run, case) in cases {
        let own = key(case);
        match groups.iter_mut().find(|(key, _)| *key == own) {
            Some((_, group)) => group.push((*run, case)),
            None => groups.push((own, vec![(*run, case)])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}
