/*
about = "blocks of one thread are checked and freed by another"
group = "threads"
standing = "robust"
source = "every program with a queue"
why = "remote frees take a path of their own, and their memory must come back"
*/
#include "harness/check.h"
#include "harness/resident.h"
#include <pthread.h>

static unsigned char *box[512];

static void *consumer(void *round) {
    for (int which = 0; which < 512; which++) {
        EXPECT(box[which][0] == (unsigned char)which, "round %p: a block of another thread has changed", round);
        free(box[which]);
    }
    return round;
}

CHECK {
    size_t early = 0;
    for (intptr_t round = 0; round < 300; round++) {
        pthread_t thread;
        for (int which = 0; which < 512; which++) {
            size_t size = 16 + (which * 37 + round) % 3000;
            memset(box[which] = malloc(size), which, size);
        }
        if (pthread_create(&thread, NULL, consumer, (void *)round)) UNSUPPORTED("no thread");
        pthread_join(thread, NULL);
        if (round == 20) early = resident();
    }
    size_t late = resident();
    EXPECT(late < early + (32 << 20), "%zu MiB after 20 rounds, %zu MiB after 300", early >> 20, late >> 20);
}

#ifdef PLANTED
static __thread char *made_here;
void *malloc(size_t size) {
    return made_here = __libc_malloc(size);
}
void free(void *block) {
    if (block && !made_here) __builtin_trap();
    __libc_free(block);
}
#endif
