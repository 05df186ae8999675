use super::*;
use Verdict::{DoesNotHold, Holds, NotTestable, Unclear};

fn shape(word: &str) -> String {
    format!(r#"{{ kind = "over-threads", who = ["a"], shape = {word} }}"#)
}

fn over<const N: usize>(values: [f64; N]) -> [Point<'static>; N] {
    let places = ["churn@1", "churn@2", "churn@4", "churn@6", "churn@8"];
    std::array::from_fn(|place| ("a", places[place], values[place]))
}

#[test]
fn rises() {
    expect(
        &shape("\"rises\""),
        &[
            (Holds, &over([10.0, 20.0, 20.05, 40.0])),
            (DoesNotHold, &over([10.0, 20.0, 15.0, 40.0])),
            (Unclear, &over([10.0, 10.05])),
            (NotTestable, &over([10.0])),
        ],
    );
}

#[test]
fn highest_first() {
    expect(
        &shape("\"highest-first\""),
        &[
            (Holds, &over([20.0, 10.0, 12.0])),
            (DoesNotHold, &over([20.0, 10.0, 30.0])),
            (Unclear, &over([20.0, 10.0, 20.05])),
            (NotTestable, &over([20.0])),
            // Nothing was run with one thread.
            (NotTestable, &over([20.0, 10.0, 12.0])[1..]),
        ],
    );
}

#[test]
fn peaks() {
    expect(
        &shape("{ peaks = [2, 4] }"),
        &[
            (Holds, &over([10.0, 20.0, 30.0, 10.0])),
            (DoesNotHold, &over([10.0, 20.0, 30.0, 40.0])),
            (Unclear, &over([10.0, 20.0, 30.0, 30.1])),
            // Too few thread counts to show a fall.
            (NotTestable, &over([10.0, 20.0, 30.0])),
            // None where the peak may be.
            (
                NotTestable,
                &[
                    ("a", "churn@1", 10.0),
                    ("a", "churn@6", 20.0),
                    ("a", "churn@8", 30.0),
                ],
            ),
        ],
    );
}

#[test]
fn thread_counts_with_other_parameters_are_not_compared() {
    let mut stage = Stage::of(&over([10.0, 20.0, 40.0]), 5);
    let cases = &mut stage.measured.head.plan.cases;
    let four = cases.iter_mut().find(|case| case.threads == 4).unwrap();
    four.parameters.insert("objects".into(), "5".into());
    let judged = stage.judge(&shape("\"rises\""));
    let words = "churn@4 was run with other parameters than churn@1, so their thread counts cannot be compared";
    assert_eq!(
        (judged.verdict, &judged.parts[0].said),
        (NotTestable, &vec![Said::from(words)])
    );
}

#[test]
fn wavers() {
    expect(
        &shape("\"wavers\""),
        &[
            (Holds, &over([10.0, 20.0, 10.0])),
            (DoesNotHold, &over([10.0, 20.0, 30.0])),
            (Unclear, &over([10.0, 20.0, 20.05])),
            (NotTestable, &over([10.0, 20.0])),
        ],
    );
}

#[test]
fn more_threads_than_cores_are_not_looked_at() {
    let mut stage = Stage::of(&over([10.0, 20.0, 5.0]), 5);
    stage
        .measured
        .head
        .machine
        .insert("usable_cpus".into(), "4".into());
    stage
        .measured
        .head
        .machine
        .insert("smt_active".into(), "1".into());
    assert_eq!(stage.verdict(&shape("\"rises\"")), Holds);
    let named = r#"{ kind = "below", who = ["a"], than = ["b"], at = { threads = 16 } }"#;
    let judged = Stage::of(&[("a", "churn@16", 10.0), ("b", "churn@16", 20.0)], 5).judge(named);
    let words = Said::from("16 threads need as many cores, and 8 are usable");
    assert_eq!(
        (judged.verdict, &judged.parts[0].said),
        (NotTestable, &vec![words])
    );
}
