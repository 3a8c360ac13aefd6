// Intervals of all rows as typed arrays, and where in them a moment is. It knows nothing of pixels,
// nor of what an interval means. Within a row they are ordered by start; some may overlap.

class TimelineLayer {
  // `data` is what timeline_section.py packs; `kinds` the number of kinds.
  constructor(data, kinds) {
    const perRow = unpacked(data.perRow);
    const rows = perRow.length;
    this.rowStart = new Int32Array(rows + 1);
    for (let row = 0; row < rows; row++) this.rowStart[row + 1] = this.rowStart[row] + perRow[row];
    this.start = unpacked(data.start);
    this.size = this.start.length;
    const length = unpacked(data.length);
    const what = unpacked(data.what);
    this.end = new Float64Array(this.size);
    this.reach = new Float64Array(this.size); // latest end of this and all before it in the row
    this.kind = new Uint8Array(this.size);
    this.context = new Int32Array(this.size);
    this.row = new Int32Array(this.size);
    this.count = new Int32Array(this.size).fill(1);
    this.busy = length; // of a run, less than its length
    for (let row = 0; row < rows; row++) {
      let reach = 0;
      for (let at = this.rowStart[row]; at < this.rowStart[row + 1]; at++) {
        if (at > this.rowStart[row]) this.start[at] += this.start[at - 1];
        this.row[at] = row;
        this.end[at] = this.start[at] + length[at];
        reach = this.reach[at] = Math.max(reach, this.end[at]);
        this.kind[at] = what[at] % kinds;
        this.context[at] = Math.floor(what[at] / kinds);
      }
    }
    const count = unpacked(data.runCount);
    const busy = unpacked(data.runBusy);
    unpackedSteps(data.runAt).forEach((at, run) => {
      this.count[at] = count[run];
      this.busy[at] = busy[run];
    });
  }

  // First place of a row that may last beyond a time: none before it does.
  firstAfter(row, time) { return this.#search(row, (at) => this.reach[at] > time); }

  // First place of a row that does not begin before a time.
  firstFrom(row, time) { return this.#search(row, (at) => this.start[at] >= time); }

  #search(row, isBeyond) {
    let low = this.rowStart[row];
    let high = this.rowStart[row + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBeyond(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  // Places of a row that overlap a span of time and satisfy a condition, in order.
  *within(row, from, to, wanted) {
    const last = this.rowStart[row + 1];
    for (let at = this.firstAfter(row, from); at < last && this.start[at] < to; at++) {
      if (this.end[at] > from && wanted(at)) yield at;
    }
  }

  // The innermost interval of a row around a time, or the nearest one within `slack`, or -1.
  at(row, time, slack) {
    let best = -1;
    let least = Infinity;
    for (const at of this.within(row, time - slack, time + slack, () => true)) {
      const away = Math.max(0, this.start[at] - time, time - this.end[at]);
      if (away <= least) [best, least] = [at, away];
    }
    return best;
  }

  // How much of an interval lies in a span of time.
  overlap(at, from, to) {
    return Math.max(0, Math.min(this.end[at], to) - Math.max(this.start[at], from));
  }
}
