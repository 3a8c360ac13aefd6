// The timeline section: zoom, choice of a wait, jumps between waits and holds, and what is read out.

const ZOOM_STEP = 2;
const PAN_PART = 0.15;
const DRAG_PX = 4; // less is a click
const WHEEL_RATE = 0.0018;
const LEAST_SEEN_PX = 6; // what is jumped to is at least so wide
const SEEN_PART = 0.12; // and if it was not, takes this part of the width

class TimelineView {
  constructor(root, data, hash) {
    this.root = root;
    this.data = data;
    this.hash = hash;
    this.models = new Map();
    const find = (name) => root.querySelector(`[data-timeline=${name}]`);
    this.canvas = find("canvas");
    this.graph = new TimelineCanvas(find("box"), this.canvas, find("spacer"));
    this.readout = find("readout");
    this.hint = this.readout.textContent;
    this.tooltip = find("tooltip");
    this.stacks = find("stacks");
    this.empty = find("empty");
    this.frame = find("frame");
    this.actions = {
      "+": () => this.zoom(1 / ZOOM_STEP),
      "=": () => this.zoom(1 / ZOOM_STEP),
      "-": () => this.zoom(ZOOM_STEP),
      "_": () => this.zoom(ZOOM_STEP),
      "0": () => this.look(0, this.model.length),
      "[": () => this.jump(-1),
      "]": () => this.jump(1),
      "h": () => this.toHold(),
      "r": () => this.toRoot(),
      "w": () => this.choose("waits", this.model.longest()),
      "ArrowLeft": () => this.pan(-PAN_PART),
      "ArrowRight": () => this.pan(PAN_PART),
      "ArrowUp": () => this.toBand(-1),
      "ArrowDown": () => this.toBand(1),
      "Enter": () => this.chooseInBand(),
      " ": () => this.chooseInBand(),
      "Escape": () => this.choose(null, -1),
    };
    this.#listen();
  }

  #listen() {
    for (const link of this.root.querySelectorAll("a[data-wait]")) link.href = `#wait=${link.dataset.wait}`;
    for (const button of this.frame.querySelectorAll("button[data-key]")) {
      button.addEventListener("click", () => { if (this.model) this.actions[button.dataset.key](); });
    }
    this.frame.addEventListener("keydown", (event) => {
      if (!this.model || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target !== this.canvas && (event.key === "Enter" || event.key === " ")) return;
      if (!Object.hasOwn(this.actions, event.key)) return;
      this.actions[event.key]();
      event.preventDefault();
    });
    const { canvas } = this;
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button === 0) this.drag = { x: event.offsetX, from: this.graph.from, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#release(event));
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => { this.tooltip.hidden = true; });
  }

  // Show another run, whole; before `begin`, when it is time for that.
  showPoint(key) {
    this.point = key;
    if (this.begun) this.#show(key);
  }

  begin() {
    if (this.begun) return;
    this.begun = true;
    if (this.point !== undefined) this.#show(this.point);
  }

  #show(key) {
    const data = this.data.points[key].timeline;
    const nothing = !data || !data.rows;
    this.empty.hidden = !nothing;
    this.frame.hidden = nothing;
    this.model = null;
    if (nothing) return;
    if (!this.models.has(key)) this.models.set(key, new TimelineModel(data, this.data.frames));
    this.model = this.models.get(key);
    this.words = new TimelineWords(this.model);
    this.graph.show(this.model);
    const said = this.root.querySelector(`details.point[data-point="${key}"] p`);
    this.canvas.ariaLabel = `Timeline: ${said.textContent}`;
    this.#told(null, -1, this.hint);
  }

  // Show what a link wants.
  restore(wanted) {
    if (!(wanted.has("timeline") || wanted.has("wait"))) return;
    this.begin();
    if (!this.model) return;
    const wait = hashNumber(wanted.get("wait"));
    if (wait >= 0 && wait < this.model.waits.size) this.choose("waits", wait);
    const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(wanted.get("timeline") ?? "") ?? [];
    if (from !== undefined && Number(from) < Number(to)) this.look(Number(from), Number(to));
    this.root.scrollIntoView();
  }

  look(from, to) {
    this.graph.look(from, to);
    const { from: first, to: last } = this.graph;
    const isWhole = first <= 0 && last >= this.model.length;
    this.hash.set("timeline", isWhole ? null : `${Math.round(first)}-${Math.round(last)}`);
  }

  // Zoom around what is chosen if it is in view, else around the middle, or around a given time.
  zoom(factor, around = this.#focus()) {
    const { from, to } = this.graph;
    this.look(around - (around - from) * factor, around + (to - around) * factor);
  }

  pan(part) {
    const { from, to } = this.graph;
    this.look(from + (to - from) * part, to + (to - from) * part);
  }

  #focus() {
    const { from, to, chosen } = this.graph;
    if (chosen) {
      const layer = this.model[chosen.layer];
      const middle = (layer.start[chosen.at] + layer.end[chosen.at]) / 2;
      if (middle > from && middle < to) return middle;
    }
    return (from + to) / 2;
  }

  toBand(step) {
    this.graph.band = Math.max(0, Math.min(this.model.rows - 1, this.graph.band + step));
    this.graph.reveal(this.graph.band);
    this.graph.draw();
    this.readout.textContent = `${this.words.thread(this.graph.band)} · Enter chooses its longest wait in view`;
  }

  chooseInBand() {
    const { waits } = this.model;
    const { from, to, band } = this.graph;
    let best = -1;
    for (const at of waits.within(band, from, to, this.model.isContention)) {
      if (best < 0 || waits.busy[at] > waits.busy[best]) best = at;
    }
    if (best >= 0) this.choose("waits", best);
    else this.readout.textContent = `${this.words.thread(band)} waits for no lock in this part.`;
  }

  // Choose a wait or a hold, and bring it into view.
  choose(layer, at, text = null) {
    if (layer === null || at < 0) {
      this.#told(null, -1, this.hint);
      this.graph.draw();
      return;
    }
    this.#told(layer, at, text ?? this.words[layer](at));
    const { start, end, row } = this.model[layer];
    this.graph.band = row[at];
    this.graph.reveal(row[at]);
    let span = this.graph.to - this.graph.from;
    const length = Math.max(1, end[at] - start[at]);
    if (length * this.graph.scale < LEAST_SEEN_PX) span = length / SEEN_PART;
    const isOutside = end[at] < this.graph.from || start[at] > this.graph.to;
    const isCut = start[at] < this.graph.from || end[at] > this.graph.to;
    if (length > span) span = length * 1.2;
    const middle = (start[at] + end[at]) / 2;
    if (isOutside || isCut || span !== this.graph.to - this.graph.from) this.look(middle - span / 2, middle + span / 2);
    else this.graph.draw();
  }

  #told(layer, at, text) {
    const isWait = layer === "waits";
    const isContention = isWait && this.model.isContention(at);
    this.graph.chosen = layer === null ? null : { layer, at };
    const hold = isContention ? this.model.holdOf(at) : -1;
    this.graph.beside = hold >= 0 ? hold : null;
    this.readout.textContent = text;
    this.hash.set("wait", isWait ? at : null);
    for (const key of ["h", "r"]) {
      this.frame.querySelector(`button[data-key=${key}]`).disabled = hold < 0 && !(key === "r" && layer === "holds");
    }
    this.#showStacks(isWait ? this.model.worst.get(at) : undefined);
  }

  #showStacks(stacks) {
    this.stacks.hidden = !stacks;
    if (!stacks) return;
    this.stacks.querySelectorAll("ol").forEach((list, index) => {
      list.replaceChildren(...stacks[index].map((frame) => {
        const item = document.createElement("li");
        item.textContent = this.words.frame(frame);
        return item;
      }));
      list.parentElement.hidden = !stacks[index].length;
    });
  }

  // The previous (-1) or next (1) wait for a lock, from what is chosen, else from where one looks.
  jump(step) {
    const { chosen, from, to } = this.graph;
    let [time, row] = step > 0 ? [from, -1] : [to, this.model.rows];
    if (chosen) {
      const layer = this.model[chosen.layer];
      [time, row] = [layer.start[chosen.at], layer.row[chosen.at]];
    }
    const at = this.model.nextContention(time, row, step);
    if (at >= 0) this.choose("waits", at);
    else this.readout.textContent = `No ${step > 0 ? "later" : "earlier"} wait for a lock.`;
  }

  toHold() {
    const { beside, chosen } = this.graph;
    if (chosen && chosen.layer === "waits" && beside !== null) this.choose("holds", beside);
  }

  toRoot() {
    const { chosen } = this.graph;
    if (!chosen) return;
    const { model } = this;
    let wait = chosen.at;
    if (chosen.layer === "holds") wait = model.waitUnder(chosen.at, model.holds.start[chosen.at], model.holds.end[chosen.at]);
    if (wait < 0) {
      this.readout.textContent = `${this.words.holds(chosen.at)} · its thread waited for no other lock, so this is the root`;
      return;
    }
    const chain = model.chain(wait);
    this.choose(chain.length % 2 ? "waits" : "holds", chain.at(-1), this.words.root(chain));
  }

  #wheel(event) {
    if (!this.model) return;
    const isFocused = document.activeElement === this.canvas;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) this.pan(sideways / this.graph.plot);
    else if (isFocused || event.ctrlKey || event.metaKey) {
      const around = this.graph.time(Math.max(event.offsetX, this.graph.left));
      this.zoom(Math.exp(event.deltaY * WHEEL_RATE), around);
    } else return; // the page scrolls
    event.preventDefault();
  }

  #move(event) {
    if (!this.model) return;
    const { drag, graph } = this;
    if (drag && event.buttons & 1) {
      const away = event.offsetX - drag.x;
      if (Math.abs(away) >= DRAG_PX && !drag.moved) {
        drag.moved = true;
        this.canvas.setPointerCapture(event.pointerId);
        this.tooltip.hidden = true;
      }
      if (drag.moved) {
        const from = drag.from - away / graph.scale;
        this.look(from, from + graph.to - graph.from);
      }
      return;
    }
    const under = graph.under(event.offsetX, event.offsetY);
    const text = under === null ? graph.nameAt(event.offsetX, event.offsetY) : this.words[under.layer](under.at);
    showTooltip(this.tooltip, text, event);
  }

  #release(event) {
    const { drag } = this;
    this.drag = null;
    if (!this.model || !drag || drag.moved) return;
    const under = this.graph.under(event.offsetX, event.offsetY);
    const row = this.graph.bandAt(event.offsetY);
    if (under) this.choose(under.layer, under.at);
    else if (row >= 0) {
      this.graph.band = row;
      this.choose(null, -1);
    }
  }
}
