/*
about = "how many addresses of code lie in writable data of the library, and what its file lets the processor check"
group = "placement"
source = "RELRO; __malloc_hook of glibc before 2.34"
why = "one write to such a word runs code of the attacker's choice"
ends = "values"
trials = 1
sizes = [24]
*/
#include "../harness/misuse.h"
#include <dlfcn.h>
#include <link.h>

#ifdef __x86_64__
enum { FEATURES = 0xc0000002 };
#else
enum { FEATURES = 0xc0000000 }; // Of 64-bit Arm.
#endif
static size_t codes[1024][2], words;
static int parts;
static void *base;

static int code(struct dl_phdr_info *info, size_t unused, void *none) {
    for (int i = 0; i < info->dlpi_phnum && parts < 1024; i++) {
        size_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            codes[parts][0] = from, codes[parts++][1] = from + info->dlpi_phdr[i].p_memsz;
    }
    return (void)unused, (void)none, 0;
}

static int data(struct dl_phdr_info *info, size_t unused, void *none) {
    size_t relro = 0, end = 0, now = 0, marks = 0;
    if ((void *)info->dlpi_addr != base) return (void)unused, (void)none, 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        size_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO) relro = from, end = (from + part->p_memsz) & ~(size_t)4095;
        for (const ElfW(Dyn) *it = (void *)from; part->p_type == PT_DYNAMIC && it->d_tag != DT_NULL; it++)
            now |= it->d_tag == DT_BIND_NOW || (it->d_tag == DT_FLAGS_1 && it->d_un.d_val & DF_1_NOW);
        // A note's head and its name; then properties: type, bytes, and these, rounded up to 8.
        const uint32_t *note = (void *)from, *last = (void *)(from + part->p_memsz);
        for (note += 4; part->p_type == PT_GNU_PROPERTY && note + 2 < last; note += 2 + (note[1] + 7) / 8 * 2)
            if (note[0] == FEATURES) marks = note[2];
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        size_t from = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W)) continue;
        for (size_t at = (from + 7) & ~(size_t)7; at + 8 <= from + part->p_memsz; at += 8)
            for (int which = 0; which < parts && !(at >= relro && at < end); which++)
                words += *(size_t *)at >= codes[which][0] && *(size_t *)at < codes[which][1];
    }
    NOTE("writable words that hold addresses of code=%zu", words);
    NOTE("relocations read-only=%s", !relro ? "no" : now ? "all" : "some");
    NOTE("targets of branches are marked (IBT, BTI)=%s", marks & 1 ? "yes" : "no");
    NOTE("returns may be checked (shadow stack, PAC)=%s", marks & 2 ? "yes" : "no");
    return 1;
}

MISUSE {
    Dl_info owner;
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
    free(allocate(size));
    base = dladdr((void *)allocate, &owner) ? owner.dli_fbase : NULL;
    dl_iterate_phdr(code, NULL);
    dl_iterate_phdr(data, NULL);
}
