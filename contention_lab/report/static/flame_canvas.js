// Draws a FlameTree on a canvas of the size of its box, whatever the tree's size.
// Rows that are scrolled away and nodes outside the zoom are never touched; nodes below half a
// pixel are drawn as one run. Row 0, the whole, is at the top.

const ROW_REM = 1.4; // height of a row, and with it of its text, in units of the page's text
const SHADES = 5;
const SHADE_STEP = 0.06;
const LEAST_PX = 0.5; // nodes below it are drawn as one run

class FlameCanvas {
  constructor(box, canvas, spacer) {
    this.box = box;
    this.canvas = canvas;
    this.spacer = spacer;
    this.context = canvas.getContext("2d");
    this.tree = null;
    this.zoomed = 0; // the node that fills the width
    this.chosen = -1; // the node with the keyboard
    this.widths = new Map();
    this.drawn = 0; // rectangles of the last drawing
    box.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => { if (box.clientWidth !== this.width) this.layOut(); }).observe(box);
  }

  show(tree, view) {
    this.tree = tree;
    this.view = view;
    this.zoomed = 0;
    this.chosen = -1;
    this.box.scrollTop = 0;
    this.layOut();
  }

  recolour() {
    const style = getComputedStyle(document.documentElement);
    const colour = (role) => style.getPropertyValue(`--${role}`).trim();
    const base = channels(colour(`flame-${this.view === "pair" ? "victim" : this.view}`));
    const page = channels(colour("page"));
    this.shades = Array.from({ length: SHADES }, (_, i) => mixed(base, page, i * SHADE_STEP));
    const culprit = channels(colour("flame-culprit"));
    this.culpritShades = this.shades.map((_, i) => mixed(culprit, page, i * SHADE_STEP));
    this.dim = mixed(base, page, 0.72);
    this.lock = colour("flame-lock");
    this.lockInk = colour("on-flame-lock");
    this.ink = colour("on-flame");
    this.dimInk = colour("muted");
    this.page = colour("page");
    this.hitColour = colour("accent");
    this.hitInk = colour("page");
    this.focus = colour("ink");
    const text = parseFloat(style.fontSize);
    this.row = Math.round(text * ROW_REM);
    this.font = `${Math.round(text * 0.8)}px ${style.getPropertyValue("--sans")}`;
  }

  layOut() {
    if (!this.tree) return;
    this.recolour();
    this.widths.clear();
    this.#fit();
    this.draw();
  }

  // Draw anew with as many rows as have something to show now, and this node in view.
  update(node = -1) {
    if (this.rows !== this.#shownRows()) this.#fit();
    if (node >= 0) this.reveal(node);
    this.draw();
  }

  // As many rows as the zoom has nodes wide enough to be seen; more for what is chosen or found.
  #shownRows() {
    const { tree, zoomed, chosen } = this;
    const least = LEAST_PX / this.scale;
    const always = Math.max(tree.depth[zoomed], chosen < 0 ? 0 : tree.depth[chosen]);
    for (let row = tree.rows - 1; row > always; row--) {
      if (tree.hit(tree.rowStart[row], tree.rowStart[row + 1]) || tree.hasWide(row, zoomed, least)) return row + 1;
    }
    return always + 1;
  }

  #fit() {
    this.width = this.box.clientWidth;
    this.rows = this.#shownRows();
    const whole = this.wholeHeight;
    const height = Math.min(whole, Math.round(window.innerHeight * 0.66));
    this.box.style.height = `${height}px`;
    this.spacer.style.height = `${whole - height}px`;
    this.width = this.box.clientWidth; // less where there is a scroll bar now
    this.height = height;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${height}px`;
    this.ratio = ratio;
  }

  get wholeHeight() { return this.rows * this.row; }

  // Draw all rows by another context.
  drawnOn(context) {
    const { context: own, height, box } = this;
    Object.assign(this, { context, height: this.wholeHeight, box: { scrollTop: 0 } });
    this.draw();
    Object.assign(this, { context: own, height, box });
  }

  get scale() { return this.width / (this.tree.total[this.zoomed] || 1); }

  draw() {
    const { tree, context } = this;
    if (!tree) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = this.font;
    context.textBaseline = "middle";
    context.direction = "ltr";
    this.drawn = 0;
    const first = Math.floor(this.box.scrollTop / this.row);
    const last = Math.min(this.rows - 1, Math.floor((this.box.scrollTop + this.height) / this.row));
    for (let row = first; row <= last; row++) this.#drawRow(row);
  }

  #drawRow(row) {
    const { tree, scale, width } = this;
    const from = tree.start[this.zoomed];
    const y = row * this.row - this.box.scrollTop;
    const end = tree.rowStart[row + 1];
    let place = tree.firstAfter(tree.rowStart[row], end, from);
    let run = null; // of one colour, and without a gap that could be seen: one rectangle
    const close = () => {
      if (run) this.#fill(run.left, run.right - run.left, y, run.colour);
      run = null;
    };
    while (place < end) {
      const node = tree.order[place];
      const left = (tree.start[node] - from) * scale;
      if (left >= width) break;
      const right = left + tree.total[node] * scale;
      if (right - left < LEAST_PX) {
        const next = Math.max(place + 1, tree.firstAfter(place, end, from + (left + LEAST_PX) / scale));
        const colour = tree.hit(place, next) ? this.hitColour : this.runColour(place, next);
        if (!run || run.colour !== colour || left - run.right > LEAST_PX) {
          close();
          run = { left, colour };
        }
        run.right = left + LEAST_PX;
        place = next;
      } else {
        close();
        this.#drawNode(node, place, Math.max(0, left), Math.min(width, right), y);
        place++;
      }
    }
    close();
  }

  // Fill and ink of a node where no search and no zoom decides.
  paint(node) {
    const frame = this.tree.frames[this.tree.frame[node]];
    if (frame[3] === "lock") return [this.lock, this.lockInk];
    return [(frame[3] === "culprit" ? this.culpritShades : this.shades)[shadeOf(frame[1])], this.ink];
  }

  // Fill of the nodes from one place of a row to before another, too narrow to be told apart.
  runColour(_place, _next) { return this.shades[2]; }

  // What stands in a node.
  title(node) { return this.tree.name(node); }

  // What lies over the colour of a node.
  decorate(_node, _left, _right, _y) {}

  #fill(x, width, y, colour) {
    this.context.fillStyle = colour;
    this.context.fillRect(x, y, width, this.row - 1);
    this.drawn++;
  }

  #drawNode(node, place, left, right, y) {
    const { tree, context } = this;
    const hit = tree.hit(place, place + 1);
    const above = tree.depth[node] < tree.depth[this.zoomed];
    let [colour, ink] = this.paint(node);
    if (hit) [colour, ink] = [this.hitColour, this.hitInk];
    else if (above || tree.hits !== null) [colour, ink] = [this.dim, this.dimInk];
    const gap = right - left > 3 ? 1 : 0;
    this.#fill(left, right - left - gap, y, colour);
    if (!hit) this.decorate(node, left, right - gap, y);
    if (right - left > 26) {
      context.fillStyle = ink;
      context.fillText(fitted(context, this.widths, this.title(node), right - left - 10), left + 5, y + this.row / 2);
    }
    if (node === this.chosen) {
      context.strokeStyle = this.focus;
      context.lineWidth = 2;
      context.strokeRect(left + 1, y + 1, Math.max(1, right - left - 3), this.row - 3);
    }
  }

  // The node under a point of the canvas, or -1.
  nodeAt(x, y) {
    if (!this.tree) return -1;
    const row = Math.floor((y + this.box.scrollTop) / this.row);
    return this.tree.at(row, this.tree.start[this.zoomed] + x / this.scale);
  }

  zoom(node) {
    this.zoomed = node;
    this.update(node);
  }

  choose(node) {
    this.chosen = node;
    const { tree } = this;
    const from = tree.start[this.zoomed];
    const outside = tree.start[node] >= from + tree.total[this.zoomed] ||
      tree.start[node] + tree.total[node] <= from;
    if (outside) this.zoomed = tree.parent[node] < 0 ? 0 : tree.parent[node];
    this.update(node);
  }

  // Scroll so that the row of a node is visible.
  reveal(node) {
    const top = this.tree.depth[node] * this.row;
    const { scrollTop } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.row > scrollTop + this.height) {
      this.box.scrollTop = top + this.row - this.height;
    }
  }
}

function channels(hex) { return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)); }

function mixed(one, other, part) {
  return `rgb(${one.map((value, i) => Math.round(value + (other[i] - value) * part)).join(",")})`;
}

// Frames of one file share a shade, so that the eye sees where modules meet.
const shadeCache = new Map();
function shadeOf(file) {
  let shade = shadeCache.get(file);
  if (shade === undefined) {
    let hash = 0;
    for (let i = 0; i < file.length; i++) hash = (hash * 31 + file.charCodeAt(i)) >>> 0;
    shade = hash % SHADES;
    shadeCache.set(file, shade);
  }
  return shade;
}
