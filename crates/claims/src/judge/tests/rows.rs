use super::*;
use Verdict::{DoesNotHold, Holds, NotTestable, Unclear};

#[test]
fn below_and_above() {
    let below = r#"{ kind = "below", who = ["a"], than = ["b"] }"#;
    let above = r#"{ kind = "above", who = ["b"], than = ["a"] }"#;
    for check in [below, above] {
        expect(
            check,
            &[
                (Holds, &[("a", "churn@1", 10.0), ("b", "churn@1", 20.0)]),
                (
                    DoesNotHold,
                    &[("a", "churn@1", 20.0), ("b", "churn@1", 10.0)],
                ),
                (Unclear, &[("a", "churn@1", 10.0), ("b", "churn@1", 10.05)]),
                (
                    NotTestable,
                    &[("a", "churn@1", 10.0), ("c", "churn@1", 20.0)],
                ),
            ],
        );
        // A part that fails decides, whatever is missing.
        let half = [
            ("a", "churn@1", 20.0),
            ("b", "churn@1", 10.0),
            ("c", "churn@2", 10.0),
        ];
        assert_eq!(Stage::of(&half, 5).verdict(check), DoesNotHold);
    }
}

#[test]
fn every_other_row_is_those_that_are_there_and_the_others_are_named() {
    let all = r#"{ kind = "below", who = ["a"] }"#;
    expect(
        all,
        &[(
            DoesNotHold,
            &[
                ("a", "churn@1", 10.0),
                ("b", "churn@1", 20.0),
                ("c", "churn@1", 5.0),
            ],
        )],
    );
    let judged = Stage::of(&[("a", "churn@1", 10.0), ("b", "churn@1", 20.0)], 5).judge(all);
    assert_eq!(
        (judged.verdict, judged.missing),
        (Holds, ["c", "d", "e"].map(String::from).to_vec())
    );
    let except = r#"{ kind = "below", who = ["a"], except = ["c"] }"#;
    expect(
        except,
        &[(
            Holds,
            &[
                ("a", "churn@1", 10.0),
                ("b", "churn@1", 20.0),
                ("c", "churn@1", 5.0),
            ],
        )],
    );
    expect(all, &[(NotTestable, &[("a", "churn@1", 10.0)])]);
}

#[test]
fn worst() {
    expect(
        r#"{ kind = "worst", who = "a" }"#,
        &[
            (
                Holds,
                &[
                    ("a", "churn@1", 30.0),
                    ("b", "churn@1", 20.0),
                    ("c", "churn@1", 10.0),
                ],
            ),
            (
                DoesNotHold,
                &[("a", "churn@1", 10.0), ("b", "churn@1", 20.0)],
            ),
            (Unclear, &[("a", "churn@1", 20.1), ("b", "churn@1", 20.0)]),
            (NotTestable, &[("b", "churn@1", 20.0)]),
        ],
    );
}

#[test]
fn the_worst_whose_range_touches_the_next_one_is_unclear() {
    let of = |values: [f64; 5]| values.map(measurement).to_vec();
    let stage = |ours| {
        let stage = Stage::new().processes("b", "churn@2", of([8.0, 9.0, 10.0, 11.0, 13.0]));
        stage
            .processes("a", "churn@2", of(ours))
            .verdict(r#"{ kind = "worst", who = "a" }"#)
    };
    assert_eq!(stage([12.0, 14.0, 15.0, 16.0, 17.0]), Unclear);
    assert_eq!(stage([13.5, 14.0, 15.0, 16.0, 17.0]), Holds);
}

#[test]
fn near_and_far() {
    expect(
        r#"{ kind = "near", except = ["c"], factor = 2 }"#,
        &[
            (
                Holds,
                &[
                    ("a", "churn@1", 10.0),
                    ("b", "churn@1", 15.0),
                    ("c", "churn@1", 50.0),
                ],
            ),
            (
                DoesNotHold,
                &[("a", "churn@1", 10.0), ("b", "churn@1", 30.0)],
            ),
            (Unclear, &[("a", "churn@1", 10.0), ("b", "churn@1", 20.25)]),
            (NotTestable, &[("a", "churn@1", 10.0)]),
        ],
    );
    expect(
        r#"{ kind = "far", who = ["a"], factor = 2 }"#,
        &[
            (Holds, &[("a", "churn@1", 30.0), ("b", "churn@1", 10.0)]),
            (
                DoesNotHold,
                &[("a", "churn@1", 15.0), ("b", "churn@1", 10.0)],
            ),
            (Unclear, &[("a", "churn@1", 19.75), ("b", "churn@1", 10.0)]),
            (
                NotTestable,
                &[("b", "churn@1", 10.0), ("c", "churn@1", 10.0)],
            ),
        ],
    );
}

#[test]
fn the_best_of_a_rate_is_the_highest() {
    let near = r#"{ kind = "near", who = ["a"], factor = 2, at = { measure = "mops" } }"#;
    expect(
        near,
        &[
            (Holds, &[("a", "churn@1", 15.0), ("b", "churn@1", 10.0)]),
            (
                DoesNotHold,
                &[("a", "churn@1", 30.0), ("b", "churn@1", 10.0)],
            ),
        ],
    );
}

#[test]
fn another_architecture_has_a_check_of_its_own() {
    let points: &[Point] = &[("a", "churn@1", 10.0), ("b", "churn@1", 30.0)];
    let near =
        |other: &str| format!(r#"{{ kind = "near", factor = 2, architecture = "{other}" }}"#);
    assert_eq!(Stage::of(points, 5).verdict(&near("x86_64")), DoesNotHold);
    assert_eq!(Stage::of(points, 5).verdict(&near("aarch64")), NotTestable);
}
