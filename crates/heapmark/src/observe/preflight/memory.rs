//! How memory is laid out and allocated: addresses, pages, huge pages, overcommit, free memory.

use super::item::{ItemState, ItemSubject, PreflightItem, note_if, warning_if};
use crate::observe::root::Root;

const ASLR: ItemSubject = ItemSubject {
    name: "aslr",
    means: "with fixed addresses every process has the same layout: one accident of it is measured, and not the average over many",
    change: "echo 2 | sudo tee /proc/sys/kernel/randomize_va_space; start heapmark without `setarch -R`",
};

const HUGE_PAGES: ItemSubject = ItemSubject {
    name: "huge-pages",
    means: "`always` gives huge pages to programs that did not ask for them: faster, more resident memory, and only while free ones are left; `never` refuses all",
    change: "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
};

const DEFRAG: ItemSubject = ItemSubject {
    name: "huge-pages-defrag",
    means: "`always` makes a page fault wait while memory is moved to free a huge page: stalls that depend on what ran before",
    change: "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag",
};

const OVERCOMMIT: ItemSubject = ItemSubject {
    name: "overcommit",
    means: "2 refuses address space beyond a limit, and allocators that reserve much of it fail; with 1 nothing is refused, and too much is killed",
    change: "echo 0 | sudo tee /proc/sys/vm/overcommit_memory",
};

const FREE: ItemSubject = ItemSubject {
    name: "free-memory",
    means: "with little left the kernel reclaims pages while the clock runs, and workloads that need more end `oom` or `unsupported`",
    change: "end what holds memory: ps aux --sort=-rss | head",
};

const PAGE_SIZE: ItemSubject = ItemSubject {
    name: "page-size",
    means: "resident memory is counted in pages: with larger ones than 4 KiB figures of memory and faults are others",
    change: "boot a kernel with 4 KiB pages",
};

pub(super) fn items(root: &Root) -> Vec<PreflightItem> {
    vec![
        aslr(root),
        huge_pages(root),
        defrag(root),
        overcommit(root),
        free(root),
        page_size(rustix::param::page_size()),
    ]
}

/// Personality flag of a process that was started by `setarch -R`; its children inherit it.
const ADDR_NO_RANDOMIZE: u64 = 0x0004_0000;

fn aslr(root: &Root) -> PreflightItem {
    let personality = root
        .text("proc/self/personality")
        .and_then(|text| u64::from_str_radix(&text, 16).ok());
    ASLR.judged(
        root.number::<u8>("proc/sys/kernel/randomize_va_space"),
        |level| {
            if personality.is_some_and(|flags| flags & ADDR_NO_RANDOMIZE != 0) {
                return (
                    "off for this process (setarch -R)".into(),
                    ItemState::Warning,
                );
            }
            let words = ["0 (off)", "1 (all but the heap)", "2 (full)"].get(usize::from(level));
            (
                words.map_or_else(|| level.to_string(), |words| words.to_string()),
                warning_if(level < 2),
            )
        },
    )
}

const THP: &str = "sys/kernel/mm/transparent_hugepage";

fn huge_pages(root: &Root) -> PreflightItem {
    HUGE_PAGES.judged(root.chosen(&format!("{THP}/enabled")), |chosen| {
        // Sizes below the usual one have their own switches; `inherit` uses the main one.
        let sizes = root
            .names(THP, "hugepages-")
            .into_iter()
            .filter_map(|size| {
                let own = root
                    .chosen(&format!("{THP}/{size}/enabled"))
                    .filter(|own| own == "always")?;
                Some(format!("{} {own}", size.trim_start_matches("hugepages-")))
            });
        let words: Vec<String> = [chosen].into_iter().chain(sizes).collect();
        let state = note_if(words != ["madvise"]);
        (words.join(", "), state)
    })
}

fn defrag(root: &Root) -> PreflightItem {
    DEFRAG.judged(root.chosen(&format!("{THP}/defrag")), |chosen| {
        let state = warning_if(chosen == "always");
        (chosen, state)
    })
}

fn overcommit(root: &Root) -> PreflightItem {
    OVERCOMMIT.judged(
        root.number::<u8>("proc/sys/vm/overcommit_memory"),
        |mode| match mode {
            0 => ("0 (heuristic)".into(), ItemState::Fine),
            1 => ("1 (everything is granted)".into(), ItemState::Note),
            2 => ("2 (strict)".into(), ItemState::Warning),
            other => (other.to_string(), ItemState::Note),
        },
    )
}

/// Less free memory than this is little on any machine.
pub(super) const LITTLE_BYTES: u64 = 1 << 30;

fn free(root: &Root) -> PreflightItem {
    let (available, total) = (
        root.memory_bytes("MemAvailable"),
        root.memory_bytes("MemTotal"),
    );
    FREE.judged(available.zip(total), |(available, total)| {
        (
            format!("{} of {}", mib(available), mib(total)),
            warning_if(available < LITTLE_BYTES.max(total / 10)),
        )
    })
}

fn page_size(bytes: usize) -> PreflightItem {
    PAGE_SIZE.found(format!("{bytes} B"), note_if(bytes != 4096))
}

/// `1536 MiB`.
pub(super) fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_pages_are_noted() {
        assert_eq!(
            (page_size(4096).state, page_size(65536).state),
            (ItemState::Fine, ItemState::Note)
        );
        assert_eq!(page_size(65536).found.as_deref(), Some("65536 B"));
    }
}
