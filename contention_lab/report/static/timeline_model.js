// One recording's timeline: who waits, who holds, and how the two belong together.

const [PARKED, SPINNING, COORDINATION, GIL, NATIVE] = [0, 1, 2, 3, 4]; // kinds of the layer that waits
const WAIT_KINDS = 5;
const [ALONE, WAITED_FOR] = [0, 1]; // kinds of the layer that holds
const HOLD_KINDS = 2;
const LONGEST_CHAIN = 16;
const MOST_LOOKED_AT = 20_000; // intervals of one row that are searched for a holder

class TimelineModel {
  // `data` is what timeline_section.py writes; `frames` the page's table of frames.
  constructor(data, frames) {
    this.data = data;
    this.frames = frames;
    this.length = data.length;
    this.rows = data.rows;
    this.waits = new TimelineLayer(data.waits, WAIT_KINDS);
    this.holds = new TimelineLayer(data.holds, HOLD_KINDS);
    const table = (columns) => columns.map((text) => Int32Array.from(unpacked(text), (n) => n - 1));
    const [lock, site, holder, heldAt, doing, letGo] = table(data.waitContexts);
    this.waitContext = { lock, site, holder, heldAt, doing, letGo };
    const [heldLock, heldSite, call] = table(data.holdContexts);
    this.holdContext = { lock: heldLock, site: heldSite, call };
    this.lanes = data.lanes.map(({ lock: id, most, time, waiting }) => (
      { lock: id, most, time: unpackedSteps(time), waiting: unpacked(waiting) }));
    this.worst = new Map(data.worst.map(([place, ...stacks]) => [place, stacks]));
    this.lifeStart = unpacked(data.lifeStart);
    this.lifeEnd = unpacked(data.lifeEnd);
    const { waits } = this;
    this.contended = this.#contended(); // places of waits for locks, by row, then start
    this.isContention = (at) => waits.kind[at] <= SPINNING;
  }

  #contended() {
    const { kind, rowStart } = this.waits;
    const found = [];
    for (let row = 0; row < this.rows; row++) {
      const places = [];
      for (let at = rowStart[row]; at < rowStart[row + 1]; at++) if (kind[at] <= SPINNING) places.push(at);
      found.push(Int32Array.from(places));
    }
    return found;
  }

  lockOfWait(at) { return this.waitContext.lock[this.waits.context[at]]; }

  lockOfHold(at) { return this.holdContext.lock[this.holds.context[at]]; }

  // The longest hold during a wait, of the holder that its context names: a place, or -1.
  holdOf(wait) {
    const { holds, waits } = this;
    const row = this.waitContext.holder[waits.context[wait]];
    if (row < 0 || row >= this.rows) return -1; // rows are the first threads
    const lock = this.lockOfWait(wait);
    const [from, to] = [waits.start[wait], waits.end[wait]];
    let best = -1;
    let most = 0;
    let looked = 0;
    for (const at of holds.within(row, from, to, (place) => this.lockOfHold(place) === lock)) {
      const overlap = holds.overlap(at, from, to);
      if (overlap > most) [best, most] = [at, overlap];
      if (++looked > MOST_LOOKED_AT) break;
    }
    return best;
  }

  // The wait for a lock that its holder was in for most of a span of time: a place, or -1.
  waitUnder(hold, from, to) {
    const { holds, waits } = this;
    const begin = Math.max(from, holds.start[hold]);
    const until = Math.min(to, holds.end[hold]);
    let best = -1;
    let most = (until - begin) / 2;
    for (const at of waits.within(holds.row[hold], begin, until, this.isContention)) {
      const overlap = waits.overlap(at, begin, until);
      if (overlap >= most && overlap > 0) [best, most] = [at, overlap];
    }
    return best;
  }

  // From a wait along "its holder waited, too": [wait, hold, wait, hold, …], the root last.
  chain(wait) {
    const found = [];
    const [from, to] = [this.waits.start[wait], this.waits.end[wait]];
    for (let at = wait; at >= 0 && found.length < 2 * LONGEST_CHAIN;) {
      if (found.some((place, i) => i % 2 === 0 && place === at)) break; // a ring
      const hold = this.holdOf(at);
      found.push(at);
      if (hold < 0) break;
      found.push(hold);
      at = this.waitUnder(hold, from, to);
    }
    return found;
  }

  // Start and end of a whole hold, of which a place may be a part.
  wholeHold(at) {
    const { holds } = this;
    const row = holds.row[at];
    const isPart = (place) => holds.row[place] === row && holds.context[place] === holds.context[at];
    let [start, end] = [holds.start[at], holds.end[at]];
    for (let place = at - 1; place >= Math.max(0, at - 8); place--) {
      if (isPart(place) && holds.end[place] === start) start = holds.start[place];
    }
    for (let place = at + 1; place < Math.min(holds.size, at + 9); place++) {
      if (isPart(place) && holds.start[place] === end) end = holds.end[place];
    }
    return [start, end];
  }

  // The hold whose release let a wait go on: a place, or -1.
  releaseOf(wait) {
    const { holds, waits } = this;
    const lock = this.lockOfWait(wait);
    const [from, to] = [waits.start[wait], waits.end[wait]];
    let best = -1;
    const isIt = (at) => this.lockOfHold(at) === lock && holds.end[at] <= to && holds.end[at] >= from;
    for (let row = 0; row < this.rows; row++) {
      if (row === waits.row[wait]) continue;
      for (const at of holds.within(row, from, to, isIt)) {
        if (best < 0 || holds.end[at] > holds.end[best]) best = at;
      }
    }
    return best;
  }

  // The next wait for a lock after a moment (step 1), or the last before it (-1), over all rows: a
  // place, or -1. Of those that begin together, rows follow one another.
  nextContention(time, row, step) {
    const { start } = this.waits;
    let best = -1;
    this.contended.forEach((places, of) => {
      const isBeyond = (at) => start[at] > time || (start[at] === time && of > row - (step < 0 ? 1 : 0));
      let low = 0;
      let high = places.length;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (isBeyond(places[middle])) high = middle;
        else low = middle + 1;
      }
      const place = step > 0 ? places[low] : places[low - 1];
      if (place === undefined) return;
      if (best < 0 || (step > 0 ? start[place] < start[best] : start[place] >= start[best])) best = place;
    });
    return best;
  }

  // The longest wait for a lock, or -1.
  longest() {
    const { busy, count } = this.waits;
    let best = -1;
    for (const places of this.contended) {
      for (const at of places) if (count[at] === 1 && (best < 0 || busy[at] > busy[best])) best = at;
    }
    return best;
  }
}
