//! The machine for readers: the page of `heapmark doctor`, and its line in the tables of a run.

use super::Screen;
use super::text::{count, list, plain, wrap};
use crate::analyse::Analysis;
use crate::observe::preflight::{ItemState, Preflight, PreflightItem};
use comfy_table::{ContentArrangement, Table, presets};

/// `machine: 3 warnings (governor, swap, load): heapmark doctor says what they mean`.
pub fn warnings(names: &[String]) -> String {
    match names {
        [] => "machine: no warnings".into(),
        [_] => format!(
            "machine: 1 warning ({}): heapmark doctor says what it means",
            names[0]
        ),
        _ => format!(
            "machine: {} warnings ({}): heapmark doctor says what they mean",
            names.len(),
            names.join(", ")
        ),
    }
}

/// The line about the machine that the run was made on, if it was inspected.
pub(super) fn machine_line(analysis: &Analysis) -> Option<String> {
    analysis
        .machine_warnings
        .as_ref()
        .map(|names| warnings(names))
}

/// Every item in a table, then the meaning of warnings and notes and their remedies.
pub fn doctor(look: &Preflight, screen: Screen) -> String {
    let mut out = look
        .root
        .as_ref()
        .map(|root| format!("as reported by {}\n\n", root.display()))
        .unwrap_or_default();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).force_no_tty();
    table
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(screen.width.min(u16::MAX.into()) as u16);
    table.set_header(["item", "state", "found"]);
    for item in &look.items {
        let found = item.found.as_deref().unwrap_or("not told");
        table.add_row([item.name.as_str(), item.state.word(), &plain(found)]);
    }
    out.extend(table.lines().map(|line| format!("{}\n", line.trim_end())));
    let told = |state| look.in_state(state).filter(|item| item.found.is_some());
    for (heading, state) in [("Warnings", ItemState::Warning), ("Notes", ItemState::Note)] {
        let explained: String = told(state)
            .map(|item| explain(item, screen.width))
            .collect();
        if !explained.is_empty() {
            out.push_str(&format!(
                "\n{}\n{explained}",
                screen.heading(state, heading)
            ));
        }
    }
    let silent: Vec<String> = look
        .items
        .iter()
        .filter(|item| item.found.is_none())
        .map(|item| item.name.clone())
        .collect();
    if !silent.is_empty() {
        let line = format!(
            "Not told by this machine, and nothing assumed: {}.",
            list(&silent)
        );
        out.push_str(&format!("\n{}\n", wrap(&line, screen.width, 2)));
    }
    let fine = look.in_state(ItemState::Fine).count();
    let sums = [
        count(told(ItemState::Warning).count(), "warning"),
        count(told(ItemState::Note).count(), "note"),
        format!("{} not told", silent.len()),
        format!("{fine} fine"),
    ];
    out.push_str(&format!(
        "\n{}; docs/REDUCING-NOISE.md says more\n",
        sums.join(", ")
    ));
    out
}

fn explain(item: &PreflightItem, width: usize) -> String {
    let means = wrap(&format!("  {}: {}", item.name, item.means), width, 4);
    let change = wrap(&format!("    change: {}", item.change), width, 6);
    format!("{means}\n{change}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, found: Option<&str>, state: ItemState) -> PreflightItem {
        let (means, change) = ("times wander".to_string(), "switch it off".to_string());
        PreflightItem {
            name: name.into(),
            found: found.map(String::from),
            state,
            means,
            change,
        }
    }

    #[test]
    fn one_warning_is_one() {
        let names = |names: &[&str]| {
            warnings(
                &names
                    .iter()
                    .map(|name| name.to_string())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(names(&[]), "machine: no warnings");
        assert_eq!(
            names(&["load"]),
            "machine: 1 warning (load): heapmark doctor says what it means"
        );
        assert_eq!(
            names(&["governor", "swap"]),
            "machine: 2 warnings (governor, swap): heapmark doctor says what they mean"
        );
    }

    #[test]
    fn a_page_says_every_item_and_explains_what_is_not_fine() {
        let items = vec![
            item("governor", Some("powersave"), ItemState::Warning),
            item("aslr", Some("2"), ItemState::Fine),
            item("boost", None, ItemState::Note),
            item("smt", Some("on"), ItemState::Note),
        ];
        let look = Preflight {
            looked: String::new(),
            root: None,
            items,
        };
        let page = doctor(
            &look,
            Screen {
                width: 80,
                colour: false,
            },
        );
        let expected = " item      state    found
 governor  warning  powersave
 aslr      fine     2
 boost     note     not told
 smt       note     on

Warnings
  governor: times wander
    change: switch it off

Notes
  smt: times wander
    change: switch it off

Not told by this machine, and nothing assumed: boost.

1 warning, 1 note, 1 not told, 1 fine; docs/REDUCING-NOISE.md says more
";
        assert_eq!(page, expected);
    }
}
