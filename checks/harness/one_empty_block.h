// A planted fault: all requests of no bytes get one and the same block.
static char none[16];
void *malloc(size_t size) {
    return size ? __libc_malloc(size) : none;
}
void free(void *block) {
    if (block != none) __libc_free(block);
}
