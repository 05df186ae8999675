static void held(const char *when, size_t before, size_t peak) {
    size_t now = resident();
    NOTE("held %s=%zu %%", when, now > before ? (now - before) * 100 / (peak - before) : 0);
}
// How much memory is held after so many blocks were freed.
static void give_back(int count, size_t bytes) {
    static char *blocks[200000];
    size_t before = resident();
    for (int which = 0; which < count; which++) memset(blocks[which] = malloc(bytes), 1, bytes);
    size_t peak = resident();
    for (int which = 0; which < count; which++) free(blocks[which]);
    held("at once", before, peak);
    usleep(1500000);
    held("after 1.5 s", before, peak);
    sleep(10);
    held("after 11.5 s", before, peak);
    for (int times = 0; times < 2000; times++) free(malloc(times * 13));
    held("after 2000 more calls", before, peak);
    malloc_trim(0);
    held("after malloc_trim", before, peak);
}
