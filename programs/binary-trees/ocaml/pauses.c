// The runtime's own timing hooks, which only C can reach: a minor collection and a slice of the major one are a pause
// each. They may nest (a slice that compacts empties the minor heap first); the outermost counts. Also the monotonic
// clock, which OCaml's library lacks.

#define CAML_INTERNALS
#include <caml/misc.h>
#include <caml/mlvalues.h>
#include <stdio.h>
#include <time.h>

static long pauses, total_ns, max_ns, start_ns;
static int inside;

long probe_now_ns(value unit) {
    (void)unit;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void begin(void) {
    if (inside++ == 0) start_ns = probe_now_ns(Val_unit);
}

static void end(void) {
    if (--inside > 0) return;
    long pause_ns = probe_now_ns(Val_unit) - start_ns;
    pauses++;
    total_ns += pause_ns;
    if (pause_ns > max_ns) max_ns = pause_ns;
}

value probe_watch_pauses(value unit) {
    caml_minor_gc_begin_hook = caml_major_slice_begin_hook = begin;
    caml_minor_gc_end_hook = caml_major_slice_end_hook = end;
    return unit;
}

value probe_report_pauses(value unit) {
    fprintf(stderr, "figure=pauses %ld\n", pauses);
    if (pauses > 0) fprintf(stderr, "figure=pause_mean_ns %ld\n", total_ns / pauses);
    fprintf(stderr, "figure=pause_max_ns %ld\nfigure=pause_total_ns %ld\n", max_ns, total_ns);
    return unit;
}
