//! How memory is laid out and allocated: addresses, pages, huge pages, overcommit, free memory.

use super::Root;
use super::item::{
    ItemState::{Fine, Note, Warning},
    PreflightItem, item, note_if, warning_if,
};

pub fn items(root: &Root) -> Vec<PreflightItem> {
    vec![
        aslr(root),
        huge_pages(root),
        item(
            "huge-pages-defrag",
            "`always` makes a page fault wait while memory is moved to free a huge page: stalls that depend on what ran before",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag",
            root.chosen(&format!("{THP}/defrag")),
            |chosen| {
                let state = warning_if(chosen == "always");
                (chosen, state)
            },
        ),
        item(
            "overcommit",
            "2 refuses address space beyond a limit, and allocators that reserve much of it fail; with 1 nothing is refused, and too much is killed",
            "echo 0 | sudo tee /proc/sys/vm/overcommit_memory",
            root.number("proc/sys/vm/overcommit_memory"),
            |mode: u8| match mode {
                0 => ("0 (heuristic)".to_string(), Fine),
                1 => ("1 (everything is granted)".into(), Note),
                2 => ("2 (strict)".into(), Warning),
                other => (other.to_string(), Note),
            },
        ),
        item(
            "free-memory",
            "with little left the kernel reclaims pages while the clock runs, and workloads that need more end `oom` or `unsupported`",
            "end what holds memory: ps aux --sort=-rss | head",
            root.memory_bytes("MemAvailable")
                .zip(root.memory_bytes("MemTotal")),
            |(available, total)| {
                (
                    format!("{} of {}", mib(available), mib(total)),
                    warning_if(available < LITTLE_BYTES.max(total / 10)),
                )
            },
        ),
        page_size(rustix::param::page_size()),
    ]
}

/// Personality flag of a process that was started by `setarch -R`; its children inherit it.
const ADDR_NO_RANDOMIZE: u64 = 0x0004_0000;

fn aslr(root: &Root) -> PreflightItem {
    let personality = root
        .text("proc/self/personality")
        .and_then(|text| u64::from_str_radix(&text, 16).ok());
    item(
        "aslr",
        "with fixed addresses every process has the same layout: one accident of it is measured, and not the average over many",
        "echo 2 | sudo tee /proc/sys/kernel/randomize_va_space; start heapmark without `setarch -R`",
        root.number("proc/sys/kernel/randomize_va_space"),
        |level: u8| {
            let words = match level {
                _ if personality.is_some_and(|flags| flags & ADDR_NO_RANDOMIZE != 0) => {
                    return ("off for this process (setarch -R)".into(), Warning);
                }
                0 => "0 (off)".into(),
                1 => "1 (all but the heap)".into(),
                2 => "2 (full)".into(),
                _ => level.to_string(),
            };
            (words, warning_if(level < 2))
        },
    )
}

const THP: &str = "sys/kernel/mm/transparent_hugepage";

fn huge_pages(root: &Root) -> PreflightItem {
    item(
        "huge-pages",
        "`always` gives huge pages to programs that did not ask for them: faster, more resident memory, and only while free ones are left; `never` refuses all",
        "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        root.chosen(&format!("{THP}/enabled")),
        |chosen| {
            // Children inherit what a process has been refused with PR_SET_THP_DISABLE.
            if root.field("proc/self/status", "THP_enabled").as_deref() == Some("0") {
                return ("none for this process (THP_enabled: 0)".into(), Note);
            }
            let mut words = vec![chosen];
            let usual: u64 = root
                .number(&format!("{THP}/hpage_pmd_size"))
                .unwrap_or(2 << 20);
            let usual = format!("{}kB", usual >> 10);
            // Each size has a switch of its own; `inherit` uses the main one. Smaller ones than the usual are off by default.
            for name in root.names(THP, "hugepages-") {
                let size = name.trim_start_matches("hugepages-");
                match root.chosen(&format!("{THP}/{name}/enabled")).as_deref() {
                    Some("always") => words.push(format!("{size} always")),
                    Some("never") if size == usual => words.push(format!("{size} never")),
                    _ => {}
                }
            }
            (words.join(", "), note_if(words != ["madvise"]))
        },
    )
}

/// Less free memory than this many bytes is too little on any machine.
pub const LITTLE_BYTES: u64 = 1 << 30;

fn page_size(bytes: usize) -> PreflightItem {
    item(
        "page-size",
        "resident memory is counted in pages: with larger ones than 4 KiB figures of memory and faults are others",
        "boot a kernel with 4 KiB pages",
        Some(bytes),
        |bytes| (format!("{bytes} B"), note_if(bytes != 4096)),
    )
}

/// Formats bytes as whole MiB: `1536 MiB`.
pub fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_pages_are_noted() {
        assert_eq!(
            (page_size(4096).state, page_size(65536).state),
            (Fine, Note)
        );
        assert_eq!(page_size(65536).found.as_deref(), Some("65536 B"));
    }
}
