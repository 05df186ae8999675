/* The library that orphan.c needs and does not find. */
int ghost(void) { return 0; }
