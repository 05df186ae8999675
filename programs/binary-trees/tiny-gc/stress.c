// Tests whether tiny-gc loses an object, keeps garbage, or changes contents. Prints one line and exits with 0, or with 1
// and the fault. `./stress DIVISOR` makes everything smaller by that factor, for slow checkers:
//
//   cc -std=gnu11 -g -O1 -DMEMCHECK -I. stress.c gc.c -o stress-memcheck
//   valgrind --error-exitcode=1 ./stress-memcheck 20
//   cc -std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -I. stress.c gc.c -o stress-asan
//   ASAN_OPTIONS=detect_leaks=0 ./stress-asan 4
//
// A missing reachable object is an error. An unreachable one may stay, if an old word on the stack looks like its
// address. So garbage is made many times, and only a little of it may stay. Addresses that must not count as references
// are kept complemented, in a `hidden` word.

#include <gc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define NOINLINE __attribute__((noinline))

static long divisor = 1;

static _Noreturn void fail(const char *test, const char *why) {
    printf("stress: %s: %s\n", test, why);
    exit(1);
}

static void expect(bool holds, const char *test, const char *why) {
    if (!holds)
        fail(test, why);
}

static uint64_t random_bits(void) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

typedef uintptr_t hidden;

static hidden hide(const void *object) {
    return ~(uintptr_t)object;
}

static void *reveal(hidden address) {
    return (void *)~address;
}

static bool exists(hidden address) {
    return GC_base(reveal(address)) != NULL;
}

static void *obtain(size_t bytes) {
    void *object = GC_MALLOC(bytes);
    expect(object != NULL, "malloc", "out of memory");
    return object;
}

// Overwrites what earlier calls left on the stack below the caller.
static NOINLINE void scrub(void) {
    volatile char frame[16 * 1024];
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = 0;
}

static NOINLINE void collect(void) {
    scrub();
    GC_gcollect();
}

struct link {
    struct link *next;
    uint64_t value;
};

static NOINLINE struct link *make_list(long length) {
    struct link *head = NULL;
    for (long i = 0; i < length; i++) {
        struct link *link = obtain(sizeof *link);
        link->next = head;
        link->value = (uint64_t)i;
        head = link;
    }
    return head;
}

static NOINLINE void check_list(const struct link *head, long length, const char *test) {
    for (long i = length - 1; i >= 0; i--, head = head->next)
        expect(head != NULL && head->value == (uint64_t)i, test, "contents changed");
    expect(head == NULL, test, "longer than it was made");
}

// A root that the test holds in its own frame while it collects, and uses afterwards.
static NOINLINE void test_list(void) {
    long length = 1000000 / divisor;
    struct link *head = make_list(length);
    for (int round = 0; round < 3; round++) {
        collect();
        check_list(head, length, "list");
    }
}

static NOINLINE hidden make_ring(long length) {
    struct link *first = make_list(length), *last = first;
    while (last->next != NULL)
        last = last->next;
    last->next = first;
    return hide(first);
}

static NOINLINE void hold_ring(hidden ring, long length) {
    struct link *inside = ((struct link *)reveal(ring))->next;
    collect();
    for (long i = 0; i < length; i++, inside = inside->next)
        expect(exists(hide(inside)), "cycle", "a member is gone although another is held");
}

static NOINLINE void test_cycles(void) {
    enum { RINGS = 100, LENGTH = 50 };
    hidden rings[RINGS];
    for (int i = 0; i < RINGS; i++)
        rings[i] = make_ring(LENGTH);
    hold_ring(rings[RINGS / 2], LENGTH); // also collects all the others
    collect();
    int kept = 0;
    for (int i = 0; i < RINGS; i++)
        kept += exists(rings[i]);
    expect(kept <= 5, "cycle", "unreachable cycles stay");
}

static NOINLINE void test_wide(void) {
    long width = 1000000 / divisor;
    struct link **array = obtain((size_t)width * sizeof *array);
    for (long i = 0; i < width; i++) {
        array[i] = obtain(sizeof *array[i]);
        array[i]->value = (uint64_t)i;
    }
    collect();
    for (long i = 0; i < width; i++)
        expect(exists(hide(array[i])) && array[i]->value == (uint64_t)i, "wide", "an element is gone or changed");
}

// Random directed graph with a few roots. The test computes reachability too, on indices.
struct vertex {
    uint64_t index;
    struct vertex *to[4];
};

struct vertex *roots_in_data[8] = {(struct vertex *)1}; // not zero: goes into the data segment
static struct vertex *roots_in_bss[8];

static NOINLINE void make_graph(long vertices, hidden *where, uint32_t (*to)[4]) {
    struct vertex **all = obtain((size_t)vertices * sizeof *all);
    for (long i = 0; i < vertices; i++) {
        all[i] = obtain(sizeof *all[i]);
        all[i]->index = (uint64_t)i;
        where[i] = hide(all[i]);
    }
    for (long i = 0; i < vertices; i++) {
        for (int edge = 0; edge < 4; edge++) {
            // Few of the edges lead to a vertex, so that a large part is unreachable.
            to[i][edge] = random_bits() % 3 == 0 ? (uint32_t)(random_bits() % (uint64_t)vertices) : (uint32_t)i;
            all[i]->to[edge] = all[to[i][edge]];
        }
    }
    for (int i = 0; i < 8; i++) {
        roots_in_data[i] = all[i];
        roots_in_bss[i] = all[vertices - 1 - i];
    }
}

static NOINLINE void test_graph(void) {
    long vertices = 200000 / divisor;
    hidden *where = malloc((size_t)vertices * sizeof *where);
    uint32_t(*to)[4] = malloc((size_t)vertices * sizeof *to);
    bool *reached = calloc((size_t)vertices, sizeof *reached);
    uint32_t *queue = malloc((size_t)vertices * sizeof *queue);
    expect(where != NULL && to != NULL && reached != NULL && queue != NULL, "graph", "out of memory");
    make_graph(vertices, where, to);

    long first = 0, last = 0;
    for (int i = 0; i < 8; i++) {
        reached[queue[last++] = (uint32_t)i] = true;
        reached[queue[last++] = (uint32_t)(vertices - 1 - i)] = true;
    }
    while (first < last) {
        uint32_t vertex = queue[first++];
        for (int edge = 0; edge < 4; edge++) {
            if (!reached[to[vertex][edge]])
                reached[queue[last++] = to[vertex][edge]] = true;
        }
    }

    collect();
    long unreachable = vertices - last, kept = 0;
    for (long i = 0; i < vertices; i++) {
        if (!reached[i]) {
            kept += exists(where[i]);
            continue;
        }
        expect(exists(where[i]), "graph", "a reachable vertex is gone");
        struct vertex *vertex = reveal(where[i]);
        expect(vertex->index == (uint64_t)i, "graph", "contents changed");
        for (int edge = 0; edge < 4; edge++)
            expect(hide(vertex->to[edge]) == where[to[i][edge]], "graph", "an edge changed");
    }
    expect(unreachable > vertices / 100, "graph", "the test is of no use: everything is reachable");
    expect(kept <= unreachable / 10, "graph", "unreachable vertices stay");
    memset(roots_in_data, 0, sizeof roots_in_data);
    memset(roots_in_bss, 0, sizeof roots_in_bss);
    free(where), free(to), free(reached), free(queue);
}

static NOINLINE hidden make_link(uint64_t value) {
    struct link *link = obtain(sizeof *link);
    link->value = value;
    return hide(link);
}

// The only reference is a variable that the compiler keeps in a register across the call. Four of them at once test
// several registers.
static NOINLINE void test_registers(void) {
    hidden h0 = make_link(0), h1 = make_link(1), h2 = make_link(2), h3 = make_link(3);
    scrub();
    void *r0 = reveal(h0), *r1 = reveal(h1), *r2 = reveal(h2), *r3 = reveal(h3);
    __asm__ volatile("" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3));
    GC_gcollect();
    __asm__ volatile("" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3));
    void *kept[] = {r0, r1, r2, r3};
    for (uint64_t i = 0; i < 4; i++)
        expect(exists(hide(kept[i])) && ((struct link *)kept[i])->value == i, "registers", "an object is gone");
}

static NOINLINE void test_interior(void) {
    enum { OBJECTS = 1000 };
    static char *interior[OBJECTS];
    static hidden where[OBJECTS];
    for (int i = 0; i < OBJECTS; i++) {
        where[i] = make_link(0);
        interior[i] = (char *)reveal(where[i]) + 1 + i % 15; // 1 to 15 bytes after the beginning
    }
    collect();
    int kept = 0;
    for (int i = 0; i < OBJECTS; i++)
        kept += exists(where[i]);
    expect(kept <= 5, "interior", "pointers into an object keep it");
    memset(interior, 0, sizeof interior);
}

// A table of objects of all sizes that are made and dropped. Each is filled with bytes that follow from its number.
struct blob {
    size_t bytes;
    uint64_t number;
    unsigned char fill[];
};

static void check_blob(const struct blob *blob) {
    expect(exists(hide(blob)), "sizes", "an object is gone");
    for (size_t i = 0; i < blob->bytes; i++)
        expect(blob->fill[i] == (unsigned char)(blob->number + i), "sizes", "contents changed");
}

static NOINLINE void test_sizes(void) {
    enum { SLOTS = 1000 };
    static struct blob *slots[SLOTS];
    static const size_t largest[] = {16, 100, 100, 1000, 1000, 10000};
    collect();
    size_t before = GC_get_heap_size(), live = 0, peak = 0;
    for (long i = 0; i < 1000000 / divisor; i++) {
        struct blob **slot = &slots[random_bits() % SLOTS];
        if (*slot != NULL) {
            check_blob(*slot);
            live -= (*slot)->bytes;
            if (i % 16 == 0)
                GC_FREE(*slot);
            *slot = NULL;
        }
        size_t bytes = random_bits() % largest[random_bits() % 6];
        struct blob *blob = obtain(sizeof *blob + bytes);
        for (size_t j = 0; j < sizeof *blob + bytes; j++)
            expect(((unsigned char *)blob)[j] == 0, "sizes", "new memory is not zero");
        blob->bytes = bytes;
        blob->number = (uint64_t)i;
        for (size_t j = 0; j < bytes; j++)
            blob->fill[j] = (unsigned char)((uint64_t)i + j);
        *slot = blob;
        live += bytes;
        peak = live > peak ? live : peak;
        expect(GC_get_heap_size() < before + 3 * peak + 1024 * 1024, "sizes", "the heap grows beyond what lives");
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i] != NULL)
            check_blob(slots[i]);
        slots[i] = NULL;
    }
}

static size_t peak_rss_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

// Drops list after list: a few may stay for a while. Collections start automatically here.
static NOINLINE void test_leak(void) {
    enum { ROUNDS = 100 };
    long length = 100000 / divisor;
    size_t list_bytes = (size_t)length * 2 * sizeof(struct link); // a header is as large
    collect();
    size_t before = GC_get_heap_size(), most = 0, rss_before = peak_rss_bytes();
    for (int round = 0; round < ROUNDS; round++) {
        check_list(make_list(length), length, "leak");
        most = GC_get_heap_size() > most ? GC_get_heap_size() : most;
    }
    expect(most < before + 5 * list_bytes + 1024 * 1024, "leak", "forgotten lists pile up");
    // Checkers keep freed memory for a while. They are run with a divisor.
    expect(divisor > 1 || peak_rss_bytes() - rss_before < ROUNDS / 2 * list_bytes, "leak", "malloc gets nothing back");
}

static int begun, ended;

static void count_event(GC_EventType event) {
    *(event == GC_EVENT_START ? &begun : &ended) += 1;
}

int main(int argc, char **argv) {
    if (argc == 2)
        divisor = atol(argv[1]);
    if (argc > 2 || divisor < 1 || divisor > 1000) {
        fprintf(stderr, "usage: %s [DIVISOR], from 1 to 1000\n", argv[0]);
        return 2;
    }
    GC_INIT();
    GC_set_on_collection_event(count_event);

    test_list();
    test_cycles();
    test_wide();
    test_graph();
    test_registers();
    test_interior();
    test_sizes();
    test_leak();

    collect();
    expect(begun == ended && begun > 0, "events", "not as many collections ended as began");
    expect(GC_get_heap_size() < 1024 * 1024 + (size_t)(1000000 / divisor) * 40 / 5, "end", "garbage is left");
    printf("stress: all well after %d collections, %zu bytes left\n", ended, GC_get_heap_size());
}
