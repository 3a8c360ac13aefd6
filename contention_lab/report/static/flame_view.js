// The flame graph section: choice of view, search, zoom, keyboard, tooltip and what is read out.

class FlameView {
  constructor(root, data, hash) {
    this.root = root;
    this.data = data;
    this.hash = hash;
    this.trees = new Map();
    const find = (name) => root.querySelector(`[data-flame=${name}]`);
    this.canvas = find("canvas");
    this.graph = new FlameCanvas(find("box"), this.canvas, find("spacer"));
    this.tabs = Array.from(root.querySelectorAll("[role=tab]"));
    this.searchField = find("search");
    this.matches = find("matches");
    this.readout = find("readout");
    this.tooltip = find("tooltip");
    this.empty = find("empty");
    this.view = this.tabs[0].dataset.view;
    this.#listen(find("reset"));
  }

  #listen(reset) {
    this.tabs.forEach((tab, index) => {
      tab.addEventListener("click", () => this.choose(tab.dataset.view));
      tab.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = this.tabs[(index + step + this.tabs.length) % this.tabs.length];
        this.choose(next.dataset.view);
        next.focus();
        event.preventDefault();
      });
    });
    this.searchField.addEventListener("input", () => this.search());
    this.searchField.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      this.searchField.value = "";
      this.search();
      event.preventDefault();
    });
    reset.addEventListener("click", () => this.reset());
    this.canvas.addEventListener("click", (event) => {
      const node = this.graph.nodeAt(event.offsetX, event.offsetY);
      if (node >= 0) this.zoom(node);
    });
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event));
    this.canvas.addEventListener("pointerleave", () => { this.tooltip.hidden = true; });
    this.canvas.addEventListener("keydown", (event) => this.#key(event));
    this.canvas.addEventListener("focus", () => {
      if (this.tree && this.graph.chosen < 0) this.select(this.graph.zoomed);
    });
  }

  // Show the trees of another run; the view stays.
  showPoint(key) {
    this.point = key;
    this.choose(this.view);
  }

  // Show what a link wants.
  restore(wanted) {
    const tab = this.tabs.find((one) => one.dataset.view === wanted.get("flame"));
    if (tab) this.choose(tab.dataset.view);
    if (wanted.has("search")) {
      this.searchField.value = wanted.get("search");
      this.search();
    }
    const frame = hashNumber(wanted.get("frame"));
    if (this.tree && frame >= 0 && frame < this.tree.size) this.zoom(frame);
    if (tab || (frame >= 0 && this.tree)) this.root.scrollIntoView();
  }

  choose(view) {
    this.view = view;
    this.hash.set("flame", view === this.tabs[0].dataset.view ? null : view);
    this.hash.set("frame", null);
    for (const tab of this.tabs) {
      const chosen = tab.dataset.view === view;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    for (const note of this.root.querySelectorAll("[data-note]")) note.hidden = note.dataset.note !== view;
    const panel = this.root.querySelector("[role=tabpanel]");
    panel.setAttribute("aria-labelledby", `tab-${view}`);
    const data = this.data.points[this.point].views[view];
    const nothing = data.total[0] === 0;
    this.empty.hidden = !nothing;
    this.empty.textContent = data.empty;
    this.graph.box.hidden = nothing;
    this.tooltip.hidden = true;
    this.tree = nothing ? null : this.#treeOf(data, `${this.point} ${view}`);
    if (this.tree) this.graph.show(this.tree, view);
    this.readout.textContent = this.tree ? this.describe(0) : "";
    this.search();
  }

  #treeOf(data, key) {
    if (!this.trees.has(key)) this.trees.set(key, new FlameTree(data, this.data.frames));
    return this.trees.get(key);
  }

  search() {
    const text = this.searchField.value.trim();
    this.hash.set("search", text);
    if (!this.tree) {
      this.matches.textContent = "";
      return;
    }
    const { nodes, time } = this.tree.search(text);
    const frames = `${nodes.toLocaleString("en-US")} ${nodes === 1 ? "frame" : "frames"}`;
    this.matches.textContent = text ? `${frames}, ${share(time, this.tree.total[0])} of the time` : "";
    this.graph.draw();
  }

  zoom(node) {
    this.graph.chosen = node;
    this.graph.zoom(node);
    this.hash.set("frame", node || null);
    this.readout.textContent = this.describe(node);
  }

  select(node) {
    this.graph.choose(node);
    this.readout.textContent = this.describe(node);
  }

  reset() {
    if (!this.tree) return;
    this.searchField.value = "";
    this.search();
    this.zoom(0);
  }

  describe(node) {
    const { tree } = this;
    const where = tree.where(node);
    const self = tree.self(node);
    const parts = [
      tree.name(node) + (where ? ` (${where})` : ""),
      `${seconds(tree.total[node])}, ${share(tree.total[node], tree.total[0])} of all`,
    ];
    if (self > 0 && self < tree.total[node]) parts.push(`${seconds(self)} in itself`);
    return parts.join(" · ");
  }

  #hover(event) {
    const node = this.graph.nodeAt(event.offsetX, event.offsetY);
    this.tooltip.hidden = node < 0;
    if (node < 0) return;
    this.tooltip.textContent = this.describe(node);
    const frame = this.graph.box.parentElement.getBoundingClientRect();
    const left = event.clientX - frame.left + 14;
    const room = frame.width - this.tooltip.offsetWidth - 4;
    this.tooltip.style.left = `${Math.max(0, Math.min(left, room))}px`;
    this.tooltip.style.top = `${event.clientY - frame.top + 18}px`;
  }

  #key(event) {
    const { tree, graph } = this;
    if (!tree || event.ctrlKey || event.metaKey || event.altKey) return;
    const at = graph.chosen < 0 ? graph.zoomed : graph.chosen;
    const moves = {
      ArrowUp: () => tree.parent[at],
      ArrowDown: () => tree.firstChild(at),
      ArrowLeft: () => tree.neighbour(at, -1),
      ArrowRight: () => tree.neighbour(at, 1),
      Home: () => 0,
    };
    if (event.key in moves) {
      const to = moves[event.key]();
      if (to >= 0) this.select(to);
    } else if (event.key === "Enter" || event.key === " ") this.zoom(at);
    else if (event.key === "Escape") this.reset();
    else if (event.key === "/") this.searchField.focus();
    else return;
    event.preventDefault();
  }
}
