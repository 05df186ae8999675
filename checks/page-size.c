/*
about = "for which page sizes the file of the library is made"
group = "environment"
standing = "observe"
source = "ELF: the alignment of segments; jemalloc issues 467 and 2639"
why = "kernels of arm64 have pages of 4, 16 or 64 KiB, and load no file that is aligned to less"
*/
#include "harness/check.h"
#include <dlfcn.h>
#include <link.h>

static int look(struct dl_phdr_info *info, size_t size, void *address) {
    size_t least = SIZE_MAX;
    bool is_it = false;
    for (int which = 0; which < info->dlpi_phnum; which++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[which];
        if (segment->p_type != PT_LOAD) continue;
        if (segment->p_align < least) least = segment->p_align;
        is_it |= (uintptr_t)address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz;
    }
    if (is_it) NOTE("largest page that its segments allow=%zu KiB", least >> 10);
    return is_it && size;
}

CHECK {
    NOTE("page here=%d KiB", getpagesize() >> 10);
    if (!dl_iterate_phdr(look, dlsym(RTLD_DEFAULT, "malloc"))) UNSUPPORTED("the object of malloc was not found");
}

#ifdef PLANTED

#endif
