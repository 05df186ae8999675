// Binary trees in Go. A tree is released by becoming unreachable; the collector marks concurrently on up to a quarter
// of GOMAXPROCS (more if the program allocates faster than it marks), and stops the program only briefly.
// The program itself is one goroutine. Nodes are two pointers, 16 bytes without any header.

package main

import (
	"fmt"
	"os"
	"strconv"
)

type node struct {
	left, right *node
}

func build(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	left := build(depth - 1)
	right := build(depth - 1)
	return &node{left, right}
}

func (tree *node) check() int {
	if tree.left == nil {
		return 1
	}
	return 1 + tree.left.check() + tree.right.check()
}

func run(n int, probe *probe) {
	const minDepth = 4
	maxDepth := n
	if maxDepth < minDepth+2 {
		maxDepth = minDepth + 2
	}
	stretch := maxDepth + 1
	fmt.Printf("stretch tree of depth %d\t check: %d\n", stretch, build(stretch).check())
	longLived := build(maxDepth)
	for depth := minDepth; depth <= maxDepth; depth += 2 {
		iterations := 1 << (maxDepth - depth + minDepth)
		sum := 0
		for i := 0; i < iterations; i++ {
			sum += probe.timed(build, depth).check()
		}
		fmt.Printf("%d\t trees of depth %d\t check: %d\n", iterations, depth, sum)
	}
	fmt.Printf("long lived tree of depth %d\t check: %d\n", maxDepth, longLived.check())
}

func main() {
	probing := len(os.Args) == 3 && os.Args[2] == "--probe"
	n := -1
	if len(os.Args) == 2 || probing {
		if number, err := strconv.Atoi(os.Args[1]); err == nil {
			n = number
		}
	}
	if n < 0 {
		fmt.Fprintln(os.Stderr, "usage: trees N [--probe], where N is a whole number")
		os.Exit(2)
	}
	var figures *probe
	if probing {
		figures = &probe{}
	}
	run(n, figures)
	if probing {
		figures.report()
	}
}
