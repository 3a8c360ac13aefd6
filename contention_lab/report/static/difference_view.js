// The section with the difference of flame graphs: of two sets of recordings, or of two runs of a
// sweep, which are chosen here.

class DifferenceView extends FlameView {
  constructor(root, data, hash) {
    super(root, data, hash);
    this.choosers = ["before", "after"].map((side) => document.getElementById(`difference-${side}`));
    for (const side of ["before", "after"]) this.keys.add(`difference-${side}`);
    for (const chooser of this.choosers.filter(Boolean)) {
      chooser.addEventListener("change", () => {
        this.hash.set(chooser.id, chooser.value);
        this.choose(this.view);
      });
    }
  }

  // The words below the graph are of the runs that the page was made with.
  choose(view) {
    super.choose(view);
    const isFirst = this.choosers.every((chooser) => !chooser || chooser.selectedOptions[0].defaultSelected);
    if (isFirst) return;
    for (const words of this.root.querySelectorAll(".in-words")) words.hidden = true;
  }

  restore(wanted) {
    if (![...wanted.keys()].some((key) => this.keys.has(key))) return;
    this.begin();
    for (const chooser of this.choosers.filter(Boolean)) {
      const run = wanted.get(chooser.id) ?? "";
      if (!Object.hasOwn(this.data.points, run)) continue;
      chooser.value = run;
      this.choose(this.view);
    }
    super.restore(wanted);
  }

  newGraph(box, canvas, spacer) { return new DifferenceCanvas(box, canvas, spacer); }

  treeOf(view) {
    const [key, data] = this.#dataOf(view);
    const tree = this.kept(key, () => new DifferenceTree(data(), this.data.frames));
    if (tree.total[0] > 0) return { tree, empty: "" };
    return { tree: null, empty: "There is nothing of this on either side." };
  }

  #dataOf(view) {
    if (this.data.difference) return [view, () => this.data.difference[view]];
    const [before, after] = this.choosers.map((chooser) => chooser.value);
    const tree = (run) => this.data.points[run].views[view];
    return [`${before} ${after} ${view}`, () => mergedTrees(tree(before), tree(after), this.data.frames)];
  }

  describe(node) {
    const { tree } = this;
    const where = tree.where(node);
    const [before, after, claim] = [tree.before[node], tree.after[node], tree.claim[node]];
    const parts = [
      tree.name(node) + (where ? ` (${where})` : ""),
      `${seconds(before)} before, ${seconds(after)} after: ${signed(after - before)}${percentOf(before, after)}`,
    ];
    const interval = tree.interval[node];
    if (interval) parts.push(`${signed(interval[0])} to ${signed(interval[1])}`);
    parts.push({ [NEW]: "new", [GONE]: "gone", [MORE]: "more", [LESS]: "less", [SAME]: "no difference" }[claim]);
    return parts.join(" · ");
  }

  covered({ before, after }) { return `${seconds(before)} before, ${seconds(after)} after`; }
}

function signed(nanoseconds) { return (nanoseconds < 0 ? "−" : "+") + seconds(Math.abs(nanoseconds)); }

function percentOf(before, after) {
  if (!before || after === before) return "";
  const ratio = (after - before) / before;
  if (ratio > 9) return ` (${(after / before).toFixed(0)} times)`;
  return ` (${ratio < 0 ? "−" : "+"}${Math.abs(100 * ratio).toFixed(0)}${THIN}%)`;
}
