use super::*;

const ENTRY: &str = r#"
short = "XX"
title = "a page"
date = "2020"
machine = "an abacus"

[rows]
"glc" = { ours = ["glibc"] }
"own" = { ours = ["own*"], brought = true }

[[figures]]
title = "one plot"
workload = "churn"
threads = [1, 2]
measures = ["mops"]
reference = "glc"
rows = [{ row = "glc", values = [1, 2.5] }]

[[claims]]
id = "XX-1"
says = "own is fast"
workloads = ["churn"]
distributions = ["fisher"]
checks = [
  { kind = "below", who = ["own"] },
]
"#;

fn problems(text: &str) -> String {
    let mut faults = Vec::new();
    parse(
        "claims/xx.toml",
        text,
        &Catalog::load().unwrap(),
        &mut faults,
    );
    Faults(faults).to_string()
}

#[test]
fn a_sound_file_has_no_faults() {
    assert_eq!(problems(ENTRY), "");
}

#[test]
fn what_is_unknown_is_refused_with_file_and_line() {
    let with = |old: &str, new: &str| problems(&ENTRY.replace(old, new));
    for (old, new, says) in [
        (
            "workloads = [\"churn\"]",
            "workloads = [\"chrun\"]",
            "no workload `chrun` (line 22); did you mean `churn`?",
        ),
        (
            "workload = \"churn\"",
            "workload = \"churm\"",
            "no workload `churm` (line 13); did you mean `churn`?",
        ),
        (
            "who = [\"own\"]",
            "who = [\"won\"]",
            "no row `won` (line 25); did you mean `own`?",
        ),
        (
            "ours = [\"glibc\"]",
            "ours = [\"gilbc\"]",
            "is called `gilbc` (line 8); mend the name",
        ),
        (
            "[1, 2.5]",
            "[1]",
            "`glc` has 1 values for 2 columns (line 17)",
        ),
        (
            "reference = \"glc\"",
            "reference = \"own\"",
            "`own` is no row of the table (line 16)",
        ),
        ("\"fisher\"", "\"gauss\"", "expected fisher or uniform"),
        (
            "XX-1",
            "YY-1",
            "`YY-1` is no number of this document (line 20)",
        ),
        (
            "\"below\"",
            "\"belwo\"",
            "belwo: unknown (line 25); did you mean `below`?",
        ),
        ("\"mops\"", "\"mips\"", "`mips` is no measure"),
        (
            "says =",
            "say =",
            "say: unknown (line 21); did you mean `says`?",
        ),
        ("who = [\"own\"]", "whom = [\"own\"]", "whom: unknown"),
    ] {
        let found = with(old, new);
        assert!(
            found.contains(says) && found.contains("claims/xx.toml") && found.contains("(line "),
            "{new}: {found}"
        );
    }
}

#[test]
fn the_five_documents_have_their_48_claims_and_all_their_figures_beside_15_comparisons() {
    let documents = Document::load(&Catalog::load().unwrap()).unwrap();
    let claims = |document: &Document| document.claims.len();
    let counts: Vec<_> = documents
        .iter()
        .map(|document| (document.short.as_str(), claims(document)))
        .collect();
    assert_eq!(
        counts,
        [
            ("BT", 13),
            ("FC", 15),
            ("LL", 13),
            ("MM", 9),
            ("RP", 6),
            ("ZA", 7)
        ]
    );
    for document in &documents {
        for (place, claim) in document.claims.iter().enumerate() {
            assert_eq!(claim.id, format!("{}-{}", document.short, place + 1));
        }
        assert_eq!(
            document.figures.is_empty(),
            document.no_figures.is_some(),
            "{}",
            document.short
        );
    }
    // Specification, section 12: rows and numbers of each table.
    let cells = |short: &str| -> Vec<(usize, usize)> {
        let document = documents
            .iter()
            .find(|document| document.short == short)
            .unwrap();
        let count = |figure: &PublishedFigure| {
            (
                figure.rows.len(),
                figure.rows.iter().map(|row| row.values.len()).sum(),
            )
        };
        document.figures.iter().map(count).collect()
    };
    assert_eq!(cells("BT"), [(18, 54), (18, 54)]);
    assert_eq!(
        cells("MM"),
        [
            (5, 50),
            (5, 10),
            (5, 50),
            (5, 10),
            (5, 30),
            (5, 30),
            (5, 50)
        ]
    );
    assert_eq!(cells("ZA"), [(9, 54), (3, 18)]);
}
