//! What `heapmark which` says about the processes that it has looked at.

use crate::given::Given;
use crate::held::HeldMemory;
use crate::look::ProcessView;
use crate::serving::{How, Serving, Whom};
use heapmark_core::execute::resident::ResidentByKind;
use heapmark_core::report::document::{Block, Cell, Mark, Note, Sheet};
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{count, cut};
use heapmark_core::report::units::{bytes, grouped};

/// With more than this share of the mappings that the kernel allows, a process is about to fail.
const MANY: f64 = 0.8;
/// The most characters of a command that are shown.
const LONGEST: usize = 60;

/// All views, one after the other. Equal views are shown once, with their number.
pub fn looks(all: &[ProcessView]) -> Vec<Block> {
    let mut groups: Vec<Vec<&ProcessView>> = Vec::new();
    for look in all {
        match groups.iter_mut().find(|group| group[0].says_the_same(look)) {
            Some(group) => group.push(look),
            None => groups.push(vec![look]),
        }
    }
    groups.iter().flat_map(|group| of_group(group)).collect()
}

fn of_group(group: &[&ProcessView]) -> Vec<Block> {
    let look = group[0];
    let mut lines: Vec<Note> = Vec::new();
    lines.extend(look.malloc.iter().map(|serving| by_what(serving).into()));
    for preload in &look.preloads {
        let named = format!("{} names {}", preload.place, preload.named);
        if let Some(why) = &preload.why {
            lines.push(Note::marked(format!("{named}: {why}"), Mark::Failed));
        } else if look
            .malloc
            .iter()
            .all(|serving| preload.file.as_ref() != Some(&serving.file))
            && look
                .malloc
                .iter()
                .any(|serving| serving.allocator.is_some())
        {
            lines.push(format!("{named}: it is loaded, and serves no malloc").into());
        }
    }
    for dropped in &look.dropped {
        let words = format!(
            "{} did not arrive: {} ({}) above it has {:?}",
            dropped.variable, dropped.name, dropped.pid, dropped.value
        );
        lines.push(Note::marked(words, Mark::Failed));
    }
    lines.extend(look.notes.iter().map(|note| note.clone().into()));
    if let [_, others @ ..] = group
        && !others.is_empty()
    {
        let pids: Vec<String> = others.iter().map(|other| other.pid.to_string()).collect();
        lines.push(format!("the same holds for {}", pids.join(", ")).into());
    }
    let mut held: Vec<Note> = vec![held_words(group).into()];
    held.extend(held_by_all(group).map(Note::from));
    held.push(cpus(look).into());
    for one in group {
        let HeldMemory {
            resident: ResidentByKind { mappings, .. },
            most_mappings,
        } = one.memory;
        if mappings as f64 > most_mappings as f64 * MANY {
            let words = format!(
                "{}{} of {} mappings: at the limit allocations fail (raise vm.max_map_count, or map less)",
                whose(one, group),
                grouped(mappings),
                grouped(most_mappings)
            );
            held.push(Note::marked(words, Mark::Failed));
        }
    }
    vec![
        Block::lines(headline(look), Mark::Strong, lines),
        Block::Sheet(settings(&look.settings)),
        Block::notes(held),
    ]
}

/// The answer in a line.
pub fn headline(look: &ProcessView) -> String {
    let title = format!("{} ({})", cut(&look.name, LONGEST), look.pid);
    let served = |serves: &[Whom]| {
        let fits = |serving: &&Serving| serves.contains(&serving.serves);
        look.malloc.iter().find(fits)
    };
    let Some(first) = served(&[Whom::All, Whom::Program]) else {
        return format!("{title}: what serves malloc is not known");
    };
    let mut words = match &first.allocator {
        None => "what serves malloc is not known".to_owned(),
        Some(_) if first.proven => format!("{} serves malloc", name(first)),
        Some(_) => format!("{} serves malloc, by its file", name(first)),
    };
    if first.serves == Whom::Program {
        words = match &first.allocator {
            None => "what serves the program's own calls is not known".into(),
            Some(_) => format!("{} serves the program's own calls", name(first)),
        };
        if let Some(libraries) = served(&[Whom::Libraries]) {
            words += &format!(", {} its libraries'", name(libraries));
        }
    }
    if first.how == How::Preloaded {
        words += ", preloaded";
    }
    if let Some(beside) = served(&[Whom::Callers]) {
        words += &format!(
            "; {} is inside the program, for what names it",
            name(beside)
        );
    }
    let lost = look
        .settings
        .iter()
        .filter(|setting| setting.state.is_lost())
        .count();
    if lost > 0 {
        words += &format!(
            "; {} without the effect that was meant",
            count(lost, "setting")
        );
    }
    format!("{title}: {words}")
}

fn name(serving: &Serving) -> String {
    let allocator = serving
        .allocator
        .as_deref()
        .unwrap_or("an unknown allocator");
    match &serving.version {
        Some(version) => format!("{allocator} {version}"),
        None => allocator.to_owned(),
    }
}

fn by_what(serving: &Serving) -> String {
    let whose = match serving.serves {
        Whom::All | Whom::Callers => "",
        Whom::Program => "the program's own calls: ",
        Whom::Libraries => "libraries' calls: ",
        Whom::OneLibrary => "past it: ",
    };
    format!(
        "{whose}{}, {}: {}",
        name(serving),
        serving.file,
        serving.evidence
    )
}

fn settings(all: &[Given]) -> Sheet {
    let mut sheet = SheetOf::new("settings", all);
    sheet.add("place", |given: &Given| Cell::text(given.place.as_str()));
    if all.iter().any(|given| !given.setting.is_empty()) {
        sheet.add("setting", |given| Cell::text(given.setting.as_str()));
    }
    sheet.add("given", |given| Cell::text(cut(&given.value, LONGEST)));
    sheet.add("state", |given| given.state.word());
    sheet.add("why", |given| Cell::text(given.why.as_str()));
    sheet.sheet
}

/// The number of a process, to stand before what holds for it alone in its group.
fn whose(look: &ProcessView, group: &[&ProcessView]) -> String {
    match group.len() {
        1 => String::new(),
        _ => format!("{} ", look.pid),
    }
}

fn held_words(group: &[&ProcessView]) -> String {
    let look = group[0];
    let words = held(&look.memory.resident, look.threads);
    let most = grouped(look.memory.most_mappings);
    format!("{}holds {words} of {most}", whose(look, group))
}

/// The least and the most memory that a process of a group holds.
fn held_by_all(group: &[&ProcessView]) -> Option<String> {
    let all = group.iter().map(|look| look.memory.resident.rss_bytes);
    let (least, most) = (all.clone().min()?, all.max()?);
    let words = format!(
        "all {}: RSS from {} to {}",
        group.len(),
        bytes(least as f64),
        bytes(most as f64)
    );
    (group.len() > 1).then_some(words)
}

/// The memory that a process holds, in a line.
pub fn held(held: &ResidentByKind, threads: u64) -> String {
    let part = |name: &str, size: u64| match size {
        0 => String::new(),
        size => format!(", {name} {}", bytes(size as f64)),
    };
    let kinds = [
        part("of that in arenas of threads", held.arena_bytes),
        part("stacks", held.stack_bytes),
        part("files", held.file_bytes),
        part("shared memory", held.shared_bytes),
    ]
    .concat();
    let also = [
        part("in huge pages", held.huge_bytes),
        part("lazily freed", held.lazily_freed_bytes),
        part("swapped", held.swapped_bytes),
    ]
    .concat();
    format!(
        "RSS {} (PSS {}): heap and its mappings {}{kinds}{also}; {}; {} mappings",
        bytes(held.rss_bytes as f64),
        bytes(held.pss_bytes as f64),
        bytes(held.heap_bytes as f64),
        count(threads, "thread"),
        grouped(held.mappings),
    )
}

fn cpus(look: &ProcessView) -> String {
    let cpus = look.cpus;
    let quota = match cpus.quota {
        Some(quota) => format!(", {quota} at once by its control group"),
        None => String::new(),
    };
    let allowed = match cpus.allowed == cpus.online {
        true => String::new(),
        false => format!(", may run on {}", cpus.allowed),
    };
    format!("sees {}{allowed}{quota}", count(cpus.online, "CPU"))
}
