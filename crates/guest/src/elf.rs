//! Looks names up in an ELF object in memory, through the object's own tables. `dlsym` would do,
//! but if it finds nothing it formats an error message, and for that calls the very `malloc` and
//! `free` that are being examined.

use core::ffi::{CStr, c_void};
use core::mem::transmute;
use core::ptr;

/// A program header of a 64-bit object.
type Header = libc::Elf64_Phdr;

/// An object whose tables are in memory.
#[derive(Clone, Copy)]
pub struct Image {
    /// The number that must be added to addresses from the file.
    bias: usize,
    symbols: *const Symbol,
    strings: *const u8,
    versions: *const u16,
    names: Names,
    soname: usize,
}

/// An entry of the symbol table.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// How names are found: through the GNU hash table, or through the older hash table, which at least
/// gives the number of symbols.
#[derive(Clone, Copy)]
enum Names {
    Gnu(*const u32),
    Old(*const u32),
}

impl Image {
    /// The object whose ELF header is at `start`; `None` if it has no names.
    ///
    /// # Safety
    /// A dynamic linker (or the kernel) has loaded an object there, and it stays loaded.
    pub unsafe fn at(start: *const u8) -> Option<Image> {
        // SAFETY: a loaded object begins with its header, and its program headers are loaded with
        // it.
        let headers = unsafe {
            let header = &*start.cast::<libc::Elf64_Ehdr>();
            core::slice::from_raw_parts(
                start.add(header.e_phoff as usize).cast::<Header>(),
                header.e_phnum.into(),
            )
        };
        let first = headers
            .iter()
            .find(|header| header.p_type == libc::PT_LOAD)?;
        let bias = start
            .addr()
            .wrapping_sub((first.p_vaddr - first.p_offset) as usize);
        // SAFETY: the caller guarantees the object.
        unsafe { Image::of(bias, headers) }
    }

    /// The object with these program headers.
    ///
    /// # Safety
    /// As for [`Image::at`].
    pub unsafe fn of(bias: usize, headers: &[Header]) -> Option<Image> {
        const DT_HASH: i64 = 4;
        const DT_STRTAB: i64 = 5;
        const DT_SYMTAB: i64 = 6;
        const DT_SONAME: i64 = 14;
        const DT_GNU_HASH: i64 = 0x6fff_fef5;
        const DT_VERSYM: i64 = 0x6fff_fff0;
        let dynamic = headers
            .iter()
            .find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let mut entry = bias.wrapping_add(dynamic.p_vaddr as usize) as *const Dynamic;
        let (mut symbols, mut strings, mut versions, mut soname) =
            (ptr::null(), ptr::null(), ptr::null(), 0);
        let (mut gnu, mut old) = (None, None);
        loop {
            // SAFETY: the section ends with a tag of 0.
            let Dynamic { tag, value } = unsafe { &*entry };
            // Some dynamic linkers add the bias in place, others leave the values of the file.
            let value = *value as usize;
            let address = if value < bias { bias + value } else { value };
            match *tag {
                0 => break,
                DT_SYMTAB => symbols = address as *const Symbol,
                DT_STRTAB => strings = address as *const u8,
                DT_VERSYM => versions = address as *const u16,
                DT_GNU_HASH => gnu = Some(Names::Gnu(address as *const u32)),
                DT_HASH => old = Some(Names::Old(address as *const u32)),
                DT_SONAME => soname = value,
                _ => {}
            }
            // SAFETY: the section continues until a tag of 0.
            entry = unsafe { entry.add(1) };
        }
        let names = gnu
            .or(old)
            .filter(|_| !symbols.is_null() && !strings.is_null())?;
        Some(Image {
            bias,
            symbols,
            strings,
            versions,
            names,
            soname,
        })
    }

    /// The object's own name; empty if it has none.
    pub fn soname(&self) -> &CStr {
        // SAFETY: the offset comes from the object, or is 0, at which an empty name lies.
        unsafe { CStr::from_ptr(self.strings.add(self.soname).cast()) }
    }

    /// The function or variable that this object exports under the given name, in its default
    /// version.
    pub fn find(&self, name: &CStr) -> Option<*mut c_void> {
        const INDIRECT: u8 = 10;
        // SAFETY: the tables of a loaded object match its hash tables.
        unsafe {
            let index = match self.names {
                Names::Gnu(table) => self.by_gnu_hash(table, name),
                Names::Old(table) => (1..*table.add(1)).find(|index| self.is(*index, name)),
            }?;
            let symbol = &*self.symbols.add(index as usize);
            let address = self.bias.wrapping_add(symbol.value as usize) as *mut c_void;
            if symbol.info & 15 == INDIRECT {
                // The symbol is an indirect function, which returns the variant for this machine.
                let choose =
                    transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_void>(address);
                return Some(choose());
            }
            Some(address)
        }
    }

    /// Looks a name up in a GNU hash table. The table's words are: number of buckets, index of the
    /// first symbol with a hash, number of words of a filter, the filter's shift; the filter in
    /// words of 64 bits; each bucket's first symbol; and the symbols' hashes, the last one of a
    /// bucket with its lowest bit set.
    unsafe fn by_gnu_hash(&self, table: *const u32, name: &CStr) -> Option<u32> {
        let hash = name.to_bytes().iter().fold(5381u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add((*byte).into())
        });
        // SAFETY: the caller guarantees the table.
        unsafe {
            let (buckets, first, filter) = (*table, *table.add(1), *table.add(2));
            let bucket = table.add(4 + 2 * filter as usize);
            let hashes = bucket.add(buckets as usize);
            let mut index = *bucket.add(hash.checked_rem(buckets)? as usize);
            while index >= first {
                let other = *hashes.add((index - first) as usize);
                if other | 1 == hash | 1 && self.is(index, name) {
                    return Some(index);
                }
                if other & 1 == 1 {
                    break;
                }
                index += 1;
            }
            None
        }
    }

    /// Whether a symbol is defined and exported here and has this name.
    unsafe fn is(&self, index: u32, name: &CStr) -> bool {
        const HIDDEN_VERSION: u16 = 0x8000;
        const LOCAL: u8 = 0;
        const KINDS: [u8; 4] = [0, 1, 2, 10];
        // SAFETY: the caller guarantees the index.
        unsafe {
            let symbol = &*self.symbols.add(index as usize);
            let is_default =
                self.versions.is_null() || *self.versions.add(index as usize) & HIDDEN_VERSION == 0;
            let is_there = symbol.section != 0
                && symbol.info >> 4 != LOCAL
                && KINDS.contains(&(symbol.info & 15));
            is_there
                && is_default
                && CStr::from_ptr(self.strings.add(symbol.name as usize).cast()) == name
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Objects;

    fn dlsym(name: &CStr) -> *mut c_void {
        // SAFETY: looks a name up in the global scope.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    }

    #[test]
    fn what_is_found_is_what_the_dynamic_linker_finds() {
        let objects = Objects::loaded();
        for name in [
            c"malloc",
            c"mallinfo2",
            c"free",
            c"pthread_create",
            c"environ",
            c"strlen",
            c"_Unwind_Resume",
        ] {
            assert!(!dlsym(name).is_null(), "{name:?}");
            assert_eq!(objects.find(name), dlsym(name), "{name:?}");
        }
        for name in [c"", c"sdallocx", c"malloc_", c"no such name"] {
            assert!(objects.find(name).is_null(), "{name:?}");
        }
    }

    #[test]
    fn an_object_is_found_by_where_its_header_lies() {
        // SAFETY: the kernel has loaded an object there.
        let image =
            unsafe { Image::at(libc::getauxval(libc::AT_SYSINFO_EHDR) as *const u8) }.unwrap();
        assert!(
            image.soname().to_bytes().starts_with(b"linux-vdso"),
            "{:?}",
            image.soname()
        );
        assert_eq!(image.find(c"malloc"), None);
    }
}
