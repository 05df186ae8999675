// 64 MiB and more of small, large and aligned blocks: caches are filled and flushed, and the heap grows.
static int traffic(void) {
    static void *blocks[2000];
    for (int times = 0; times < 30000; times++) {
        void **place = &blocks[times * 7 % 2000];
        size_t size = times % 500 == 0 ? 1 << 20 : 16 + times % 40 * 97;
        free(*place);
        int error = times % 31 ? !(*place = malloc(size)) : posix_memalign(place, 256, size);
        if (error) return 1;
        memset(*place, times, 16);
    }
    for (int which = 0; which < 2000; which++) free(blocks[which]), blocks[which] = NULL;
    return 0;
}
