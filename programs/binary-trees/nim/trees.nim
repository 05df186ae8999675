## Binary trees in Nim. The compiler's option --mm chooses how a tree is released: `arc` and `orc` count references and
## release the tree immediately with the last one; `refc` counts too but defers objects that the stack may still
## reference; `markAndSweep` and `boehm` trace. The type is declared acyclic, so the counting ones do not search cycles.

import std/[os, parseutils]
import probe

when defined(boehmgc):
  import boehm

type
  Tree {.acyclic.} = ref object
    left, right: Tree

proc build(depth: int): Tree =
  if depth == 0:
    return Tree()
  let left = build(depth - 1)
  let right = build(depth - 1)
  Tree(left: left, right: right)

proc check(tree: Tree): int =
  if tree.left == nil: 1
  else: 1 + check(tree.left) + check(tree.right)

# Each tree has its own procedure call: after its return nothing on the stack looks like a reference to that tree.

proc stretchTree(depth: int): int =
  var tree = build(depth)
  result = check(tree)
  timedRelease(tree, depth)

proc temporaryTree(depth: int): int =
  var tree = timedBuild(build, depth)
  result = check(tree)
  timedRelease(tree, depth)

proc run(n: int) =
  const minDepth = 4
  let
    maxDepth = max(n, minDepth + 2)
    stretch = maxDepth + 1
  echo "stretch tree of depth ", stretch, "\t check: ", stretchTree(stretch)
  let longLived = build(maxDepth)
  for depth in countup(minDepth, maxDepth, 2):
    let iterations = 1 shl (maxDepth - depth + minDepth)
    var sum = 0
    for _ in 1 .. iterations:
      sum += temporaryTree(depth)
    echo iterations, "\t trees of depth ", depth, "\t check: ", sum
  echo "long lived tree of depth ", maxDepth, "\t check: ", check(longLived)

proc main() =
  let
    words = commandLineParams()
    probing = words.len == 2 and words[1] == "--probe"
  var n = -1
  if words.len == 1 or probing:
    if parseInt(words[0], n) != words[0].len:
      n = -1
  if n < 0:
    stderr.writeLine "usage: trees N [--probe], where N is a whole number"
    quit 2
  when defined(boehmgc):
    startMarkers()
  if probing:
    startProbe()
  run(n)
  if probing:
    reportProbe()

main()
