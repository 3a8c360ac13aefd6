// Brings the page to life: it is complete without, only less handy.

const data = JSON.parse(document.getElementById("data").textContent);
document.documentElement.classList.add("scripted");
for (const fallback of document.querySelectorAll("details.fallback")) fallback.open = false;

const flameRoot = document.getElementById("flame");
const hash = new HashState((wanted) => {
  const run = wanted.get("run");
  if (Object.hasOwn(data.points ?? {}, run) && chooser && chooser.value !== run) {
    chooser.value = run;
    showPoint(run);
  }
  restore(wanted);
});
const flame = flameRoot ? new FlameView(flameRoot, data, hash) : null;
const differenceRoot = document.getElementById("difference");
const difference = differenceRoot ? new DifferenceView(differenceRoot, data, hash) : null;
const timelineRoot = document.getElementById("timeline");
const timeline = timelineRoot ? new TimelineView(timelineRoot, data, hash) : null;

function showPoint(key) {
  for (const part of document.querySelectorAll("details.point")) {
    part.open = true;
    part.hidden = part.dataset.point !== key;
  }
  for (const name of document.querySelectorAll("[data-point-label]")) {
    name.textContent = data.points[key].label;
  }
  if (timeline) timeline.showPoint(key);
  if (flame) flame.showPoint(key);
}

function restore(wanted) {
  if (flame) flame.restore(wanted);
  if (difference) difference.restore(wanted);
  if (timeline) timeline.restore(wanted);
}

// Make a view once it comes near, and at the latest when there is nothing else to do, one at a time:
// the page opens sooner, and who scrolls finds it there. Then the page is of class `ready`.
function beginLater(views) {
  const left = views.map(([view]) => view);
  const next = () => {
    left.shift()?.begin();
    if (left.length) setTimeout(next);
    else document.documentElement.classList.add("ready");
  };
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) views.find(([, root]) => root === target)[0].begin();
    }
  }, { rootMargin: "50%" });
  for (const [, root] of views) seen.observe(root);
  addEventListener("load", () => setTimeout(next));
  addEventListener("beforeprint", () => { for (const view of left) view.begin(); });
}

setUpTheme(document.getElementById("theme"), () => {
  for (const view of [flame, difference]) {
    if (!view || !view.tree) continue;
    view.graph.recolour();
    view.graph.draw();
  }
  if (timeline && timeline.model) {
    timeline.graph.recolour();
    timeline.graph.draw();
  }
});

const chooser = document.getElementById("point");
const wanted = new Map(hash.values);
if (chooser) {
  if (Object.hasOwn(data.points, wanted.get("run") ?? "")) chooser.value = wanted.get("run");
  chooser.addEventListener("change", () => {
    hash.set("run", chooser.value);
    showPoint(chooser.value);
  });
  showPoint(chooser.value);
}
restore(wanted);
beginLater([[timeline, timelineRoot], [flame, flameRoot], [difference, differenceRoot]].filter(([view]) => view));

for (const table of document.querySelectorAll("table")) setUpTable(table);
setUpPlots([[flame, "Flame graph"], [difference, "Difference flame graph"], [timeline, "Timeline"]]
  .filter(([view]) => view).map(([view, title]) => [view.graph, title]));
setUpVerdictCopy();
