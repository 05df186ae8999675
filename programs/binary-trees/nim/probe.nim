## The timings of the probing process (--probe). Without `startProbe` no clock is read.

import std/monotimes

when defined(boehmgc):
  import boehm

# With these, dropping the last reference releases the tree immediately. Otherwise the collector finds it later.
const releasesAtOnce = defined(gcArc) or defined(gcOrc)
when releasesAtOnce:
  import std/algorithm

var
  probing = false
  longestNs: array[64, int64] # of building, by depth
  releasesNs: seq[int64]
  longestRelease: tuple[ns: int64, depth: int]

proc startProbe*() =
  probing = true
  when defined(boehmgc):
    watchPauses()

proc timedBuild*[T](build: proc (depth: int): T {.nimcall.}, depth: int): T =
  ## Calls `build(depth)`, and keeps the longest time of each depth.
  if not probing:
    return build(depth)
  let start = getMonoTime().ticks
  result = build(depth)
  longestNs[depth] = max(longestNs[depth], getMonoTime().ticks - start)

proc timedRelease*[T](tree: var T, depth: int) =
  ## Drops the only reference to a tree.
  when releasesAtOnce:
    if probing:
      let start = getMonoTime().ticks
      tree = nil
      let ns = getMonoTime().ticks - start
      releasesNs.add ns
      longestRelease = max(longestRelease, (ns, depth))
      return
  tree = nil

proc reportProbe*() =
  ## Prints the figures to stderr.
  proc figure(name: string, value: int64) =
    stderr.writeLine "figure=", name, " ", value

  for depth, ns in longestNs:
    if ns > 0:
      figure("depth_" & $depth & "_longest_build_ns", ns)
  when releasesAtOnce:
    var sum = 0'i64
    for ns in releasesNs:
      sum += ns
    releasesNs.sort()
    figure("releases", releasesNs.len)
    figure("release_mean_ns", sum div releasesNs.len)
    figure("release_p99_ns", releasesNs[(releasesNs.len * 99 + 99) div 100 - 1])
    figure("release_max_ns", longestRelease.ns)
    figure("release_max_depth", longestRelease.depth)
  when defined(boehmgc):
    figure("markers", markers())
    figure("pauses", pauses.count)
    if pauses.count > 0:
      figure("pause_mean_ns", pauses.totalNs div pauses.count)
    figure("pause_max_ns", pauses.maxNs)
    figure("pause_total_ns", pauses.totalNs)
