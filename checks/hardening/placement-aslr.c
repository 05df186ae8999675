/*
about = "which bits of the first address vary from process to process"
group = "placement"
source = "address space layout randomisation"
why = "few bits can be guessed"
ends = "values"
trials = 200
gather = "bits"
sizes = [24, 262144]
*/
#include "../harness/misuse.h"

MISUSE {
    SAMPLE("%zu", (size_t)malloc(size));
}
