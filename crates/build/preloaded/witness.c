/* Writes to the file HEAPMARK_WITNESS which object serves the malloc family in this process: for each function the first
 * object, in the dynamic linker's search order, that defines it. When the process ends by itself, also writes how the
 * process is scheduled and what is resident then. The library is preloaded behind an allocator, defines nothing that a
 * program could call, does not allocate, and writes everything at once, so that processes of one tree do not write into
 * each other's lines. */
#define _GNU_SOURCE
#include "handed.h"
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const FAMILY[] = {"malloc", "free", "calloc", "realloc"};
enum { FUNCTIONS = sizeof FAMILY / sizeof *FAMILY };

static char text[1 << 16], self[PATH_MAX], told[PATH_MAX];
static size_t length;

static void put(const char *word, size_t count) {
    if (count > sizeof text - length) count = sizeof text - length;
    memcpy(text + length, word, count);
    length += count;
}

static void word(const char *word) { put(word, strlen(word)); }

static void number(unsigned long number) {
    char digits[24], *first = digits + sizeof digits;
    do *--first = (char)('0' + number % 10); while (number /= 10);
    put(first, (size_t)(digits + sizeof digits - first));
}

/* Returns where an address of an object is in memory. Those in the kernel's own object (the vDSO) are not relocated. */
static const void *at(const struct dl_phdr_info *object, ElfW(Addr) address) {
    return (const void *)(address < object->dlpi_addr ? address + object->dlpi_addr : address);
}

struct names {
    const uint32_t *gnu, *sysv;
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Versym) *versions;
    const ElfW(Verdef) *defined_versions;
};

/* Returns whether programs ask for this definition. They ask for glibc's version of a function: a function without a
 * version serves them, too, but one with another version does not. */
static int is_asked_for(const struct names *names, uint32_t place) {
    if (!names->versions || !names->defined_versions) return 1;
    uint32_t version = names->versions[place] & 0x7fff;
    const ElfW(Verdef) *defined = names->defined_versions;
    while (defined->vd_ndx != version && defined->vd_next)
        defined = (const ElfW(Verdef) *)((const char *)defined + defined->vd_next);
    const ElfW(Verdaux) *named = (const ElfW(Verdaux) *)((const char *)defined + defined->vd_aux);
    return version < 2 || defined->vd_ndx != version || !strncmp(names->strings + named->vda_name, "GLIBC_", 6);
}

static int is(const struct names *names, uint32_t place, const char *name) {
    const ElfW(Sym) *symbol = names->symbols + place;
    return symbol->st_shndx != SHN_UNDEF && !strcmp(names->strings + symbol->st_name, name) && is_asked_for(names, place);
}

static int defines(const struct names *names, const char *name) {
    if (!names->symbols || !names->strings) return 0;
    if (!names->gnu) {
        for (uint32_t place = 1; names->sysv && place < names->sysv[1]; place++)
            if (is(names, place, name)) return 1;
        return 0;
    }
    uint32_t buckets = names->gnu[0], first = names->gnu[1], hash = 5381;
    const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(names->gnu + 4) + names->gnu[2]);
    for (const char *letter = name; *letter; letter++) hash = hash * 33 + (unsigned char)*letter;
    uint32_t place = buckets ? bucket[hash % buckets] : 0;
    for (; place >= first && place; place++) {
        uint32_t known = bucket[buckets + place - first];
        if ((known | 1) == (hash | 1) && is(names, place, name)) return 1;
        if (known & 1) break;
    }
    return 0;
}

static struct names names_of(const struct dl_phdr_info *object) {
    struct names names = {0};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_GNU_HASH) names.gnu = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_HASH) names.sysv = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB) names.symbols = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_STRTAB) names.strings = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_VERSYM) names.versions = at(object, entry->d_un.d_ptr);
        if (entry->d_tag == DT_VERDEF) names.defined_versions = at(object, entry->d_un.d_ptr);
    }
    return names;
}

static int holds(const struct dl_phdr_info *object, const void *address) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && (uintptr_t)address - start < header->p_memsz) return 1;
    }
    return 0;
}

/* Writes an object's GNU build-id in hex, or a dash if it has none. */
static void build_id(const struct dl_phdr_info *object) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type != PT_NOTE) continue;
        const char *note = (const char *)(object->dlpi_addr + header->p_vaddr), *end = note + header->p_memsz;
        while (note + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *head = (const ElfW(Nhdr) *)note;
            const char *name = note + sizeof *head;
            const unsigned char *id = (const unsigned char *)name + (head->n_namesz + 3) / 4 * 4;
            if (head->n_type == 3 && head->n_namesz == 4 && !memcmp(name, "GNU", 4)) {
                for (uint32_t byte = 0; byte < head->n_descsz; byte++) {
                    put(&"0123456789abcdef"[id[byte] >> 4], 1);
                    put(&"0123456789abcdef"[id[byte] & 15], 1);
                }
                return;
            }
            note = (const char *)id + (head->n_descsz + 3) / 4 * 4;
        }
    }
    word("-");
}

struct search {
    unsigned long objects;
    int seen_self, owner[FUNCTIONS];
};

/* Writes a line for every object before this library (the program and the preloaded libraries) and for every owner. */
static int look(struct dl_phdr_info *object, size_t size, void *found) {
    (void)size;
    struct search *search = found;
    struct names names = names_of(object);
    int owns = 0;
    for (int i = 0; i < FUNCTIONS; i++)
        if (search->owner[i] < 0 && defines(&names, FAMILY[i])) {
            search->owner[i] = (int)search->objects;
            owns = 1;
        }
    search->seen_self |= holds(object, text);
    if (!search->seen_self || owns) {
        const char *path = search->objects ? object->dlpi_name : "/proc/self/exe";
        struct stat file = {0};
        stat(path, &file);
        word("object=");
        number(search->objects);
        word(" ");
        number(file.st_dev);
        word(" ");
        number(file.st_ino);
        word(" ");
        build_id(object);
        word(" ");
        word(search->objects ? path : self);
        word("\n");
    }
    search->objects++;
    return 0;
}

__attribute__((constructor)) static void tell(void) {
    const char *value = getenv("HEAPMARK_WITNESS");
    if (value && strlen(value) < sizeof told) strcpy(told, value);
    int file = handed(told, O_WRONLY | O_APPEND);
    if (file < 0) return;
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size < 0 ? 0 : size] = 0;
    word("process=");
    number((unsigned long)getpid());
    word(" ");
    number((unsigned long)getppid());
    word(" ");
    word(self);
    word("\n");
    struct search search = {.owner = {-1, -1, -1, -1}};
    dl_iterate_phdr(look, &search);
    for (int i = 0; i < FUNCTIONS; i++) {
        if (search.owner[i] < 0) continue;
        word("owner=");
        word(FAMILY[i]);
        word(" ");
        number((unsigned long)search.owner[i]);
        word("\n");
    }
    word("end=1\n");
    if (write(file, text, length) < 0) text[0] = 0;
    close(file);
}

/* Writes the policy, nice value, priority, and the CPUs in words of 64 bits: what a library could change to look fast. */
static void scheduling(void) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } told = {0};
    uint64_t cpus[128];
    long bytes = syscall(SYS_sched_getaffinity, 0, sizeof cpus, cpus);
    if (syscall(SYS_sched_getattr, 0, &told, sizeof told, 0) || bytes < 0) return;
    word("scheduled=");
    number(told.policy);
    word(told.nice < 0 ? " -" : " ");
    number((unsigned long)(told.nice < 0 ? -told.nice : told.nice));
    word(" ");
    number(told.priority);
    for (long i = 0; i < bytes / 8; i++) {
        word(" ");
        number(cpus[i]);
    }
    word("\n");
}

__attribute__((destructor)) static void tell_the_end(void) {
    char statm[128], *rest;
    int source = *told ? open("/proc/self/statm", O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = source < 0 ? 0 : read(source, statm, sizeof statm - 1);
    close(source);
    if (size <= 0) return;
    statm[size] = 0;
    strtoul(statm, &rest, 10);
    length = 0;
    word("resident=");
    number(strtoul(rest, NULL, 10) * (unsigned long)sysconf(_SC_PAGESIZE));
    word("\n");
    scheduling();
    int file = handed(told, O_WRONLY | O_APPEND);
    if (file >= 0 && write(file, text, length) < 0) text[0] = 0;
    close(file);
}
