// Two flame trees as one: every frame of either side, with its time before and after.
// A frame is as wide as the larger of the two, and at least as what it calls, so that what is gone
// keeps its place.

const [SAME, MORE, LESS, NEW, GONE] = [0, 1, 2, 3, 4]; // as CLAIMS in difference_data.py
const LEAST_CHANGE = 1e6; // ns: as LEAST_S of a comparison

class DifferenceTree extends FlameTree {
  // `data` is what difference_data.py writes, or `mergedTrees`.
  constructor(data, frames) {
    super({ ...data, total: unionWidths(data) }, frames);
    this.before = new Float64Array(data.before);
    this.after = new Float64Array(data.after);
    this.claim = data.claim ? new Uint8Array(data.claim) : this.before.map((ns, node) => claimOf(ns, this.after[node]));
    this.interval = data.interval ?? {};
    this.beforeSum = this.#sums(this.before);
    this.afterSum = this.#sums(this.after);
  }

  // By place in `order`: the sum of all nodes before it whose change is told.
  #sums(times) {
    const sums = new Float64Array(this.size + 1);
    for (let place = 0; place < this.size; place++) {
      const node = this.order[place];
      sums[place + 1] = sums[place] + (this.claim[node] === SAME ? 0 : times[node]);
    }
    return sums;
  }

  // Change of a node, or of the nodes from one place to before another, as a share of the larger side.
  strength(node) { return changeShare(this.before[node], this.after[node]); }

  runStrength(place, next) {
    return changeShare(this.beforeSum[next] - this.beforeSum[place], this.afterSum[next] - this.afterSum[place]);
  }

  // As for any tree, with the time that the matches cover on both sides.
  search(text) {
    const found = super.search(text);
    let [before, after] = [0, 0];
    for (let node = 0; found.nodes && node < this.size;) {
      if (this.hit(this.place[node], this.place[node] + 1)) {
        before += this.before[node];
        after += this.after[node];
        node = this.end[node];
      } else node++;
    }
    return { ...found, before, after };
  }
}

function changeShare(before, after) { return (after - before) / (Math.max(before, after) || 1); }

function claimOf(before, after) {
  if (Math.abs(after - before) < LEAST_CHANGE) return SAME;
  if (!before) return NEW;
  if (!after) return GONE;
  return after > before ? MORE : LESS;
}

function unionWidths({ depth, before, after }) {
  const width = new Float64Array(depth.length);
  let levels = 2;
  for (let node = 0; node < depth.length; node++) if (depth[node] + 2 > levels) levels = depth[node] + 2;
  // By depth: what the children seen so far have, from the last on.
  const [belowBefore, belowAfter, belowWidth] = [0, 1, 2].map(() => new Float64Array(levels));
  for (let node = depth.length - 1; node >= 0; node--) {
    const level = depth[node];
    const child = level + 1;
    const own = Math.max(0, before[node] - belowBefore[child], after[node] - belowAfter[child]);
    width[node] = belowWidth[child] + own;
    belowBefore[child] = belowAfter[child] = belowWidth[child] = 0;
    belowBefore[level] += before[node];
    belowAfter[level] += after[node];
    belowWidth[level] += width[node];
  }
  return width;
}

// The trees of two runs of one page as the data of a difference: frames of the same name and file
// under the same callers are one, whatever their line.
function mergedTrees(before, after, frames) {
  const root = { frame: before.frame[0], before: 0, after: 0, children: new Map() };
  const keys = frames.map(([name, file, , kind]) =>
    /^\([\d,]+ smaller frames\)$/.test(name) && !file ? "smaller" : `${kind}\0${file}\0${name}`);
  for (const [side, tree] of [["before", before], ["after", after]]) {
    const path = [];
    tree.frame.forEach((frame, at) => {
      const depth = tree.depth[at];
      let node = root;
      if (depth) {
        const { children } = path[depth - 1];
        node = children.get(keys[frame]);
        if (!node) children.set(keys[frame], node = { frame, before: 0, after: 0, children: new Map() });
      }
      node[side] += tree.total[at];
      path[depth] = node;
    });
  }
  return flattened(root);
}

function flattened(root) {
  const found = { frame: [], depth: [], before: [], after: [] };
  const pending = [[root, 0]];
  while (pending.length) {
    const [node, depth] = pending.pop();
    found.frame.push(node.frame);
    found.depth.push(depth);
    found.before.push(node.before);
    found.after.push(node.after);
    const children = Array.from(node.children.values());
    children.sort((one, other) => Math.max(one.before, one.after) - Math.max(other.before, other.after));
    for (const child of children) pending.push([child, depth + 1]);
  }
  return found;
}
