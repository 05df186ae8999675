## The Boehm collector's own functions that Nim's library does not export.

import std/monotimes

# Must be the file that Nim's library opens, otherwise there would be two collectors.
{.push cdecl, dynlib: "libgc.so.1".}
proc startMarkThreads() {.importc: "GC_start_mark_threads".}
proc parallel(): cint {.importc: "GC_get_parallel".}
proc setOnCollectionEvent(called: proc (event: cint) {.cdecl.}) {.importc: "GC_set_on_collection_event".}
{.pop.}

const
  collectionStart = 0
  collectionEnd = 5

var
  pauses*: tuple[count, totalNs, maxNs: int64]
  startNs: int64

proc startMarkers*() =
  ## In a program with one thread the collector starts no markers by itself, whatever GC_MARKERS is.
  startMarkThreads()

proc markers*(): int =
  ## The program's thread is one of them.
  int(parallel()) + 1

proc onEvent(event: cint) {.cdecl.} =
  # Called inside a collection: must not allocate.
  if event == collectionStart:
    startNs = getMonoTime().ticks
  elif event == collectionEnd:
    let ns = getMonoTime().ticks - startNs
    inc pauses.count
    pauses.totalNs += ns
    pauses.maxNs = max(pauses.maxNs, ns)

proc watchPauses*() =
  setOnCollectionEvent(onEvent)
