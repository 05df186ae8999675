//! The machine for readers: the page of `heapmark doctor`, and its lines in the tables of a run.

use super::document::{Block, Cell, Mark, Sheet};
use super::sheet::SheetOf;
use super::text::{count, join, list};
use super::units::duration;
use crate::analyse::Analysis;
use crate::metric::Unit;
use crate::observe::Prices;
use crate::observe::preflight::{ItemState, Preflight};
use std::collections::BTreeMap;

/// The machine's warnings: `machine: 3 warnings (governor, swap, load): heapmark doctor says what they mean`.
pub fn warnings(names: &[String]) -> String {
    let mean = match names.len() {
        0 => return "machine: no warnings".into(),
        1 => "it means",
        _ => "they mean",
    };
    format!(
        "machine: {} ({}): heapmark doctor says what {mean}",
        count(names.len(), "warning"),
        names.join(", ")
    )
}

/// The machine in a few words, as a run has stored it: `AMD EPYC (2 CPUs), Linux 6.1.0`.
pub fn machine_name(machine: &BTreeMap<String, String>) -> String {
    let fact = |key: &str| machine.get(key).map_or("unknown", String::as_str);
    let cpus = count(fact("usable_cpus"), "CPU");
    format!("{} ({cpus}), Linux {}", fact("cpu_model"), fact("kernel"))
}

/// The line about the machine that the run was made on, if it was inspected.
pub fn machine_line(analysis: &Analysis) -> Option<String> {
    analysis.machine_warnings.as_deref().map(warnings)
}

/// The lines about the machine's prices, if they were measured.
pub fn lines_of_prices(analysis: &Analysis) -> Vec<String> {
    let prices = analysis.prices.iter();
    prices
        .flat_map(|prices| [Some(prices_line(prices)), price_warning(prices)])
        .flatten()
        .collect()
}

/// The prices in a line: `prices here: page-fault-first 2.45 us, page-fault-again 2.19 us, ...`.
pub fn prices_line(prices: &Prices) -> String {
    let all = prices
        .prices
        .iter()
        .map(|price| format!("{} {}", price.name, duration(price.median_ns)));
    format!("prices here: {}", join(all, ", "))
}

/// Returns what an unusual price means for the ranking; `None` if no price is unusual.
pub fn price_warning(prices: &Prices) -> Option<String> {
    let price = prices.unusual()?;
    Some(format!(
        "a page fault costs {} here ({}), typical is {} or less: allocators that return memory to the \
         kernel are at a disadvantage on this machine, which others may not show",
        duration(price.median_ns),
        price.name,
        duration(price.typical_ns?)
    ))
}

/// All prices in a table, with what each of them means.
pub fn price_table(prices: &Prices) -> Sheet {
    let mut table = SheetOf::new("Prices", &prices.prices);
    table.add("price", |price| &price.name);
    table.add("median", |price| (price.median_ns, Unit::Ns));
    table.add("smallest", |price| (price.least_ns, Unit::Ns));
    table.add("largest", |price| (price.most_ns, Unit::Ns));
    table.add("typical", |price| Some((price.typical_ns?, Unit::Ns)));
    table.add("means", |price| Cell::text(&price.means));
    table.sheet
}

/// The prices as blocks, with the warning.
pub fn prices(prices: &Prices) -> Vec<Block> {
    let warning = price_warning(prices);
    vec![
        Block::Sheet(price_table(prices)),
        Block::lines("Unusual", Mark::Doubt, warning),
    ]
}

/// Every item in a table, then the meaning of warnings and notes and their remedies.
pub fn doctor(look: &Preflight) -> Vec<Block> {
    let root = look.root.iter();
    let root = root.map(|root| Block::text(format!("as reported by {}", root.display())));
    let mut blocks = Vec::from_iter(root);
    let mut table = SheetOf::new("", &look.items);
    table.add("item", |item| &item.name);
    table.add("state", |item| item.state.word());
    table.add("found", |item| {
        Cell::text(item.found.as_deref().unwrap_or("not told"))
    });
    blocks.push(Block::Sheet(table.sheet));
    let mut sums = Vec::new();
    for (state, mark, heading) in [
        (ItemState::Warning, Mark::Doubt, "Warnings"),
        (ItemState::Note, Mark::Strong, "Notes"),
    ] {
        let items = || look.in_state(state).filter(|item| item.found.is_some());
        let lines = items().flat_map(|item| {
            let means = format!("{}: {}", item.name, item.means);
            [means, format!("  change: {}", item.change)]
        });
        sums.push(count(items().count(), state.word()));
        blocks.push(Block::lines(heading, mark, lines));
    }
    let silent = look.items.iter().filter(|item| item.found.is_none());
    let silent: Vec<&String> = silent.map(|item| &item.name).collect();
    if !silent.is_empty() {
        blocks.push(Block::text(format!(
            "Not told by this machine, and nothing assumed: {}.",
            list(&silent)
        )));
    }
    blocks.push(Block::text(format!(
        "{}, {} not told, {} fine; docs/REDUCING-NOISE.md says more",
        sums.join(", "),
        silent.len(),
        look.in_state(ItemState::Fine).count()
    )));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::preflight::PreflightItem;
    use crate::report::Screen;
    use crate::report::render::terminal;
    use crate::store::preflights::priced;

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
    fn a_dear_page_fault_is_a_warning_and_a_cheap_one_is_not() {
        let disadvantage = "allocators that return memory to the kernel are at a disadvantage";
        let screen = Screen {
            width: 400,
            colour: false,
        };
        for (ns, is_dear) in [(4_400.0, true), (250.0, false)] {
            let measured = priced(ns);
            let analysis = Analysis {
                prices: Some(measured.clone()),
                ..Analysis::default()
            };
            let lines = lines_of_prices(&analysis);
            assert_eq!(lines.len(), 1 + usize::from(is_dear), "{lines:?}");
            let fault = format!("page-fault-again {}", duration(ns));
            assert!(lines[0].contains(&fault), "{lines:?}");
            let table = terminal(&prices(&measured), screen);
            assert_eq!(table.contains(disadvantage), is_dear, "{table}");
            assert_eq!(lines.concat().contains(disadvantage), is_dear, "{lines:?}");
        }
        assert!(lines_of_prices(&Analysis::default()).is_empty());
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
        let screen = Screen {
            width: 80,
            colour: false,
        };
        let page = terminal(&doctor(&look), screen);
        let expected = "item      state    found
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
