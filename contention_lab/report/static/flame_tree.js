// One flame tree as typed arrays: where every node starts, its parent, and the nodes of each row.
// It knows nothing of pixels. Nodes are numbered depth-first, so a subtree is one range of numbers
// and the nodes of a row are in order of their start.

class FlameTree {
  // `data` is what flame_table.py writes; `frames` the table of [name, file, line, kind].
  constructor(data, frames) {
    const size = data.frame.length;
    this.frames = frames;
    this.size = size;
    this.frame = new Int32Array(data.frame);
    this.depth = new Int32Array(data.depth);
    this.total = new Float64Array(data.total);
    this.start = new Float64Array(size);
    this.parent = new Int32Array(size).fill(-1);
    this.end = new Int32Array(size).fill(size); // first number after the subtree
    this.childTime = new Float64Array(size);
    this.merged = data.merged;
    this.rows = 0;
    const path = []; // the open ancestors of the node at hand
    for (let node = 0; node < size; node++) {
      const depth = this.depth[node];
      while (path.length > depth) this.end[path.pop()] = node;
      if (depth > 0) {
        const parent = path[depth - 1];
        this.parent[node] = parent;
        this.start[node] = this.start[parent] + this.childTime[parent];
        this.childTime[parent] += this.total[node];
      }
      path.push(node);
      if (depth >= this.rows) this.rows = depth + 1;
    }
    this.#fillRows();
    this.hits = null; // per place in `order`: matches of the search before it
  }

  #fillRows() {
    this.rowStart = new Int32Array(this.rows + 1);
    for (let node = 0; node < this.size; node++) this.rowStart[this.depth[node] + 1]++;
    for (let row = 0; row < this.rows; row++) this.rowStart[row + 1] += this.rowStart[row];
    const next = this.rowStart.slice();
    this.order = new Int32Array(this.size);
    this.place = new Int32Array(this.size);
    this.widest = new Float64Array(this.rows); // by row, the longest time
    for (let node = 0; node < this.size; node++) {
      const row = this.depth[node];
      this.place[node] = next[row]++;
      this.order[this.place[node]] = node;
      if (this.total[node] > this.widest[row]) this.widest[row] = this.total[node];
    }
  }

  name(node) { return this.frames[this.frame[node]][0]; }

  where(node) {
    const [, file, line] = this.frames[this.frame[node]];
    return file ? `${file}:${line}` : "";
  }

  self(node) { return this.total[node] - this.childTime[node]; }

  // Whether a row has a node below another one with at least so much time.
  hasWide(row, above, least) {
    if (this.widest[row] < least || above === 0) return this.widest[row] >= least;
    const last = this.rowStart[row + 1];
    for (let place = this.firstAfter(this.rowStart[row], last, this.start[above]); place < last; place++) {
      if (this.order[place] >= this.end[above]) break;
      if (this.order[place] > above && this.total[this.order[place]] >= least) return true;
    }
    return false;
  }

  // First place in `order`, from `low` to `high`, whose node ends after `time`.
  firstAfter(low, high, time) {
    while (low < high) {
      const middle = (low + high) >> 1;
      const node = this.order[middle];
      if (this.start[node] + this.total[node] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // The node of `row` at `time`, or -1.
  at(row, time) {
    if (row < 0 || row >= this.rows) return -1;
    const place = this.firstAfter(this.rowStart[row], this.rowStart[row + 1], time);
    if (place >= this.rowStart[row + 1]) return -1;
    const node = this.order[place];
    return this.start[node] <= time ? node : -1;
  }

  firstChild(node) {
    return node + 1 < this.end[node] ? node + 1 : -1; // the heaviest comes first
  }

  // The neighbour to the left (-1) or right (+1) in the same row, or -1.
  neighbour(node, step) {
    const place = this.place[node] + step;
    const row = this.depth[node];
    return place >= this.rowStart[row] && place < this.rowStart[row + 1] ? this.order[place] : -1;
  }

  // Mark the nodes whose name or file holds `text`; return their number and the time they cover.
  search(text) {
    if (!text) {
      this.hits = null;
      return { nodes: 0, time: 0 };
    }
    const wanted = text.toLowerCase();
    const matches = searchedTexts(this.frames).map((one) => one.includes(wanted) ? 1 : 0);
    this.hits = new Int32Array(this.size + 1);
    for (let place = 0; place < this.size; place++) {
      this.hits[place + 1] = this.hits[place] + matches[this.frame[this.order[place]]];
    }
    let time = 0;
    for (let node = 0; node < this.size;) { // a match inside a match counts once
      if (matches[this.frame[node]]) {
        time += this.total[node];
        node = this.end[node];
      } else node++;
    }
    return { nodes: this.hits[this.size], time };
  }

  // Whether a node from place `from` to before `to` matches the search.
  hit(from, to) { return this.hits !== null && this.hits[to] > this.hits[from]; }
}

// What is searched of each frame of a table, made once.
const searchedOf = new WeakMap();
function searchedTexts(frames) {
  if (!searchedOf.has(frames)) {
    searchedOf.set(frames, frames.map(([name, file, line]) => `${name} ${file}:${line}`.toLowerCase()));
  }
  return searchedOf.get(frames);
}
