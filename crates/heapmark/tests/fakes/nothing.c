/* Fakes a library that is no allocator: it exports nothing of the malloc family. Linked without own.c. */
int somebody_else(void) { return 1; }
