use super::*;
use Verdict::{DoesNotHold, Holds, NotTestable, Unclear};

#[test]
fn correlates() {
    let ways = |there: [f64; 5]| -> Vec<Point<'static>> {
        let rows = ["a", "b", "c", "d", "e"];
        let here = rows
            .iter()
            .enumerate()
            .map(|(place, row)| (*row, "churn@1", 10.0 * (place + 1) as f64));
        here.chain(
            rows.iter()
                .zip(there)
                .map(|(row, ns)| (*row, "larson@1", ns)),
        )
        .collect()
    };
    let few = &ways([1.0, 2.0, 3.0, 4.0, 5.0])[1..];
    expect(
        r#"{ kind = "correlates", with = "larson" }"#,
        &[
            (Holds, &ways([1.0, 3.0, 2.0, 4.0, 5.0])),
            (DoesNotHold, &ways([5.0, 4.0, 3.0, 2.0, 1.0])),
            (Unclear, &ways([3.0, 1.0, 4.0, 2.0, 5.0])),
            (NotTestable, few),
        ],
    );
}

#[test]
fn the_longest_release_against_the_longest_pause() {
    let figure = |name: &str, value: f64| {
        let mut one = measurement(10.0);
        one.figures.insert(name.into(), value);
        vec![one; 5]
    };
    let verdict = |release: f64| {
        let stage = Stage::new().processes("a", "churn@1", figure("release_max_ns", release));
        let stage = stage.processes("b", "churn@1", figure("pause_max_ns", 10e6));
        stage.verdict(r#"{ kind = "longest-release", releases = ["a"], collects = ["b"] }"#)
    };
    assert_eq!(
        [50e6, 3e6, 12e6].map(verdict),
        [Holds, DoesNotHold, Unclear]
    );
    let none = Stage::of(&[("a", "churn@1", 10.0), ("b", "churn@1", 10.0)], 5);
    assert_eq!(
        none.verdict(r#"{ kind = "longest-release", releases = ["a"], collects = ["b"] }"#),
        NotTestable
    );
    let some = Stage::new()
        .processes("a", "churn@1", figure("release_max_ns", 50e6))
        .processes("b", "churn@1", figure("pause_max_ns", 10e6))
        .processes("c", "churn@1", figure("pause_max_ns", 0.0));
    let check = r#"{ kind = "longest-release", releases = ["a"], collects = ["b", "c", "d"] }"#;
    let judged = some.judge(check);
    assert_eq!(judged.verdict, Holds);
    assert_eq!(judged.missing, ["c", "d"]);
}

#[test]
fn curves_of_two_architectures() {
    let check = r#"{ kind = "alike-elsewhere", who = ["a"], column = "total_dynamic_bytes" }"#;
    let run = |total: &[u64]| Stage::new().curve("a", "churn@1", total, total).measured;
    let verdict = |theirs: &[u64]| {
        let mut other = run(theirs);
        other
            .head
            .machine
            .insert("architecture".into(), "aarch64".into());
        judge_runs(check, &[run(&[0, 50, 100, 50, 0]), other]).verdict
    };
    assert_eq!(verdict(&[1000, 1510, 2000, 1490, 1000]), Holds);
    assert_eq!(verdict(&[0, 0, 0, 0, 100]), DoesNotHold);
    assert_eq!(verdict(&[0, 100, 100, 50, 0]), Holds);
    assert_eq!(verdict(&[0, 0, 100, 100, 50]), Unclear);
    // Another run here with another parameter is another experiment.
    let mut elsewhere = run(&[0, 50, 100, 50, 0]);
    let facts = &mut elsewhere.head.machine;
    facts.insert("architecture".into(), "aarch64".into());
    let other = Stage::new().curve("a", "churn@1", &[0, 1], &[0, 0, 0, 0, 100]);
    let other = other.with("churn", "objects", "5").measured;
    let runs = [run(&[0, 50, 100, 50, 0]), other, elsewhere];
    assert_eq!(judge_runs(check, &runs).verdict, Holds);
    // Another machine of the same architecture shows nothing.
    assert_eq!(
        judge_runs(check, &[run(&[0, 1]), run(&[0, 1])]).verdict,
        NotTestable
    );
}

#[test]
fn memory_over_time_becomes_numbers() {
    // An artificial process requests 10 MiB.
    let mib = |values: &[u64]| values.iter().map(|value| value << 20).collect::<Vec<_>>();
    let stage = || Stage::new().curve("a", "churn@1", &mib(&[3, 8, 8]), &mib(&[20, 60, 30]));
    let value = |measure: &str| {
        let judged = stage().judge(&format!(
            r#"{{ kind = "between", who = ["a"], bounds = [0, 1], at = {{ measure = "{measure}" }} }}"#
        ));
        match &judged.parts[0].said[0] {
            Said::Number(number) => (number.median, number.samples),
            Said::Words(words) => panic!("{words}"),
        }
    };
    assert_eq!(value("heap-growth"), (0.5, 5));
    assert_eq!(value("total-growth"), (f64::from(40 << 20), 5));
    assert_eq!(value("total-fall"), (0.75, 5));
}
