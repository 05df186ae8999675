//! The objects that the dynamic linker has loaded: their names, their addresses, and the functions
//! that they define.

use crate::elf::Image;
use core::ffi::{CStr, c_int, c_void};
use core::ptr;

const MOST_OBJECTS: usize = 64;

/// A loaded object and the addresses it spans.
#[derive(Clone, Copy)]
pub struct MappedObject {
    /// The object's file.
    pub path: &'static CStr,
    start: usize,
    end: usize,
    /// The descriptor of the object's GNU build-id note; empty if there is none.
    pub build_id: &'static [u8],
    image: Option<Image>,
}

const NONE: MappedObject = MappedObject {
    path: c"",
    start: 0,
    end: 0,
    build_id: &[],
    image: None,
};

/// The loaded objects, in the order in which the dynamic linker looks names up.
pub struct Objects {
    list: [MappedObject; MOST_OBJECTS],
    len: usize,
}

impl Objects {
    /// The objects that are loaded now.
    pub fn loaded() -> Objects {
        let mut objects = Objects {
            list: [NONE; MOST_OBJECTS],
            len: 0,
        };
        // SAFETY: the callback gets the pointer that is passed here, and `objects` outlives the
        // call.
        unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut objects).cast()) };
        objects
    }

    /// The index of the object that owns this address.
    pub fn owner(&self, address: *mut c_void) -> Option<usize> {
        let address = address as usize;
        self.all()
            .iter()
            .position(|object| (object.start..object.end).contains(&address))
    }

    /// The path of the object that owns a function.
    pub fn path_of(&self, function: *mut c_void) -> Option<&'static CStr> {
        Some(self.list[self.owner(function)?].path)
    }

    /// All mapped objects.
    pub fn all(&self) -> &[MappedObject] {
        &self.list[..self.len]
    }

    /// The address of this name in the first object that defines it, or null.
    pub fn find(&self, name: &CStr) -> *mut c_void {
        self.all()
            .iter()
            .find_map(|object| object.image?.find(name))
            .unwrap_or(ptr::null_mut())
    }

    /// Like [`Objects::find`], but only if the address belongs to the object that owns `function`,
    /// or to the object whose path ends in `also` (some allocators come in two libraries): a
    /// function from another object could not handle the allocator's blocks.
    pub fn find_beside(
        &self,
        function: *mut c_void,
        name: &CStr,
        also: Option<&str>,
    ) -> Option<*mut c_void> {
        let found = self.find(name);
        let owner = self.owner(found)?;
        let named = |also: &str| {
            !also.is_empty()
                && self.list[owner]
                    .path
                    .to_str()
                    .is_ok_and(|path| path.ends_with(also))
        };
        (Some(owner) == self.owner(function) || also.is_some_and(named)).then_some(found)
    }
}

unsafe extern "C" fn note(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    objects: *mut c_void,
) -> c_int {
    // SAFETY: both pointers come from `dl_iterate_phdr` and `Objects::loaded`.
    let (info, objects) = unsafe { (&*info, &mut *objects.cast::<Objects>()) };
    if objects.len == MOST_OBJECTS {
        return 1;
    }
    // SAFETY: the dynamic linker keeps names and program headers as long as the object is loaded,
    // and nothing is unloaded here.
    let (path, headers) = unsafe {
        let path = if objects.len == 0 {
            c"/proc/self/exe"
        } else {
            CStr::from_ptr::<'static>(info.dlpi_name)
        };
        (
            path,
            core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
        )
    };
    // SAFETY: as above.
    let image = unsafe { Image::of(info.dlpi_addr as usize, headers) };
    let mut object = MappedObject {
        path,
        start: usize::MAX,
        image,
        ..NONE
    };
    for header in headers {
        let start = (info.dlpi_addr + header.p_vaddr) as usize;
        let end = start + header.p_memsz as usize;
        match header.p_type {
            libc::PT_LOAD => {
                object.start = object.start.min(start);
                object.end = object.end.max(end);
            }
            libc::PT_NOTE => {
                // SAFETY: a note segment of a loaded object is readable memory.
                let notes = unsafe { core::slice::from_raw_parts(start as *const u8, end - start) };
                object.build_id = build_id(notes).unwrap_or(object.build_id);
            }
            _ => {}
        }
    }
    objects.list[objects.len] = object;
    objects.len += 1;
    0
}

/// The descriptor of the GNU build-id note (type 3) in a note segment.
fn build_id(mut notes: &'static [u8]) -> Option<&'static [u8]> {
    let word = |bytes: &[u8], at: usize| {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
    };
    loop {
        let (name_len, len, kind) = (word(notes, 0)?, word(notes, 4)?, word(notes, 8)?);
        let name = 12 + name_len.next_multiple_of(4);
        if kind == 3 && notes.get(12..16)? == b"GNU\0" {
            return notes.get(name..name + len);
        }
        notes = notes.get(name + len.next_multiple_of(4)..)?;
    }
}
