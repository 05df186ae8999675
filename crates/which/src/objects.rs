//! The objects that a process has mapped: the program and libraries.

use crate::process::Process;
use heapmark_core::build::inspect::{Inspection, inspect_any};
use heapmark_core::execute::reach::{ELF, Mapping, file_name, is_ground, mappings};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// The mapped objects of a process.
pub struct MappedObjects<'a> {
    /// The process whose objects these are.
    pub process: &'a Process,
    /// The first mapping of each object.
    pub firsts: Vec<Mapping<'a>>,
    read: RefCell<BTreeMap<String, Rc<[u8]>>>,
    /// What each of `firsts` exports; `None` if it is no library, or may not be read.
    inspected: OnceCell<Vec<Option<Inspection>>>,
}

impl<'a> MappedObjects<'a> {
    /// The objects of a process with these mappings.
    pub fn of(process: &'a Process, maps: &'a str) -> MappedObjects<'a> {
        MappedObjects {
            process,
            firsts: mappings(maps).filter(Mapping::begins_a_file).collect(),
            read: RefCell::default(),
            inspected: OnceCell::new(),
        }
    }

    /// The first mapping of an object.
    pub fn mapping(&self, file: &str) -> Option<&Mapping<'a>> {
        self.firsts.iter().find(|mapping| mapping.file == file)
    }

    /// The content of an object, which is read once; empty if it may not be read.
    pub fn data(&self, file: &str) -> Rc<[u8]> {
        let read = || self.mapping(file)?.data(self.process.thread).ok();
        let mut known = self.read.borrow_mut();
        let data = known.entry(file.to_owned());
        data.or_insert_with(|| read().unwrap_or_default().into())
            .clone()
    }

    /// Whether the file of a mapped object may not be read.
    pub fn is_unread(&self, file: &str) -> bool {
        self.data(file).is_empty()
    }

    /// The first object beside the C library that imports this name through the dynamic linker.
    pub fn importer_of(&self, name: &str) -> Option<&str> {
        let imports_it = |file: &&str| {
            let data = self.data(file);
            !is_ground(file_name(file))
                && ElfFile64::parse(&*data).is_ok_and(|elf: ElfFile64| imports(&elf, &[name]))
        };
        self.firsts
            .iter()
            .map(|mapping| mapping.file)
            .find(imports_it)
    }

    /// The library that goes by this name: its path, the last part of that, or its soname. It comes without what it exports if it
    /// may not be read; its soname is not known then, and it may be a release of the name, as `libz.so.1.3` is of `libz.so.1`.
    pub fn named(&self, name: &str) -> Option<(&Mapping<'a>, Option<&Inspection>)> {
        let inspect = |mapping: &Mapping| {
            let is_object = self.data(mapping.file).starts_with(ELF);
            let path = is_object.then(|| mapping.path(self.process.thread))?;
            inspect_any(&path).ok()
        };
        let inspect_all = || self.firsts.iter().map(inspect).collect();
        let inspected: &Vec<_> = self.inspected.get_or_init(inspect_all);
        let mut all = self.firsts.iter().zip(inspected.iter().map(Option::as_ref));
        let is_it = |(mapping, inspection): &(&Mapping, Option<&Inspection>)| {
            let path = mapping.former_path();
            let is_named = [mapping.file, path, file_name(path)].contains(&name);
            match inspection {
                Some(inspection) => is_named || inspection.soname == name,
                None => {
                    let rest = file_name(path).strip_prefix(name);
                    let is_release = rest.is_some_and(|rest| rest.starts_with('.'));
                    (is_named || is_release) && self.is_unread(mapping.file)
                }
            }
        };
        all.find(is_it)
    }

    /// The first object that defines malloc, in the order in which the dynamic linker searches: the
    /// program, the preloaded libraries, then the needed ones, level by level. One that may not be
    /// read may define it.
    pub fn first(
        &self,
        program: &ElfFile64,
        preloaded: impl IntoIterator<Item = String>,
    ) -> Option<String> {
        let defines = |elf: &ElfFile64| {
            let mut all = elf
                .dynamic_symbols()
                .filter(|symbol| symbol.is_definition());
            all.any(|symbol| symbol.name() == Ok("malloc"))
        };
        if defines(program) {
            return Some(self.process.program.to_string_lossy().into_owned());
        }
        let needed = program.import_libraries().into_iter().flatten().flatten();
        let needed = needed.map(|library| String::from_utf8_lossy(library.name()).into_owned());
        let mut waiting: VecDeque<String> = preloaded.into_iter().chain(needed).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop_front() {
            let Some((mapping, inspection)) = self.named(&name) else {
                continue;
            };
            if !seen.insert(mapping.file) {
                continue;
            }
            if inspection.is_none_or(|inspection| inspection.exports.contains("malloc")) {
                return Some(mapping.file.to_owned());
            }
            let needed = inspection.map(|inspection| inspection.needed.iter().cloned());
            waiting.extend(needed.into_iter().flatten());
        }
        None
    }
}

/// Whether an object imports one of these names through the dynamic linker.
pub fn imports(elf: &ElfFile64, names: &[&str]) -> bool {
    let mut all = elf.dynamic_symbols().filter(|symbol| symbol.is_undefined());
    all.any(|symbol| symbol.name().is_ok_and(|name| names.contains(&name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_not_be_read_may_define_malloc_before_what_is_known_to() {
        let process = Process::of(std::process::id() as i32).unwrap();
        let gone = "/none/libgone.so.1.2 (deleted)";
        let line = format!("1000-2000 r--p 00000000 00:00 7    {gone}\n");
        let maps = process.maps().unwrap() + &line;
        let objects = MappedObjects::of(&process, &maps);
        let program = process.read("exe").unwrap();
        let elf: ElfFile64 = ElfFile64::parse(program.as_slice()).unwrap();
        let first = |name: &str| objects.first(&elf, [name.to_owned()]).unwrap();
        for name in ["libgone.so.1", "/none/libgone.so.1.2", gone] {
            assert_eq!(first(name), gone);
        }
        assert!(first("libgone.so.2").contains("libc.so"));
    }
}
