// Brings the page to life: it is complete without, only less handy.

const data = JSON.parse(document.getElementById("data").textContent);
document.documentElement.classList.add("scripted");

const flameRoot = document.getElementById("flame");
const flame = flameRoot ? new FlameView(flameRoot, data) : null;

function showPoint(key) {
  for (const part of document.querySelectorAll("details.point")) {
    part.open = true;
    part.hidden = part.dataset.point !== key;
  }
  for (const name of document.querySelectorAll("[data-point-label]")) {
    name.textContent = data.points[key].label;
  }
  if (flame) flame.showPoint(key);
}

const chooser = document.getElementById("point");
if (chooser) {
  chooser.addEventListener("change", () => showPoint(chooser.value));
  showPoint(chooser.value);
}

for (const table of document.querySelectorAll("table.sortable")) makeSortable(table);
for (const fallback of document.querySelectorAll("details.fallback")) fallback.open = false;
setUpTheme(document.getElementById("theme"), () => {
  if (flame && flame.tree) {
    flame.graph.recolour();
    flame.graph.draw();
  }
});
