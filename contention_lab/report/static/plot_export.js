// Pictures to keep: every plot as SVG and PNG, in the theme at hand.

const PNG_SCALE = 2;
const MOST_PIXELS = 16_000; // of a side of a canvas
const KEPT_STYLES = [
  "fill", "stroke", "stroke-width", "stroke-linejoin", "stroke-dasharray", "paint-order",
  "font-family", "font-size", "font-weight", "opacity", "text-anchor",
];

// Buttons that save what `picture()` returns: a standalone element `svg`.
function exportButtons(title, picture) {
  const tools = document.createElement("p");
  tools.className = "plot-tools";
  tools.role = "group";
  tools.ariaLabel = `Save: ${title}`;
  const file = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const kinds = {
    SVG: (svg) => new Blob([svgText(svg)], { type: "image/svg+xml" }),
    PNG: pngOf,
  };
  for (const [kind, made] of Object.entries(kinds)) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = kind;
    button.ariaLabel = `Save as ${kind}: ${title}`;
    button.addEventListener("click", async () => {
      const blob = await made(picture());
      if (blob) saved(blob, `contention-lab-${file}.${kind.toLowerCase()}`);
    });
    tools.append(button);
  }
  return tools;
}

function saved(blob, file) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function svgText(svg) { return new XMLSerializer().serializeToString(svg); }

async function pngOf(svg) {
  const image = new Image();
  const [width, height] = ["width", "height"].map((key) => Number(svg.getAttribute(key)));
  const loaded = new Promise((resolve, reject) => { [image.onload, image.onerror] = [resolve, reject]; });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await loaded;
  const scale = Math.min(PNG_SCALE, MOST_PIXELS / Math.max(width, height));
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// A copy of a plot of the page that needs no style sheet.
function standalone(plot) {
  const copy = plot.cloneNode(true);
  const originals = [plot, ...plot.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, index) => {
    if (!["title", "desc"].includes(element.tagName)) {
      const style = getComputedStyle(originals[index]);
      for (const name of KEPT_STYLES) element.setAttribute(name, style.getPropertyValue(name));
    }
    element.removeAttribute("class");
  });
  const { width, height } = plot.viewBox.baseVal;
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return onPage(copy, width, height);
}

function onPage(svg, width, height) {
  const ground = document.createElementNS(SVG, "rect");
  const fill = getComputedStyle(document.documentElement).getPropertyValue("--page").trim();
  for (const [key, value] of Object.entries({ width, height, fill })) ground.setAttribute(key, value);
  const words = Array.from(svg.children).filter((element) => ["title", "desc"].includes(element.tagName));
  if (words.length) words.at(-1).after(ground);
  else svg.prepend(ground);
  return svg;
}

// What a view's canvas shows, with the rows that are scrolled away.
function pictureOf(graph, title) {
  const hatch = graph.paint.hatchColours ?? [];
  const svg = new SvgContext(graph.width, graph.wholeHeight, document.createElement("canvas").getContext("2d"), hatch);
  graph.drawnOn(svg);
  const name = document.createElementNS(SVG, "title");
  name.textContent = title;
  svg.root.prepend(name);
  return onPage(svg.root, graph.width, graph.wholeHeight);
}

function setUpPlots(graphs) {
  for (const wide of document.querySelectorAll("svg.plot.wide")) {
    const pair = [wide, wide.nextElementSibling].filter((plot) => plot?.matches("svg.plot"));
    const title = wide.querySelector("title").textContent;
    pair.at(-1).after(exportButtons(title, () => standalone(pair.find((plot) => plot.getBoundingClientRect().width))));
  }
  for (const [graph, title] of graphs) {
    graph.box.closest("[role=tabpanel],[data-timeline=frame]").append(exportButtons(title, () => pictureOf(graph, title)));
  }
}
