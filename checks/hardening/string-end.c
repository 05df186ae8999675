/*
about = "how far a string runs on that fills a block and has no end"
group = "overflow"
source = "CWE-170; hardened_malloc and mimalloc's secure build"
why = "a zero byte behind each block stops strlen and strcpy"
ends = "values"
trials = 1
*/
#include "../harness/misuse.h"

MISUSE {
    char *row[64];
    for (int i = 0; i < 64; i++) row[i] = take(size);
    volatile char *block = row[32];
    misuse();
    size_t usable = malloc_usable_size(row[32]), length = size, most = usable + (wrong ? 4096 : 0);
    for (size_t byte = size; byte < usable; byte++) block[byte] = 0x37;
    target(row[32] + usable, 1 << 20);
    while (length < most && block[length]) length++;
    target(row[32], 0);
    NOTE("bytes read behind the block=%s%zu", length == most ? ">= " : "", length - usable);
}
