//! Where pages go when memory is short.

use super::Root;
use super::item::{
    ItemState::{Fine, Note, Warning},
    PreflightItem, item,
};
use super::memory::mib;

pub fn items(root: &Root) -> Vec<PreflightItem> {
    let areas = root.text("proc/swaps").map(|text| areas(&text));
    let used = areas.iter().flatten().any(|area| area.used_bytes > 0);
    // Unused swap affects nothing until memory is short.
    let state = if used { Warning } else { Note };
    vec![
        item(
            "swap",
            "pages that went to swap are missing in resident memory, and bringing one back takes as long as thousands of allocations",
            "sudo swapoff -a (needs enough free memory for what is there)",
            areas,
            |areas| {
                if areas.is_empty() {
                    return ("none".into(), Fine);
                }
                let sum = |bytes: fn(&Area) -> u64| mib(areas.iter().map(bytes).sum());
                let size = sum(|area| area.bytes);
                let in_use = sum(|area| area.used_bytes);
                (format!("{size}, {in_use} used"), state)
            },
        ),
        item(
            "zswap",
            "compresses pages on their way to swap: CPU time of the kernel, and resident memory that is smaller than what is held",
            "echo N | sudo tee /sys/module/zswap/parameters/enabled",
            root.text("sys/module/zswap/parameters/enabled"),
            |enabled| match enabled.as_str() {
                "Y" | "1" => ("on", state),
                _ => ("off", Fine),
            },
        ),
    ]
}

/// A swap area: a partition, a file or a compressed disk.
#[derive(Debug, PartialEq)]
struct Area {
    bytes: u64,
    used_bytes: u64,
}

/// Parses the lines of /proc/swaps below its heading: name, kind, sizes in KiB, priority.
fn areas(swaps: &str) -> Vec<Area> {
    let area = |line: &str| {
        // The words are read from the right, since the name may contain spaces.
        let mut words = line.split_whitespace().rev().skip(1);
        let mut bytes = || Some(words.next()?.parse::<u64>().ok()? * 1024);
        let used_bytes = bytes()?;
        let bytes = bytes()?;
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
