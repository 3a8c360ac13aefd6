// The flame graph section: choice of view, search, zoom, keyboard, tooltip and what is read out.

const WAY_TOLD = 3; // frames of the widest way down, for those who do not see it

class FlameView {
  constructor(root, data, hash) {
    this.root = root;
    this.data = data;
    this.hash = hash;
    this.prefix = root.dataset.prefix ?? ""; // of this section's keys in the address, and its tabs
    this.keys = new Set(["flame", "lock", "thread", "inverted", "frame", "search"].map((key) => this.prefix + key));
    this.trees = new Map();
    const find = (name) => root.querySelector(`[data-flame=${name}]`);
    this.canvas = find("canvas");
    this.graph = this.newGraph(find("box"), this.canvas, find("spacer"));
    this.tabs = Array.from(root.querySelectorAll("[role=tab]"));
    this.searchField = find("search");
    this.matches = find("matches");
    this.readout = find("readout");
    this.tooltip = find("tooltip");
    this.empty = find("empty");
    this.view = this.tabs[0].dataset.view;
    this.shape = find("inverted") ? new FlameShape(find, () => this.choose(this.view)) : null;
    this.#listen(find("reset"));
  }

  newGraph(box, canvas, spacer) { return new FlameCanvas(box, canvas, spacer); }

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

  // Show the trees of another run; the view stays. Before `begin`, when it is time for that.
  showPoint(key) {
    this.point = key;
    if (this.begun) this.choose(this.view);
  }

  begin() {
    if (this.begun) return;
    this.begun = true;
    this.choose(this.view);
  }

  // Show what a link wants.
  restore(wanted) {
    if (![...wanted.keys()].some((key) => this.keys.has(key))) return;
    this.begin();
    const tab = this.tabs.find((one) => one.dataset.view === wanted.get(`${this.prefix}flame`));
    if (tab) this.choose(tab.dataset.view);
    if (wanted.has(`${this.prefix}search`)) {
      this.searchField.value = wanted.get(`${this.prefix}search`);
      this.search();
    }
    if (this.shape?.restore(wanted)) this.choose(this.view);
    const frame = hashNumber(wanted.get(`${this.prefix}frame`));
    if (this.tree && frame >= 0 && frame < this.tree.size) this.zoom(frame);
    if (tab || (frame >= 0 && this.tree)) this.root.scrollIntoView();
  }

  choose(view) {
    this.view = view;
    this.#keep("flame", view === this.tabs[0].dataset.view ? null : view);
    this.#keep("frame", null);
    this.shape?.keep(this.hash);
    for (const tab of this.tabs) {
      const chosen = tab.dataset.view === view;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    for (const note of this.root.querySelectorAll("[data-note]")) note.hidden = note.dataset.note !== view;
    const panel = this.root.querySelector("[role=tabpanel]");
    panel.setAttribute("aria-labelledby", `${this.prefix}tab-${view}`);
    const { tree, empty } = this.treeOf(view);
    this.tree = tree;
    this.empty.hidden = tree !== null;
    this.empty.textContent = empty;
    this.graph.box.hidden = tree === null;
    this.tooltip.hidden = true;
    this.#find();
    if (this.tree) this.graph.show(this.tree, view);
    if (this.tree) this.tell(0);
    else this.readout.textContent = "";
    this.canvas.ariaLabel = this.#inWords();
  }

  // What the graph shows, for readers who do not see it: the whole, and the widest way down.
  #inWords() {
    this.label ??= this.canvas.ariaLabel;
    if (!this.tree) return this.label;
    const way = [];
    for (let node = this.tree.firstChild(0); node >= 0; node = this.tree.firstChild(node)) {
      if (way.length && this.tree.total[node] < this.tree.self(way.at(-1))) break;
      way.push(node);
    }
    const last = way.slice(-WAY_TOLD).map((node) => this.describe(node)).join("; then ");
    return `${this.label}, ${this.tabs.find((tab) => tab.dataset.view === this.view).textContent.trim()}: ` +
      `${this.describe(0)}. The widest way down ends in ${last}.`;
  }

  // What to draw of a view: its tree, or null, and what to say where there is none.
  treeOf(view) {
    const data = this.data.points[this.point].views[view];
    if (data.total[0] === 0) return { tree: null, empty: data.empty };
    const { frames } = this.data;
    this.shape.offer(data, frames, this.data.points[this.point].threads);
    const key = `${this.point} ${view} ${this.shape.key}`;
    const tree = this.kept(key, () => new FlameTree(this.shape.applied(data, frames), frames));
    return tree.total[0] ? { tree, empty: "" } : { tree: null, empty: "There is nothing of this of the lock and thread chosen." };
  }

  // A tree by its key, made once.
  kept(key, made) {
    if (!this.trees.has(key)) this.trees.set(key, made());
    return this.trees.get(key);
  }

  #keep(key, value) { this.hash.set(this.prefix + key, value); }

  search() {
    this.#find();
    if (this.tree) this.graph.update();
  }

  #find() {
    const text = this.searchField.value.trim();
    this.#keep("search", text);
    if (!this.tree) {
      this.matches.textContent = "";
      return;
    }
    const found = this.tree.search(text);
    this.matches.textContent = text ? `${counted(found.nodes, "frame")}, ${this.covered(found)}` : "";
  }

  // What the matches of a search cover.
  covered({ time }) { return `${share(time, this.tree.total[0])} of the time`; }

  zoom(node) {
    this.graph.chosen = node;
    this.graph.zoom(node);
    this.#keep("frame", node || null);
    this.tell(node);
  }

  select(node) {
    this.graph.choose(node);
    this.tell(node);
  }

  reset() {
    if (!this.tree) return;
    this.searchField.value = "";
    this.search();
    this.zoom(0);
  }

  // Read out a node; its place leads to its source where the page has it.
  tell(node) {
    const text = this.describe(node);
    const place = this.tree.where(node);
    const at = text.indexOf(`(${place})`) + 1;
    const excerpt = place && Array.from(document.querySelectorAll("details.excerpt"))
      .find((one) => one.dataset.place === place);
    if (!excerpt || !at) {
      this.readout.textContent = text;
      return;
    }
    const link = document.createElement("a");
    link.href = `#${excerpt.querySelector("[id]").id}`;
    link.textContent = place;
    link.addEventListener("click", () => {
      for (let one = excerpt; one; one = one.parentElement.closest("details")) one.open = true;
    });
    this.readout.replaceChildren(text.slice(0, at), link, text.slice(at + place.length));
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
    showTooltip(this.tooltip, node < 0 ? "" : this.describe(node), event);
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
