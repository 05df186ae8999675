// The timings of the probing process (--probe).

package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// Without a probe (nil) no clock is read.
type probe struct {
	longest [64]time.Duration // by depth
}

// Calls build(depth), and keeps the longest time of each depth.
func (p *probe) timed(build func(int) *node, depth int) *node {
	if p == nil {
		return build(depth)
	}
	start := time.Now()
	tree := build(depth)
	if took := time.Since(start); took > p.longest[depth] {
		p.longest[depth] = took
	}
	return tree
}

// Prints the figures to stderr. A pause is the sum of all stops of one collection, as the runtime counts them.
func (p *probe) report() {
	for depth, longest := range p.longest {
		if longest > 0 {
			fmt.Fprintf(os.Stderr, "figure=depth_%d_longest_build_ns %d\n", depth, longest.Nanoseconds())
		}
	}
	var collector debug.GCStats
	debug.ReadGCStats(&collector)
	fmt.Fprintf(os.Stderr, "figure=pauses %d\n", collector.NumGC)
	fmt.Fprintf(os.Stderr, "figure=pause_total_ns %d\n", collector.PauseTotal.Nanoseconds())
	if collector.NumGC > 0 {
		fmt.Fprintf(os.Stderr, "figure=pause_mean_ns %d\n", collector.PauseTotal.Nanoseconds()/collector.NumGC)
	}
	// The runtime keeps only the last 256. The longest of these may not be the longest of all.
	if int64(len(collector.Pause)) == collector.NumGC {
		var longest time.Duration
		for _, pause := range collector.Pause {
			if pause > longest {
				longest = pause
			}
		}
		fmt.Fprintf(os.Stderr, "figure=pause_max_ns %d\n", longest.Nanoseconds())
	}
}
