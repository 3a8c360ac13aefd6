// Which part of a flame graph is shown, and which way up: all or one lock, all or one thread, from
// the outermost frame or from the innermost. A shape of a tree is made of its data, and is data.

class FlameShape {
  constructor(find, changed) {
    this.lockField = find("lock");
    this.threadField = find("thread");
    this.button = find("inverted");
    this.wanted = { lock: "", thread: "" };
    this.inverted = false;
    this.fields = [["lock", this.lockField], ["thread", this.threadField]];
    for (const [key, field] of this.fields) {
      field.addEventListener("change", () => {
        this.wanted[key] = field.value;
        changed();
      });
    }
    this.button.addEventListener("click", () => {
      this.#turn(!this.inverted);
      changed();
    });
  }

  #turn(inverted) {
    this.inverted = inverted;
    this.button.setAttribute("aria-pressed", String(inverted));
  }

  get lock() { return this.lockField.value === "" ? -1 : Number(this.lockField.value); }

  get thread() { return this.threadField.value === "" ? -1 : Number(this.threadField.value); }

  get key() { return `${this.lockField.value} ${this.threadField.value} ${this.inverted}`; }

  keep(hash) {
    hash.set("lock", this.wanted.lock);
    hash.set("thread", this.wanted.thread);
    hash.set("inverted", this.inverted ? 1 : null);
  }

  // Take what a link wants; whether it wants any of this.
  restore(wanted) {
    if (!["lock", "thread", "inverted"].some((key) => wanted.has(key))) return false;
    this.wanted = { lock: wanted.get("lock") ?? "", thread: wanted.get("thread") ?? "" };
    this.#turn(wanted.get("inverted") === "1");
    return true;
  }

  // Offer the locks and threads of a tree; what was chosen stays where it is there.
  offer(data, frames, threads) {
    if (this.offered !== data) this.#fillAll(data, frames, threads);
    this.offered = data;
    for (const [key, field] of this.fields) {
      field.value = this.wanted[key];
      if (field.selectedIndex < 0) field.value = "";
      field.hidden = field.length < 3 && field.value === "";
    }
  }

  #fillAll(data, frames, threads) {
    const sums = new Float64Array(frames.length);
    const self = selfTimes(data);
    lockOfEach(data, frames).forEach((lock, node) => { if (lock >= 0) sums[lock] += self[node]; });
    const locks = new Map();
    sums.forEach((time, lock) => { if (time) locks.set(lock, time); });
    const times = new Map();
    for (const [, thread, time] of parts(data)) times.set(thread, (times.get(thread) ?? 0) + time);
    this.#fill(this.lockField, "All locks", locks, (lock) => frames[lock][0]);
    this.#fill(this.threadField, "All threads", times, (thread) => threads[thread]);
  }

  #fill(field, all, times, title) {
    const option = (value, text) => {
      const made = document.createElement("option");
      [made.value, made.textContent] = [value, text];
      return made;
    };
    const sorted = [...times].sort(([, one], [, other]) => other - one);
    field.replaceChildren(option("", all),
      ...sorted.map(([key, time]) => option(String(key), `${title(key)}, ${seconds(time)}`)));
  }

  applied(data, frames) {
    const { lock, thread, inverted } = this;
    if (lock < 0 && thread < 0 && !inverted) return data;
    const self = thread < 0 ? selfTimes(data) : new Float64Array(data.frame.length);
    if (thread >= 0) for (const [node, whose, time] of parts(data)) if (whose === thread) self[node] += time;
    if (lock >= 0) lockOfEach(data, frames).forEach((one, node) => { if (one !== lock) self[node] = 0; });
    const parent = parentOfEach(data);
    return inverted ? invertedTree(data.frame, parent, self, frames.length) : laidOut(data.frame, parent, self);
  }
}

function parentOfEach({ depth }) {
  const path = [];
  const found = new Int32Array(depth.length).fill(-1);
  for (let node = 0; node < found.length; node++) {
    const level = depth[node];
    path[level] = node;
    if (level) found[node] = path[level - 1];
  }
  return found;
}

function selfTimes(data) {
  const self = new Float64Array(data.total);
  const parent = parentOfEach(data);
  for (let node = 1; node < self.length; node++) self[parent[node]] -= data.total[node];
  return self;
}

// The frame of the lock that each node's own time is about: of itself or of who called it; or -1.
function lockOfEach(data, frames) {
  const parent = parentOfEach(data);
  const found = new Int32Array(data.frame.length).fill(-1);
  const isLock = Uint8Array.from(frames, (frame) => frame[3] === "lock" ? 1 : 0);
  for (let node = 0; node < found.length; node++) {
    const frame = data.frame[node];
    if (isLock[frame]) found[node] = frame;
    else if (node) found[node] = found[parent[node]];
  }
  return found;
}

// The time of each thread in each node: [node, thread, nanoseconds].
function* parts({ whose }) {
  if (!whose) return;
  const numbers = unpacked(whose);
  let node = 0;
  for (let i = 0; i < numbers.length; i += 3) {
    node += numbers[i];
    yield [node, numbers[i + 1], numbers[i + 2]];
  }
}

// The data of a tree whose nodes come after their parents: those with time, the widest first.
function laidOut(frame, parent, self) {
  const total = new Float64Array(self);
  for (let node = total.length - 1; node > 0; node--) total[parent[node]] += total[node];
  const children = new Map();
  for (let node = 1; node < total.length; node++) {
    if (!total[node]) continue;
    if (children.has(parent[node])) children.get(parent[node]).push(node);
    else children.set(parent[node], [node]);
  }
  for (const nodes of children.values()) nodes.sort((one, other) => total[one] - total[other]); // the last is taken first
  const found = { frame: [], depth: [], total: [], merged: 0 };
  const pending = [[0, 0]];
  while (pending.length) {
    const [node, depth] = pending.pop();
    found.frame.push(frame[node]);
    found.depth.push(depth);
    found.total.push(total[node]);
    for (const child of children.get(node) ?? []) pending.push([child, depth + 1]);
  }
  return found;
}

// The data of a tree from the innermost frames outwards.
function invertedTree(frame, parent, self, frames) {
  const [newFrame, newParent, newSelf] = [[frame[0]], [-1], [0]];
  const known = new Map(); // nodes by their parent and frame
  for (let node = 1; node < frame.length; node++) {
    if (!self[node]) continue;
    let at = 0;
    for (let one = node; one > 0; one = parent[one]) {
      const key = at * frames + frame[one];
      let next = known.get(key);
      if (next === undefined) {
        next = newFrame.length;
        known.set(key, next);
        newFrame.push(frame[one]);
        newParent.push(at);
        newSelf.push(0);
      }
      at = next;
    }
    newSelf[at] += self[node];
  }
  return laidOut(newFrame, newParent, newSelf);
}
