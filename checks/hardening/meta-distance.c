/*
about = "where a pair of malloc and free writes besides the block, and whether guards lie around it"
group = "placement"
source = "every design decides it: headers, slabs, bitmaps elsewhere"
why = "an overflow reaches what lies near; what lies between guards is not reached at all"
ends = "values"
trials = 1
sizes = [24, 4000]
*/
#include "../harness/misuse.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { MOST = 20000 };
static size_t page;
static struct part {
    size_t from, end;
    bool is_written, is_closed;
} parts[4000];
static struct { size_t at; int part; } pages[MOST];
static int count, seen;
static char text[1 << 20];

// Whether a page differs from its copy, besides the block.
static bool differs(size_t at, const char *copy, size_t block, size_t end) {
    for (size_t byte = 0; byte < page; byte++)
        if (((volatile char *)at)[byte] != copy[byte] && (at + byte < block || at + byte >= end)) return true;
    return false;
}

// Mappings of the process; none of its own static data and of its stack.
static void read_maps(void) {
    int file = open("/proc/self/maps", O_RDONLY), used = 0, more;
    while ((more = read(file, text + used, sizeof text - 1 - used)) > 0) used += more;
    close(file);
    for (char *line = text; *line && count < 4000; line = strchr(line, '\n') + 1) {
        struct part *part = &parts[count++];
        char *rest;
        part->from = strtoull(line, &rest, 16), part->end = strtoull(rest + 1, &rest, 16);
        bool is_own = part->from <= (size_t)text && (size_t)text < part->end;
        part->is_written = rest[2] == 'w' && !is_own && !(part->from <= (size_t)&rest && (size_t)&rest < part->end);
        part->is_closed = memcmp(rest, " ---", 4) == 0;
    }
}

MISUSE {
    page = getpagesize();
    for (int i = 0; i < 1000; i++) (void)!malloc(size);
    free(malloc(size));
    read_maps();
    char *copies = mmap(NULL, MOST * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copies == MAP_FAILED) UNSUPPORTED("no memory for copies of pages");
    for (int which = 0; which < count; which++)
        for (size_t at = parts[which].from; at < parts[which].end && parts[which].is_written && seen < MOST; at += page) {
            unsigned char is_here = 0;
            if (at - parts[which].from > (size_t)1 << 28 || mincore((void *)at, page, &is_here) != 0 || !is_here) continue;
            pages[seen].at = at, pages[seen].part = which;
            memcpy(copies + seen++ * page, (char *)at, page);
        }
    static bool is_changed[MOST];
    char *pair = NULL, *end = NULL;
    for (int turn = 0; turn < 2; turn++) {
        if (turn == 0) pair = malloc(size), end = pair + malloc_usable_size(pair);
        else free(pair);
        for (int which = 0; which < seen; which++)
            if (differs(pages[which].at, copies + which * page, (size_t)pair, (size_t)end)) is_changed[which] = true;
    }
    int written = 0, guarded = 0;
    size_t nearest = SIZE_MAX, block_page = (size_t)pair & -page;
    bool is_near = false;
    for (int which = 0; which < seen; which++) {
        if (!is_changed[which]) continue;
        struct part *part = &parts[pages[which].part];
        size_t at = pages[which].at, distance = at > block_page ? at - block_page : block_page - at;
        written++;
        if (distance < nearest) nearest = distance, is_near = block_page >= part->from && block_page < part->end;
        bool is_after = part > parts && part[-1].is_closed && part[-1].end == part->from;
        guarded += is_after && part[1].is_closed && part[1].from == part->end;
    }
    NOTE("pages written by a pair=%d", written);
    if (written) NOTE("nearest=%s", !nearest ? "page of the block" : is_near ? "mapping of the block" : "another mapping");
    NOTE("of these between closed mappings=%d", guarded);
}
