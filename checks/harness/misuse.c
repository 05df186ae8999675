// Runs a check of hardening: heapmark-check NAME FILE PAGE SIZE FORM WRONG SEED. All that a judge needs is in the page, which
// heapmark maps as well: it outlives any end of this process. Nothing here takes memory from the heap once the check has begun.
#include "misuse.h"
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/ucontext.h>
#include <sys/wait.h>

size_t size;
bool informed, wrong;

// The words of the page; crates/check/src/process_page.rs reads them in this order.
enum { PHASE, OPERATIONS, TARGET, TARGET_END, SIGNAL, CODE, ADDRESS, PC, OVERLAPS, BROKEN, SPILLED, CHOSEN_BLOCKS, CHOSEN_WRITES };
enum { SETUP, MISUSED, EXERCISE, VERIFY, DONE };

static volatile uint64_t *page;
static uint64_t state;

uint64_t chance(uint64_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state * 0x2545f4914f6cdd1d >> 16) % below;
}

// A byte that no allocator fills memory with: zero, jemalloc's and tcmalloc's junk, mimalloc's of its debugging build.
static unsigned char own_byte(void) {
    static const unsigned char taken[] = {0, 0x5a, 0xa5, 0xd0, 0xde, 0xdf, 0xab, 0xcd};
    unsigned char byte = chance(256);
    for (size_t which = 0; which < sizeof taken; which++)
        if (byte == taken[which]) byte ^= 0x11;
    return byte;
}

static struct block {
    char *at;
    size_t bytes;
    unsigned char own[8]; // Zeros: not compared.
} blocks[4096];
static int count;

// The middle of a large block is neither written nor read: overlaps are found by addresses.
enum { WHOLE = 16 << 10, HEAD = 1 << 10, TAIL = 256 };

static size_t next(const struct block *block, size_t byte) {
    return block->bytes > WHOLE && byte == HEAD ? block->bytes - TAIL : byte;
}

static void fill(struct block *block) {
    volatile char *at = block->at;
    for (size_t byte = 0; byte < block->bytes; byte = next(block, byte + 1)) at[byte] = block->own[byte % 8];
}

static bool is_whole(const struct block *block) {
    volatile char *at = block->at;
    for (size_t byte = 0; byte < block->bytes && block->own[0]; byte = next(block, byte + 1))
        if ((unsigned char)at[byte] != block->own[byte % 8]) return false;
    return true;
}

static const char *chosen_from, *chosen_end, *victim_from;
static size_t victim_bytes;
static uint64_t victim_sum;

static uint64_t sum(void) {
    uint64_t sum = 0;
    for (size_t byte = 0; byte < victim_bytes; byte++) sum = (sum + (unsigned char)victim_from[byte]) * 0x9e3779b97f4a7c15;
    return sum;
}

void chosen(const void *from, size_t bytes) { chosen_from = from, chosen_end = chosen_from + bytes; }
void victim(const void *from, size_t bytes) { victim_from = from, victim_bytes = bytes, victim_sum = sum(); }

// Without its tag, which Linux leaves out of the address of a fault as well.
void target(const void *from, size_t bytes) {
    uintptr_t at = (uintptr_t)from & UINTPTR_MAX >> 8;
    page[TARGET] = at, page[TARGET_END] = at + bytes;
}

// The last bad write.
static const char *written, *written_end;

void misuse(void) { page[PHASE] = MISUSED, written = written_end = NULL; }

// All blocks there have been lie between these.
static const char *lowest, *highest;

static void add(struct block new) {
    if (count == sizeof blocks / sizeof *blocks) _exit(121);
    blocks[count++] = new;
    if (!lowest || new.at < lowest) lowest = new.at;
    if (new.at + new.bytes > highest) highest = new.at + new.bytes;
}

char *own(char *block, size_t bytes) {
    const char *end = block + bytes;
    // Most allocators go up, or down: there is no need to look at every block.
    bool is_among_them = block < highest && lowest < end;
    for (int which = 0; is_among_them && which < count; which++)
        if (block < blocks[which].at + blocks[which].bytes && blocks[which].at < end) page[OVERLAPS]++;
    if (chosen_from && block < chosen_end && chosen_from < end) page[CHOSEN_BLOCKS]++;
    if (victim_from && block < victim_from + victim_bytes && victim_from < end) page[CHOSEN_BLOCKS]++;
    add((struct block){.at = block, .bytes = bytes});
    struct block *new = &blocks[count - 1];
    for (int byte = 0; byte < 8; byte++) new->own[byte] = own_byte();
    // A block at a place that belongs to another owner would break what is judged next.
    if (!page[OVERLAPS] && !page[CHOSEN_BLOCKS]) fill(new);
    return block;
}

void hold(char *block, size_t bytes) {
    add((struct block){.at = block, .bytes = bytes});
}

char *take(size_t bytes) {
    char *block = malloc(bytes);
    if (!block) UNSUPPORTED("malloc(%zu) returned NULL", bytes);
    return own(block, bytes);
}

static void drop(int which) {
    if (!is_whole(&blocks[which])) page[BROKEN]++;
    blocks[which] = blocks[--count];
}

static int number(const char *block) {
    int which = 0;
    while (which < count && blocks[which].at != block) which++;
    return which;
}

void disown(char *block) {
    int which = number(block);
    if (which < count) blocks[which] = blocks[--count];
}

void give(char *block) {
    int which = number(block);
    if (which < count) drop(which);
    free(block);
}

void spill(void) {
    for (int which = 0; which < count; which++) {
        struct block *block = &blocks[which];
        // It may lie in the middle of a large block, which is not read.
        bool is_written = block->at < written_end && written < block->at + block->bytes;
        if (is_written || !is_whole(block)) page[SPILLED]++, fill(block);
    }
}

void poke(char *to, size_t bytes) {
    written = to, written_end = to + bytes;
    target(to, bytes);
    for (size_t byte = 0; byte < bytes; byte++) ((volatile char *)to)[byte] = own_byte();
    target(NULL, 0);
}

void flip(char *at, size_t bytes) {
    written = at, written_end = at + bytes;
    target(at, bytes);
    for (size_t byte = 0; byte < bytes; byte++) ((volatile char *)at)[byte] ^= 0xff;
    target(NULL, 0);
}

void copy(char *to, const char *from, size_t bytes) {
    written = to, written_end = to + bytes;
    for (size_t byte = 0; byte < bytes; byte++) {
        target(from + byte, 1);
        char one = ((const volatile char *)from)[byte];
        target(to + byte, 1);
        ((volatile char *)to)[byte] = one;
    }
    target(NULL, 0);
}

// A file in memory. To write a byte into it that cannot be read is an error of the call, and no fault. process_vm_readv would need
// no file, but containers refuse it.
static int file;

bool is_mapped(const void *byte) { return pwrite(file, byte, 1, 0) == 1; }

void peek(char *to, const char *from, size_t bytes) {
    for (size_t byte = 0; byte < bytes; byte++)
        if (is_mapped(from + byte)) (void)!pread(file, to + byte, 1, 0);
}

void *operator_of(const char *name) {
    void *libcxx = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_GLOBAL), *found = dlsym(RTLD_DEFAULT, name);
    if (!libcxx || !found) UNSUPPORTED("no %s", name);
    return found;
}

// If the twin does not go well, nothing is known of the misuse.
static void expect_well(bool holds, const char *how) {
    if (!wrong && !holds) dprintf(2, "a process of its own that did nothing wrong: %s\n", how), _exit(1);
}

static const int ends[] = {SIGSEGV, SIGBUS, SIGABRT, SIGTRAP, SIGILL, SIGFPE, SIGSYS};

const char *apart(void) {
    pid_t child = fork();
    if (child == 0) {
        for (size_t which = 0; which < sizeof ends / sizeof *ends; which++) signal(ends[which], SIG_DFL);
        // Processor time, as the child may wait for a processor. One that sleeps must end within the 3 s of the check.
        setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = 1, .rlim_max = 2});
        alarm(2);
        return NULL;
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) UNSUPPORTED("no process");
    int by = WIFEXITED(status) ? 0 : WTERMSIG(status);
    const char *how = by == 0 ? WEXITSTATUS(status) == 0 ? "fine" : "stopped"
                    : by == SIGALRM || by == SIGXCPU ? "hang"
                    : by == SIGABRT || by == SIGTRAP || by == SIGILL ? "stopped" : "fault";
    expect_well(strcmp(how, "fine") == 0, how);
    return how;
}

void leave(void) { _exit(0); }

void look(void) {
    for (int which = 0; which < count; which++)
        if (!is_whole(&blocks[which])) page[BROKEN]++;
    if (victim_from && !page[CHOSEN_BLOCKS] && sum() != victim_sum) page[CHOSEN_WRITES]++;
}

int gained(void) {
    int most = page[CHOSEN_WRITES] ? 4 : page[CHOSEN_BLOCKS] ? 3 : page[OVERLAPS] ? 2 : 1;
    expect_well(most == 1 && !page[BROKEN], "blocks that are not its own");
    for (int word = TARGET; word <= CHOSEN_WRITES; word++) page[word] = 0;
    return most;
}

void exercise(void) {
    bool is_large = size > WHOLE;
    int most = is_large ? 40 : 800, turns = is_large ? 240 : 3000, first = count;
    const size_t classes[] = {size, size, size, size / 2 + 1, size - size / 8, size + size / 4 + 8, size * 2};
    page[PHASE] = EXERCISE;
    for (int turn = 0; turn < turns && !page[OVERLAPS] && !page[CHOSEN_BLOCKS]; turn++) {
        int live = count - first;
        if (turn < most || (live < most && chance(2))) {
            size_t bytes = turn < most ? size : classes[chance(7)];
            char *block = malloc(bytes);
            if (block) own(block, bytes);
        } else if (live > 0) {
            int which = first + chance(live);
            char *block = blocks[which].at;
            drop(which);
            free(block);
        }
        page[OPERATIONS]++;
    }
    // All blocks of the check, too.
    for (int which = count - 1; which >= 0 && !page[OVERLAPS] && !page[CHOSEN_BLOCKS]; which--) {
        char *block = blocks[which].at;
        if (!blocks[which].own[0]) continue;
        drop(which);
        free(block);
        page[OPERATIONS]++;
    }
}

void pairs(int count) {
    page[PHASE] = EXERCISE;
    for (int i = 0; i < (size > WHOLE ? count / 16 : count); i++) {
        void *block = malloc(size);
        page[OPERATIONS]++;
        free(block);
        page[OPERATIONS]++;
    }
}

// What an allocator does after it was called wrongly is known by its signal, even if it ends by another one.
static void caught(int signal_number, siginfo_t *info, void *context) {
    if (!page[SIGNAL]) {
        page[CODE] = info->si_code;
        page[ADDRESS] = (uintptr_t)info->si_addr;
#ifdef __x86_64__
        page[PC] = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
        page[PC] = ((ucontext_t *)context)->uc_mcontext.pc;
#endif
        page[SIGNAL] = signal_number;
    }
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    signal(signal_number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &only, NULL);
    raise(signal_number);
}

static void catch_signals(void) {
    static char stack[64 << 10];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    for (size_t which = 0; which < sizeof ends / sizeof *ends; which++) sigaction(ends[which], &action, NULL);
}

void heapmark_misuse(void (*body)(void)) {
    char **words = &heapmark_words[3];
    for (int word = 0; word < 5; word++) if (!words[word]) _exit(120);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(words[0]), 0);
    if (page == MAP_FAILED) _exit(121);
    size = strtoull(words[1], NULL, 10);
    informed = strcmp(words[2], "informed") == 0;
    wrong = strcmp(words[3], "wrong") == 0;
    state = (strtoull(words[4], NULL, 10) + 1) * 0x9e3779b97f4a7c15;
    file = memfd_create("peek", MFD_CLOEXEC);
    if (file < 0) UNSUPPORTED("no memory files");
    free(malloc(size));
    catch_signals();
    body();
    exercise();
    page[PHASE] = VERIFY;
    look();
    page[PHASE] = DONE;
    heapmark_say("end", "reached");
    _exit(0);
}
