// The runtime reports each collection's time to a hook that only C can set, before the runtime starts: so this is the
// program's main. Without --probe it sets no hook. The whole collection is a pause: it is neither concurrent nor incremental.

#include <Rts.h>
#include <stdio.h>
#include <string.h>

extern StgClosure ZCMain_main_closure;

static unsigned long pauses, total_ns, max_ns;

static void collected(const struct GCDetails_ *collection) {
    unsigned long ns = (unsigned long)TimeToNS(collection->elapsed_ns);
    pauses++;
    total_ns += ns;
    if (ns > max_ns) max_ns = ns;
}

void probe_report_pauses(void) {
    fprintf(stderr, "figure=pauses %lu\n", pauses);
    if (pauses > 0) fprintf(stderr, "figure=pause_mean_ns %lu\n", total_ns / pauses);
    fprintf(stderr, "figure=pause_max_ns %lu\nfigure=pause_total_ns %lu\n", max_ns, total_ns);
}

int main(int count, char *words[]) {
    RtsConfig config = defaultRtsConfig;
    // Only these options; those of the environment are ignored, too.
    config.rts_opts_enabled = RtsOptsIgnoreAll;
    if (count > 2 && strcmp(words[2], "--probe") == 0) config.gcDoneHook = collected;
    return hs_main(count, words, &ZCMain_main_closure, config);
}
