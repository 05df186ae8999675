/*
about = "blocks that the C library makes can be freed and grown"
group = "program"
standing = "std"
source = "POSIX.1-2024: strdup, getline, realpath, open_memstream"
why = "they come from the allocator that replaces malloc, or from another heap"
*/
#include "harness/check.h"

CHECK {
    char *text = strdup("a text"), *printed = NULL, *folder = getcwd(NULL, 0), *path = realpath("/", NULL);
    EXPECT(asprintf(&printed, "%d", 12345) == 5, "asprintf failed");
    text = realloc(text, 10000);
    EXPECT(strcmp(text, "a text") == 0, "realloc changed what strdup made");
    char *line = NULL, *stream = NULL;
    size_t has = 0, written = 0;
    FILE *file = fopen("/proc/self/maps", "r"), *memory = open_memstream(&stream, &written);
    EXPECT(file && getline(&line, &has, file) > 0, "getline failed");
    for (int times = 0; times < 1000; times++) fputs(printed, memory);
    fclose(memory);
    fclose(file);
    EXPECT(written == 5000 && strlen(stream) == 5000, "open_memstream has %zu bytes", written);
    free(text), free(printed), free(folder), free(path), free(line), free(stream);
}

#ifdef PLANTED
void *realloc(void *block, size_t size) {
    char *moved = __libc_malloc(size);
    if (block) memcpy(moved, block, 4);
    moved[block ? 4 : 0] = 0;
    return moved;
}
#endif
