//! Finds every C library in this process, including those in separate namespaces (`dlmopen`), and
//! reads how many bytes each has handed out. The libraries are found in the kernel's list of
//! mappings: a list kept by a program could lack a library that is to be hidden.

use crate::elf::Image;
use crate::sys;
use core::mem::transmute;

/// Bytes in live blocks of all C libraries; `None` if none of them reports it.
pub fn handed_out() -> Option<u64> {
    let mut sum = None;
    each(|image| {
        if let Some(tell) = image.find(c"mallinfo2") {
            // SAFETY: glibc's function since 2.33, which takes no arguments and may be called at
            // any time.
            let info = unsafe {
                transmute::<*mut core::ffi::c_void, unsafe extern "C" fn() -> Mallinfo2>(tell)()
            };
            *sum.get_or_insert(0) += (info.in_arenas + info.mapped) as u64;
        }
    });
    sum
}

/// glibc's `struct mallinfo2`.
#[repr(C)]
struct Mallinfo2 {
    _before: [usize; 4],
    /// `hblkhd`: large blocks, each in a mapping of its own.
    mapped: usize,
    _between: [usize; 2],
    /// `uordblks`: all other blocks.
    in_arenas: usize,
    _after: [usize; 2],
}

/// A line of the kernel's list of mappings.
struct LibraryMapping {
    start: usize,
    end: usize,
    executable: bool,
    is_start_of_file: bool,
    inode: u64,
}

impl LibraryMapping {
    /// Parses a line: `START-END rwxp OFFSET DEVICE INODE PATH`.
    fn parse(line: &str) -> Option<LibraryMapping> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (access, offset, _device, inode) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let hex = |word| usize::from_str_radix(word, 16).ok();
        Some(LibraryMapping {
            start: hex(start)?,
            end: hex(end)?,
            executable: access.contains('x'),
            is_start_of_file: access.starts_with('r') && hex(offset)? == 0,
            inode: inode.parse().ok().filter(|inode| *inode != 0)?,
        })
    }
}

/// Calls `look` with each C library that a dynamic linker has loaded. The code of a loaded object
/// lies where its headers say; a file that was only mapped for reading has no code there.
fn each(mut look: impl FnMut(&Image)) {
    let libc = |start: usize| {
        // SAFETY: called only for a mapping that is readable and is followed by the object's code.
        let image = unsafe { Image::at(start as *const u8) };
        image.filter(|image| image.soname().to_bytes().starts_with(b"libc.so"))
    };
    let mut begun: Option<LibraryMapping> = None;
    let Some(maps) = sys::RawFile::open(c"/proc/self/maps") else {
        return;
    };
    // Lines that are too long to be passed on do not belong to a library.
    maps.lines(|line| {
        let Some(mapping) = LibraryMapping::parse(line) else {
            return;
        };
        if mapping.is_start_of_file {
            begun = Some(mapping);
        } else if mapping.executable
            && let Some(begin) = begun.take_if(|begin| begin.inode == mapping.inode)
            && code(&begin).is_some_and(|code| (mapping.start..mapping.end).contains(&code))
        {
            libc(begin.start).iter().for_each(&mut look);
        }
    });
}

/// The address of the code of the object whose header may be at the start of this mapping; `None`
/// if there is no header.
fn code(begin: &LibraryMapping) -> Option<usize> {
    // SAFETY: the mapping is readable, and all reads lie within it, as is checked.
    unsafe {
        let header = &*(begin.start as *const libc::Elf64_Ehdr);
        let headers =
            header.e_phoff as usize + header.e_phnum as usize * size_of::<libc::Elf64_Phdr>();
        if !header.e_ident.starts_with(b"\x7fELF") || headers > begin.end - begin.start {
            return None;
        }
        let first = (begin.start + header.e_phoff as usize) as *const libc::Elf64_Phdr;
        let headers = core::slice::from_raw_parts(first, header.e_phnum.into());
        let code = headers
            .iter()
            .find(|segment| segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_X != 0)?;
        let first = headers
            .iter()
            .find(|segment| segment.p_type == libc::PT_LOAD)?;
        Some(begin.start + (code.p_vaddr - first.p_vaddr) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libc_tells_what_it_has_handed_out_small_and_large_and_a_file_that_is_only_read_is_no_libc() {
        const SMALL: usize = 1000;
        const LARGE: usize = 64 << 20;
        let mut found = 0;
        each(|_| found += 1);
        assert_eq!(found, 1);

        // The file of libc, mapped by a program that only reads it.
        let objects = crate::objects::Objects::loaded();
        let path = objects
            .path_of(libc::malloc as *mut core::ffi::c_void)
            .unwrap();
        assert!(crate::memory::map_file(path).is_some());
        let mut found = 0;
        each(|_| found += 1);
        assert_eq!(found, 1);

        let before = handed_out().unwrap();
        // SAFETY: ordinary calls.
        unsafe {
            let small: [*mut _; SMALL] =
                core::array::from_fn(|_| core::hint::black_box(libc::malloc(2000)));
            let large = core::hint::black_box(libc::malloc(LARGE));
            let grown = handed_out().unwrap() - before;
            // Other tests of this process allocate at the same time, but less than this.
            let asked = (SMALL * 2000 + LARGE) as u64;
            assert!((asked..asked + (8 << 20)).contains(&grown), "{grown}");
            small.into_iter().for_each(|block| libc::free(block));
            libc::free(large);
        }
        assert!(handed_out().unwrap() < before + (8 << 20));
    }
}
