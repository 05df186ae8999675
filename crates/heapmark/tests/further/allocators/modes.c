/* Prints what shows in which mode an allocator works, a line for each: whether neighbours lie in order, what a freed block and a
   used one hold, after how many others an address returns, and which signals end two mistakes. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 96, BLOCKS = 64, LARGE = 1 << 20 };

static void *(*volatile take)(size_t) = malloc;
static void (*volatile give)(void *) = free;

/* The signal that ends a child which makes a mistake; 0 if none does. */
static int ended_by(void (*mistake)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stderr);
        mistake();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void past_the_end(void) {
    for (int round = 0; round < 4; round++) {
        volatile char *block = take(LARGE);
        for (int page = 0; page < 4; page++) block[LARGE + (page << 12)] = 1;
    }
}

static void twice(void) {
    void *block = take(BYTES), *other = take(BYTES);
    give(block);
    give(other);
    give(block);
    for (int at = 0; at < BLOCKS; at++) take(BYTES);
}

int main(void) {
    setrlimit(RLIMIT_CORE, &(struct rlimit){0});
    volatile unsigned char *blocks[BLOCKS];
    for (int at = 0; at < BLOCKS; at++) memset(blocks[at] = take(BYTES), 0x33, BYTES);
    int alike = 1;
    for (int at = 2; at < BLOCKS; at++) alike += blocks[at] - blocks[at - 1] == blocks[1] - blocks[0];
    printf("order %s\n", alike > BLOCKS / 2 ? "fixed" : "random");
    for (int at = 0; at < BLOCKS; at++) give((void *)blocks[at]);
    printf("freed %02x\n", blocks[40][64]);
    volatile unsigned char *used = take(BYTES);
    printf("used %02x\n", used[64]);
    void *block = take(BYTES);
    give(block);
    int until = 0;
    while (until < 1000 && take(BYTES) != block) until++;
    printf("until %d\n", until);
    printf("past %d\n", ended_by(past_the_end));
    printf("twice %d\n", ended_by(twice));
    return 0;
}
