// Draws a timeline on a canvas of the size of its box: time along the top, lanes of the most
// waited-for locks, then a row for each thread. Rows that are scrolled away are never touched.

const GUTTER_REM = 10.5;
const AXIS_REM = 1.7;
const LANE_REM = 2.1;
const BAND_REM = 1.75;
const SHORTEST_VIEW_NS = 1000;
const MOST_ARROWS = 60; // more could not be told apart

class TimelineCanvas {
  constructor(box, canvas, spacer) {
    Object.assign(this, { box, canvas, spacer });
    this.context = canvas.getContext("2d");
    this.paint = new TimelinePaint(this.context);
    this.model = null;
    this.widths = new Map();
    box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => { if (box.clientWidth !== this.width) this.layOut(); }).observe(box);
  }

  show(model) {
    this.model = model;
    [this.from, this.to] = [0, model.length];
    this.chosen = null; // { layer: "waits" or "holds", at }
    this.beside = null; // the hold of the chosen wait
    this.band = 0; // the row with the keyboard
    this.box.scrollTop = 0;
    this.layOut();
  }

  recolour() { this.paint.recolour(this.ratio ?? 1); }

  layOut() {
    if (!this.model) return;
    this.ratio = window.devicePixelRatio || 1;
    this.recolour();
    this.widths.clear();
    const { text } = this.paint;
    this.width = this.box.clientWidth;
    this.left = Math.round(Math.min(GUTTER_REM * text, this.width * 0.27));
    this.bandHeight = Math.round(BAND_REM * text);
    this.laneHeight = Math.round(LANE_REM * text);
    this.axisHeight = Math.round(AXIS_REM * text);
    this.head = this.axisHeight + this.model.lanes.length * this.laneHeight + 4;
    const whole = this.wholeHeight;
    const least = this.head + Math.min(3, this.model.rows) * this.bandHeight;
    const height = Math.max(least, Math.min(whole, Math.round(window.innerHeight * 0.66)));
    this.height = height;
    this.box.style.height = `${height}px`;
    this.spacer.style.height = `${Math.max(0, whole - height)}px`;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${height}px`;
    this.draw();
  }

  get wholeHeight() { return this.head + this.model.rows * this.bandHeight + 2; }

  // Draw all rows by another context.
  drawnOn(context) {
    const { context: own, height, box } = this;
    Object.assign(this, { context, height: this.wholeHeight, box: { scrollTop: 0 } });
    this.paint.context = context;
    this.draw();
    this.paint.context = own;
    Object.assign(this, { context: own, height, box });
  }

  get plot() { return Math.max(1, this.width - this.left - 1); } // pixels along which time runs

  get scale() { return this.plot / (this.to - this.from); }

  x(time) { return this.left + (time - this.from) * this.scale; }

  time(x) { return this.from + (x - this.left) / this.scale; }

  bandTop(row) { return this.head + row * this.bandHeight - this.box.scrollTop; }

  // The row under a height of the canvas, or -1.
  bandAt(y) {
    if (!this.model || y < this.head) return -1;
    const row = Math.floor((y - this.head + this.box.scrollTop) / this.bandHeight);
    return row < this.model.rows ? row : -1;
  }

  // Show from one time to another, as far as both exist.
  look(from, to) {
    const { length } = this.model;
    const span = Math.min(length, Math.max(SHORTEST_VIEW_NS, to - from));
    this.from = Math.max(0, Math.min(from, length - span));
    this.to = this.from + span;
    this.draw();
  }

  // Scroll so that a row is visible.
  reveal(row) {
    const top = row * this.bandHeight;
    const room = this.height - this.head;
    const { scrollTop } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.bandHeight > scrollTop + room) this.box.scrollTop = top + this.bandHeight - room;
  }

  draw() {
    const { model, context, paint } = this;
    if (!model) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.textBaseline = "middle";
    context.direction = "ltr";
    context.font = paint.small;
    this.#axis();
    context.font = paint.font;
    model.lanes.forEach((lane, index) => this.#lane(lane, this.axisHeight + index * this.laneHeight));
    context.save();
    context.beginPath();
    context.rect(0, this.head, this.width, this.height - this.head);
    context.clip();
    const first = Math.floor(this.box.scrollTop / this.bandHeight);
    const last = Math.min(model.rows - 1, first + Math.ceil((this.height - this.head) / this.bandHeight));
    for (let row = first; row <= last; row++) this.#band(row);
    this.#arrows(first, last);
    this.#selection();
    context.restore();
  }

  #axis() {
    const { context, paint } = this;
    const ticks = timeTicks(this.from, this.to, this.plot, this.model.length);
    ticks.forEach(([time, label]) => {
      const x = Math.round(this.x(time)) + 0.5;
      context.fillStyle = paint.grid;
      context.fillRect(x, this.axisHeight - 4, 1, this.height);
      const width = context.measureText(label).width;
      const left = Math.min(Math.max(x - width / 2, this.left), this.width - width - 2);
      context.fillStyle = paint.muted;
      context.fillText(label, left, this.axisHeight / 2);
    });
  }

  #lane(lane, top) {
    const { context, paint, model } = this;
    const height = this.laneHeight - 7;
    const bottom = top + height + 3;
    this.#name(`${model.data.locks[lane.lock][0]}`, top, this.laneHeight, paint.ink, `≤ ${lane.most}`);
    context.fillStyle = paint.line;
    context.fillRect(this.left, bottom, this.plot, 1);
    context.fillStyle = paint.waits[PARKED].solid;
    const { time, waiting } = lane;
    let low = 0;
    let high = time.length;
    while (low < high) { // the last change before the view
      const middle = (low + high) >> 1;
      if (time[middle] > this.from) high = middle;
      else low = middle + 1;
    }
    let column = -1;
    let most = 0;
    const bar = (x, end, count) => {
      const tall = (count / lane.most) * height;
      if (tall) context.fillRect(Math.round(x), bottom - tall, Math.round(end) - Math.round(x), tall);
    };
    for (let at = Math.max(0, low - 1); at < time.length && time[at] < this.to; at++) {
      const x = Math.max(this.left, this.x(time[at]));
      const end = at + 1 < time.length ? Math.min(this.x(time[at + 1]), this.left + this.plot) : x;
      if (end <= x) continue;
      if (end - x >= 1) {
        if (column >= 0) bar(column, column + 1, most);
        [column, most] = [-1, 0];
        bar(x, end, waiting[at]);
      } else if (Math.floor(x) === column) most = Math.max(most, waiting[at]);
      else {
        if (column >= 0) bar(column, column + 1, most);
        [column, most] = [Math.floor(x), waiting[at]];
      }
    }
    if (column >= 0) bar(column, column + 1, most);
  }

  #name(text, top, height, colour, aside = "") {
    const { context, paint } = this;
    let room = this.left - 12;
    if (aside) {
      const width = context.measureText(aside).width;
      context.fillStyle = paint.muted;
      context.fillText(aside, this.left - 8 - width, top + height / 2);
      room -= width + 6;
    }
    context.fillStyle = colour;
    context.fillText(fitted(context, this.widths, text, room), 4, top + height / 2);
  }

  #band(row) {
    const { context, paint, model } = this;
    const top = this.bandTop(row);
    const height = this.bandHeight;
    if (row === this.band) {
      context.fillStyle = paint.surface;
      context.fillRect(0, top, this.width, height);
    }
    this.#name(model.data.threads[row], top, height, paint.ink);
    const begin = Math.max(this.left, this.x(model.lifeStart[row]));
    const end = Math.min(this.left + this.plot, this.x(model.lifeEnd[row]));
    context.fillStyle = paint.faint;
    if (end > begin) context.fillRect(begin, top + Math.floor(height / 2), end - begin, 1);
    const inner = [top + 3, height - 6];
    const strip = [top + height - 7, 4];
    const view = { from: this.from, to: this.to, left: this.left, width: this.plot, scale: this.scale };
    const held = paint.gathered(model.holds, row, view, HOLD_KINDS);
    paint.put(held, view, paint.holds, [inner, inner], (...shown) => this.#onHold(...shown));
    const quiet = [top + height / 2 - 3, 6];
    const places = [inner, inner, quiet, [top + 3, Math.round(height * 0.36)], inner];
    const waiting = paint.gathered(model.waits, row, view, WAIT_KINDS);
    paint.put(waiting, view, paint.waits, places, (...shown) => this.#onWait(...shown));
    paint.put(held, view, paint.holds, [strip, strip], null); // seen under a wait, too
  }

  // A name, or only its last part where the whole does not fit.
  #short(name, room) {
    const whole = fitted(this.context, this.widths, name, room);
    return whole === name ? name : fitted(this.context, this.widths, name.slice(name.lastIndexOf(".") + 1), room);
  }

  #site(frame) { return frame < 0 ? "" : this.model.frames[frame][0]; }

  #onHold(at, kind, left, wide, top, tall) {
    const { context, paint, model } = this;
    context.fillStyle = paint.holdInks[kind];
    const shown = this.#short(this.#site(model.holdContext.site[model.holds.context[at]]), wide - 8);
    context.fillText(shown, left + 4, top + tall / 2);
  }

  // What is waited for, or where it is the same for all, who waits. In a spinning wait it stands on
  // a plain ground.
  #onWait(at, kind, left, wide, top, tall) {
    const { context, paint, model } = this;
    if (kind > SPINNING || wide < 60) return;
    const shown = model.lanes.length > 1
      ? fitted(context, this.widths, model.data.locks[model.lockOfWait(at)][0], wide - 14)
      : this.#short(this.#site(model.waitContext.site[model.waits.context[at]]), wide - 14);
    if (!shown) return;
    if (kind === SPINNING) {
      context.fillStyle = paint.waits[SPINNING].solid;
      context.fillRect(left + 3, top, context.measureText(shown).width + 8, tall);
    }
    context.fillStyle = paint.waitInks[kind];
    context.fillText(shown, left + 7, top + tall / 2);
  }

  // From releases to the acquires they let happen, where few enough are in view.
  #arrows(first, last) {
    const { model } = this;
    const shown = [];
    let seen = 0;
    for (let row = 0; row < model.rows; row++) {
      const { waits } = model;
      seen += waits.firstFrom(row, this.to) - waits.firstAfter(row, this.from);
      if (seen > MOST_ARROWS * 8) return;
    }
    for (let row = 0; row < model.rows; row++) {
      for (const at of model.waits.within(row, this.from, this.to, model.isContention)) {
        if (model.waits.end[at] < this.to && model.waits.count[at] === 1) shown.push(at);
        if (shown.length > MOST_ARROWS) return;
      }
    }
    for (const wait of shown) {
      const row = model.waits.row[wait];
      const hold = model.releaseOf(wait);
      if (hold < 0) continue;
      const rows = [row, model.holds.row[hold]];
      if (Math.max(...rows) >= first && Math.min(...rows) <= last) this.#arrow(wait, hold, this.paint.muted, 1);
    }
  }

  #arrow(wait, hold, colour, width) {
    const { context, model } = this;
    const from = model.holds.row[hold];
    const to = model.waits.row[wait];
    const down = to > from;
    const x0 = this.x(model.holds.end[hold]);
    const x1 = this.x(model.waits.end[wait]);
    const y0 = this.bandTop(from) + (down ? this.bandHeight - 3 : 3);
    const y1 = this.bandTop(to) + (down ? 3 : this.bandHeight - 3);
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
    const angle = Math.atan2(y1 - y0, x1 - x0);
    context.beginPath();
    context.moveTo(x1, y1);
    for (const side of [-0.42, 0.42]) {
      context.lineTo(x1 - 7 * Math.cos(angle + side), y1 - 7 * Math.sin(angle + side));
    }
    context.fill();
  }

  #selection() {
    const { chosen, beside, model, paint } = this;
    if (!chosen) return;
    if (beside !== null && chosen.layer === "waits") {
      this.#outline(model.holds, beside, paint.accent);
      const hold = model.releaseOf(chosen.at);
      if (hold >= 0) this.#arrow(chosen.at, hold, paint.ink, 2);
    }
    this.#outline(model[chosen.layer], chosen.at, paint.ink);
  }

  #outline(layer, at, colour) {
    const { context } = this;
    const left = Math.max(this.left - 4, this.x(layer.start[at]));
    const right = Math.min(this.width + 4, this.x(layer.end[at]));
    if (right < this.left || left > this.width) return;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.strokeRect(left - 1, this.bandTop(layer.row[at]) + 1, Math.max(3, right - left + 1.5), this.bandHeight - 2);
  }

  // The name beside a point of the canvas: of a thread or of a lock, whole; or "".
  nameAt(x, y) {
    const { model } = this;
    if (!model || x >= this.left) return "";
    const lane = model.lanes[Math.floor((y - this.axisHeight) / this.laneHeight)];
    if (y < this.head) return y >= this.axisHeight && lane ? model.data.locks[lane.lock].join(", made at ") : "";
    return model.data.threads[this.bandAt(y)] ?? "";
  }

  // What is under a point of the canvas: { layer, at }, or null. A wait lies before a hold.
  under(x, y) {
    const row = this.bandAt(y);
    if (row < 0 || x < this.left) return null;
    const slack = 2 / this.scale;
    const [time, { waits, holds }] = [this.time(x), this.model];
    const tries = [["waits", waits, 0], ["holds", holds, 0], ["waits", waits, slack], ["holds", holds, slack]];
    for (const [layer, intervals, within] of tries) {
      const at = intervals.at(row, time, within);
      if (at >= 0) return { layer, at };
    }
    return null;
  }
}
