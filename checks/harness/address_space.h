// Fills 512 MiB of address space with blocks of a size and of smaller ones, a process for each: what was of use to blocks of one size
// need not be of use to others.
static void fill_address_space(size_t largest, size_t smallest) {
    const char *again = getenv("AGAIN");
    size_t size = again ? strtoul(again, NULL, 10) : largest, count;
    limit(RLIMIT_AS, counted("VmSize:") + (512ul << 20));
    errno = 0;
    void **blocks = fill(size, &count);
    int error = errno;
    drain(blocks);
    if (count * size >= 1 << 30) UNSUPPORTED("it has reserved so much address space before that the limit is out of reach");
    EXPECT(error == ENOMEM, "malloc(%zu) returned NULL with errno %d", size, error);
    NOTE("blocks of %zu bytes=%zu MiB", size, count * size >> 20);
    if (size > smallest) {
        char next[24];
        sprintf(next, "%zu", size / 16);
        limit(RLIMIT_AS, SIZE_MAX);
        AGAIN(next);
    }
}
