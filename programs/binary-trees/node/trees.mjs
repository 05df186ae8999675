// Binary trees in JavaScript. A tree is released by becoming unreachable, for V8's generational collector to find: young
// nodes are copied by helper threads, old ones marked concurrently. Nodes are objects of a class, whose fields are
// full words in Node.js: 40 bytes with the header.

import { Probe } from "./probe.mjs";

class Node {
  constructor(left, right) {
    this.left = left;
    this.right = right;
  }

  static build(depth) {
    if (depth === 0) return new Node(null, null);
    const left = Node.build(depth - 1);
    const right = Node.build(depth - 1);
    return new Node(left, right);
  }

  check() {
    return this.left === null ? 1 : 1 + this.left.check() + this.right.check();
  }
}

function run(n, probe) {
  const minDepth = 4;
  const maxDepth = Math.max(n, minDepth + 2);
  const stretch = maxDepth + 1;
  console.log(`stretch tree of depth ${stretch}\t check: ${Node.build(stretch).check()}`);
  const longLived = Node.build(maxDepth);
  for (let depth = minDepth; depth <= maxDepth; depth += 2) {
    const iterations = 2 ** (maxDepth - depth + minDepth);
    let sum = 0;
    for (let i = 0; i < iterations; i++) {
      const tree = probe ? probe.timed(Node.build, depth) : Node.build(depth);
      sum += tree.check();
    }
    console.log(`${iterations}\t trees of depth ${depth}\t check: ${sum}`);
  }
  console.log(`long lived tree of depth ${maxDepth}\t check: ${longLived.check()}`);
}

const [word, option, ...more] = process.argv.slice(2);
if (!/^\d+$/.test(word) || ![undefined, "--probe"].includes(option) || more.length > 0) {
  console.error("usage: trees.mjs N [--probe], where N is a whole number");
  process.exit(2);
}
const probe = option ? new Probe() : null;
run(Number(word), probe);
await probe?.report();
