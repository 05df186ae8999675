// The timings of the probing process (--probe): buildings by the clock, and V8's collections as Node.js reports them.
// Marking in slices between two collections is not in their time, the stop that ends it is.

import { PerformanceObserver } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";

export class Probe {
  longestNs = new Map(); // by depth
  pausesMs = [];

  constructor() {
    this.observer = new PerformanceObserver((list) => this.note(list));
    this.observer.observe({ entryTypes: ["gc"] });
  }

  note(list) {
    for (const collection of list.getEntries()) this.pausesMs.push(collection.duration);
  }

  // Calls build(depth), and keeps the longest time of each depth.
  timed(build, depth) {
    const start = process.hrtime.bigint();
    const tree = build(depth);
    const ns = process.hrtime.bigint() - start;
    if (ns > (this.longestNs.get(depth) ?? 0n)) this.longestNs.set(depth, ns);
    return tree;
  }

  // Prints the figures to stderr.
  async report() {
    const figure = (name, value) => console.error(`figure=${name} ${value}`);
    for (const [depth, ns] of this.longestNs) figure(`depth_${depth}_longest_build_ns`, ns);
    // Collections reach the observer in one turn of the event loop, and its callback in a later one.
    for (let turns = 0; turns < 10; turns++) await nextTurn();
    this.observer.disconnect();
    const ns = (ms) => Math.round(ms * 1e6);
    const total = this.pausesMs.reduce((sum, ms) => sum + ms, 0);
    figure("pauses", this.pausesMs.length);
    if (this.pausesMs.length > 0) figure("pause_mean_ns", ns(total / this.pausesMs.length));
    figure("pause_max_ns", ns(this.pausesMs.reduce((longest, ms) => Math.max(longest, ms), 0)));
    figure("pause_total_ns", ns(total));
  }
}
