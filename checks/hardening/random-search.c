/*
about = "which short sequences of correct and wrong calls give an attacker most"
group = "search"
source = "ArcHeap (USENIX Security 2020)"
why = "single mistakes that are noticed may not be in company"
ends = "values"
trials = 1
sizes = [24, 4000]
seconds = 45
full = true
*/
#include "../harness/misuse.h"
#include <sys/mman.h>
#include <time.h>

enum { MOST = 64, SLOTS = 8, SEQUENCES = 2000, SECONDS = 30 };
enum { MALLOC, LARGER, FREE, TWICE, OVERFLOW, STALE, FAKE, KINDS };
static const char *names[] = {"malloc", "malloc larger", "free", "free again",
                              "overflow", "write after free", "free a fake like"};
struct call {
    int kind, slot, other;
};
static char *page;

// The calls in a process of its own; what they gain. Calls that make no sense where they stand do nothing.
static int tried(const struct call *calls, int count) {
    if (apart()) return gained();
    char *at[SLOTS] = {NULL}, genuine[64] = "", *forged;
    bool live[SLOTS] = {false};
    for (int i = 0; i < count; i++) {
        int kind = calls[i].kind, slot = calls[i].slot, other = calls[i].other;
        bool is_stale = at[slot] && !live[slot];
        if (kind <= LARGER && !live[slot]) at[slot] = take(kind == LARGER ? size * 4 : size), live[slot] = true;
        else if (kind == FREE && live[slot]) give(at[slot]), live[slot] = false;
        else if (kind == TWICE && is_stale) free(at[slot]);
        else if (kind == OVERFLOW && live[slot] && live[other]) {
            peek(genuine, at[other] - 16, 16);
            copy(at[slot] + malloc_usable_size(at[slot]), genuine, 16);
        } else if (kind == STALE && is_stale) {
            forged = page + (other % 2 ? 256 : 20480);
            copy(at[slot], (char *)&forged, 8);
        } else if (kind == FAKE && live[other]) {
            peek(page + 192, at[other] - 64, 64);
            free(page + 256);
        }
    }
    for (int i = 0; i < 48; i++) take(i % 4 ? size : size * 4);
    look();
    leave();
    return 0;
}

// As few of these calls as still gain so much: none of them can be left out.
static int fewest(struct call *calls, int count, int gain) {
    for (int i = count - 1; i >= 0; i--) {
        struct call without[MOST];
        memcpy(without, calls, i * sizeof *calls);
        memcpy(without + i, calls + i + 1, (count - i - 1) * sizeof *calls);
        if (tried(without, count - 1) != gain) continue;
        memcpy(calls, without, --count * sizeof *calls);
        i = count;
    }
    return count;
}

static void tell(const char *what, const struct call *calls, int count) {
    char text[400];
    int used = 0;
    for (int i = 0; i < count && used < 340; i++) {
        int slot = calls[i].kind == FAKE ? calls[i].other : calls[i].slot;
        used += snprintf(text + used, sizeof text - used, "%s%s %c", i ? "; " : "", names[calls[i].kind], 'a' + slot);
        if (calls[i].kind == OVERFLOW) used += snprintf(text + used, sizeof text - used, " by what lies before %c", 'a' + calls[i].other);
    }
    NOTE("%s=%d calls: %s", what, count, text);
}

MISUSE {
    static const char *gains[] = {"", "", "overlap", "chosen block", "chosen write"};
    bool is_found[5] = {false};
    int sequences = 0, missing = 3;
    time_t began = time(NULL);
    page = mmap(NULL, 32768, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    poke(page, 32768);
    chosen(page, 16384);
    victim(page + 16384, 16384);
    for (; sequences < (wrong ? SEQUENCES : 100) && missing && time(NULL) - began < SECONDS; sequences++) {
        struct call calls[MOST];
        int count = 4 + chance(MOST - 4);
        for (int i = 0; i < count; i++)
            calls[i] = (struct call){chance(wrong ? 2 : 1) ? (int)chance(KINDS) : (int)chance(FREE + 1), chance(SLOTS), chance(SLOTS)};
        int gain = tried(calls, count);
        if (gain < 2 || is_found[gain]) continue;
        is_found[gain] = true, missing--;
        tell(gains[gain], calls, fewest(calls, count, gain));
    }
    for (int gain = 2; gain < 5; gain++)
        if (!is_found[gain]) NOTE("%s=not in %d sequences", gains[gain], sequences);
}
