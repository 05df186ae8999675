//! Where pages go when memory is short.

use super::item::{ItemState, ItemSubject, PreflightItem};
use super::memory::mib;
use crate::observe::root::Root;

const SWAP: ItemSubject = ItemSubject {
    name: "swap",
    means: "pages that went to swap are missing in resident memory, and bringing one back takes as long as thousands of allocations",
    change: "sudo swapoff -a (needs enough free memory for what is there)",
};

const ZSWAP: ItemSubject = ItemSubject {
    name: "zswap",
    means: "compresses pages on their way to swap: CPU time of the kernel, and resident memory that is smaller than what is held",
    change: "echo N | sudo tee /sys/module/zswap/parameters/enabled",
};

pub(super) fn items(root: &Root) -> Vec<PreflightItem> {
    let areas = root.text("proc/swaps").map(|text| areas(&text));
    let used = areas
        .as_ref()
        .is_some_and(|areas| areas.iter().any(|area| area.used_bytes > 0));
    let swap = SWAP.judged(areas, |areas| {
        if areas.is_empty() {
            return ("none".into(), ItemState::Fine);
        }
        let size = areas.iter().map(|area| area.bytes).sum();
        let in_use = areas.iter().map(|area| area.used_bytes).sum();
        // Unused swap affects nothing until memory is short.
        (
            format!("{}, {} used", mib(size), mib(in_use)),
            if used {
                ItemState::Warning
            } else {
                ItemState::Note
            },
        )
    });
    let zswap = ZSWAP.judged(
        root.text("sys/module/zswap/parameters/enabled"),
        |enabled| match enabled.as_str() {
            "Y" | "1" => (
                "on".into(),
                if used {
                    ItemState::Warning
                } else {
                    ItemState::Note
                },
            ),
            _ => ("off".into(), ItemState::Fine),
        },
    );
    vec![swap, zswap]
}

/// A swap area: a partition, a file or a compressed disk.
#[derive(Debug, PartialEq, Eq)]
struct Area {
    bytes: u64,
    used_bytes: u64,
}

/// The lines of /proc/swaps below its heading: name, kind, sizes in KiB, priority.
fn areas(swaps: &str) -> Vec<Area> {
    let area = |line: &str| {
        // From the right: the name may contain spaces.
        let mut words = line.split_whitespace().rev().skip(1);
        let mut bytes = || Some(words.next()?.parse::<u64>().ok()? * 1024);
        let (used_bytes, bytes) = (bytes()?, bytes()?);
        Some(Area { bytes, used_bytes })
    };
    swaps.lines().skip(1).filter_map(area).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swaps_are_a_heading_and_areas() {
        let text = "\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/zram0                              partition\t8388604\t\t1024\t\t100
/swap\\040file                           file\t\t2097148\t\t0\t\t-2
";
        let expected = [
            Area {
                bytes: 8388604 << 10,
                used_bytes: 1 << 20,
            },
            Area {
                bytes: 2097148 << 10,
                used_bytes: 0,
            },
        ];
        assert_eq!(areas(text), expected);
        assert_eq!(
            areas("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"),
            []
        );
    }
}
