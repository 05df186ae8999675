// What the probing process (--probe) times.

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

// Is build(depth); the longest one of each depth is kept.
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

// Prints the figures to stderr. A pause is all stops of the world of one collection together, as the runtime counts them.
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
	// The runtime remembers the last 256 only. A longest of some of them would not be the longest.
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
