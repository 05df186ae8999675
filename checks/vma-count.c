/*
about = "200 MiB of live blocks need less mappings than a standard kernel allows"
group = "memory"
standing = "robust"
source = "vm.max_map_count, 65530 by default; mimalloc issue 1309, documents of hardened_malloc"
why = "guards and purged ranges split mappings, until mmap fails with memory to spare"
full = true
*/
#include "harness/check.h"
#include <fcntl.h>

static char *blocks[40000];

static int mappings(const char *when) {
    static char text[1 << 16];
    int file = open("/proc/self/maps", O_RDONLY), lines = 0;
    for (ssize_t has; (has = read(file, text, sizeof text)) > 0;)
        for (ssize_t place = 0; place < has; place++) lines += text[place] == '\n';
    close(file);
    NOTE("mappings %s=%d", when, lines);
    return lines;
}

CHECK {
    mappings("at the start");
    for (int which = 0; which < 40000; which++) {
        size_t size = which % 40 ? 16 + which * 37 % 4000 : 16384 + which * 37 % 200000;
        blocks[which] = malloc(size);
        EXPECT(blocks[which], "malloc(%zu) failed with %d blocks", size, which);
        if (blocks[which]) memset(blocks[which], 1, size);
    }
    EXPECT(mappings("with 40000 live blocks") < 60000, "40000 live blocks make more than 60000 mappings");
    for (int which = 0; which < 40000; which += 2) free(blocks[which]);
    malloc_trim(0);
    EXPECT(mappings("after each second was freed") < 60000, "20000 live blocks make more than 60000 mappings");
    for (int which = 1; which < 40000; which += 2) free(blocks[which]);
    mappings("after all were freed");
}

#ifdef PLANTED
#include <sys/mman.h>
void *malloc(size_t size) {
    if (size < 16384 || size > 300000) return __libc_malloc(size);
    for (int times = 0; times < 40; times++)
        mprotect((char *)mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096, PROT_NONE);
    return __libc_malloc(size);
}
#endif
