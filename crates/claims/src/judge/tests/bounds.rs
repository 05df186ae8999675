use super::*;
use Verdict::{DoesNotHold, Holds, NotTestable, Unclear};

#[test]
fn between_two_rows() {
    expect(
        r#"{ kind = "between", who = ["a"], over = { who = "b" }, bounds = [2, 3] }"#,
        &[
            (Holds, &[("a", "churn@1", 25.0), ("b", "churn@1", 10.0)]),
            (
                DoesNotHold,
                &[("a", "churn@1", 50.0), ("b", "churn@1", 10.0)],
            ),
            (
                DoesNotHold,
                &[("a", "churn@1", 10.0), ("b", "churn@1", 10.0)],
            ),
            (Unclear, &[("a", "churn@1", 30.3), ("b", "churn@1", 10.0)]),
            (
                NotTestable,
                &[("a", "churn@1", 25.0), ("c", "churn@1", 10.0)],
            ),
        ],
    );
}

#[test]
fn between_thread_counts_1_is_linear_growth() {
    let wall = r#"at = { threads = "most", measure = "wall" }"#;
    let check = format!(
        r#"{{ kind = "between", who = ["a"], over = {{ threads = 1, per-thread = true }}, bounds = [0.8, 1.5], {wall} }}"#
    );
    // The time that each thread spends on one operation grows with the threads if they take turns;
    // the wall time per operation is that divided by the threads.
    expect(
        &check,
        &[
            (Holds, &[("a", "churn@1", 10.0), ("a", "churn@4", 160.0)]),
            (
                DoesNotHold,
                &[("a", "churn@1", 10.0), ("a", "churn@4", 40.0)],
            ),
            (Unclear, &[("a", "churn@1", 10.0), ("a", "churn@4", 127.5)]),
            (NotTestable, &[("a", "churn@1", 10.0)]),
        ],
    );
}

#[test]
fn of_several_values_the_largest_the_middle_or_most_may_decide() {
    let points: &[Point] = &[
        ("a", "churn@1", 5.0),
        ("a", "churn@2", 15.0),
        ("a", "churn@4", 25.0),
    ];
    let verdict = |bounds: &str, more: &str| {
        let check = format!(r#"{{ kind = "between", who = ["a"], bounds = {bounds}, {more} }}"#);
        Stage::of(points, 5).verdict(&check)
    };
    assert_eq!(verdict("[10, 20]", "needs = \"all\""), DoesNotHold);
    assert_eq!(verdict("[10, 20]", "take = \"middle\""), Holds);
    assert_eq!(verdict("[10, 20]", "take = \"largest\""), DoesNotHold);
    assert_eq!(verdict("[20, 30]", "take = \"largest\""), Holds);
    assert_eq!(verdict("[10, 30]", "needs = \"most\""), Holds);
    assert_eq!(verdict("[20, 30]", "needs = \"most\""), DoesNotHold);
    // What is missing could be the largest, or move the middle.
    for place in ["churn@8", "larson@1"] {
        for take in ["middle", "largest"] {
            let at = "at = { workloads = [\"churn\", \"larson\"] }";
            let check = format!(
                r#"{{ kind = "between", who = ["a"], bounds = [99, 100], take = "{take}", {at} }}"#
            );
            let stage = Stage::of(points, 5).processes("b", place, vec![measurement(20.0)]);
            assert_eq!(stage.verdict(&check), NotTestable, "{take} without {place}");
        }
    }
}

#[test]
fn of_most_none_may_be_missing() {
    let check = r#"{ kind = "between", bounds = [5, 15], needs = "most", at = { workloads = ["churn", "larson"] } }"#;
    let churn = ("a", "churn@1", 10.0);
    assert_eq!(Stage::of(&[churn], 5).verdict(check), NotTestable);
    let both = [churn, ("b", "churn@1", 11.0), ("a", "larson@1", 30.0)];
    assert_eq!(Stage::of(&both, 5).verdict(check), Holds);
}

#[test]
fn a_place_that_the_divisor_lacks_is_no_row_that_is_missing() {
    let check = r#"{ kind = "between", over = { workloads = ["larson"] }, bounds = [1, 2], needs = "most" }"#;
    let judged = Stage::of(&[("a", "churn@1", 10.0), ("b", "churn@1", 10.0)], 5).judge(check);
    assert_eq!(judged.verdict, NotTestable);
    assert_eq!(judged.missing, ["c", "d", "e"]);
    let words = Said::from("larson@1 is in no run");
    assert_eq!(judged.parts[0].said, [words]);
}

#[test]
fn a_quotient_of_nothing_shows_nothing() {
    let mut zero = measurement(10.0);
    zero.figures.insert("share".into(), 0.0);
    let mut some = zero.clone();
    some.figures.insert("share".into(), 5.0);
    let stage = Stage::new()
        .processes("a", "churn@1", vec![some; 5])
        .processes("b", "churn@1", vec![zero; 5]);
    let check = r#"{ kind = "between", who = ["a"], over = { who = "b" }, bounds = [3, inf], at = { measure = "figure:share" } }"#;
    assert_eq!(stage.verdict(check), NotTestable);
}

#[test]
fn a_size_that_is_not_one_more_is_no_comparison() {
    let check = r#"{ kind = "between", who = ["a"], over = { workloads = ["larson"], one-more = "n" }, bounds = [1.5, 2.5] }"#;
    let stage = |ours: &str, theirs: &str| {
        let stage = Stage::of(&[("a", "churn@1", 20.0), ("a", "larson@1", 10.0)], 5);
        stage
            .with("churn", "n", ours)
            .with("larson", "n", theirs)
            .judge(check)
    };
    assert_eq!(stage("16", "15").verdict, Holds);
    assert_eq!(stage("16", "12").verdict, NotTestable);
    assert_eq!(stage("16", "16").verdict, NotTestable);
}

#[test]
fn flat() {
    let at = r#"at = { workloads = ["churn", "larson", "speed-malloc"] }"#;
    let check = format!(r#"{{ kind = "flat", who = ["a"], factor = 2, {at} }}"#);
    let three = |last| {
        [
            ("a", "churn@1", 10.0),
            ("a", "larson@1", 11.0),
            ("a", "speed-malloc@1", last),
        ]
    };
    expect(
        &check,
        &[
            (Holds, &three(12.0)),
            (DoesNotHold, &three(30.0)),
            (Unclear, &three(22.05)),
            (
                NotTestable,
                &[("a", "churn@1", 10.0), ("a", "larson@1", 11.0)],
            ),
        ],
    );
    // Of three that it was, the middle one is not known without the fourth.
    let at = at.replace("]", ", \"cache-thrash\"]");
    let check = format!(r#"{{ kind = "flat", who = ["a"], factor = 2, {at} }}"#);
    let fourth = ("b", "cache-thrash@1", 10.0);
    let points = [&three(30.0)[..], &[fourth]].concat();
    assert_eq!(Stage::of(&points, 5).verdict(&check), NotTestable);
    let all = [&three(30.0)[..], &[("a", "cache-thrash@1", 10.5)]].concat();
    assert_eq!(Stage::of(&all, 5).verdict(&check), DoesNotHold);
}

#[test]
fn levels() {
    let here = |slow| {
        [
            ("a", "churn@1", 10.0),
            ("b", "churn@1", slow),
            ("a", "larson@1", 10.0),
            ("b", "larson@1", 20.0),
        ]
    };
    expect(
        r#"{ kind = "levels", than = ["larson"] }"#,
        &[
            (Holds, &here(12.0)),
            (DoesNotHold, &here(30.0)),
            (Unclear, &here(20.1)),
            (
                NotTestable,
                &[("a", "churn@1", 10.0), ("a", "larson@1", 10.0)],
            ),
        ],
    );
}
