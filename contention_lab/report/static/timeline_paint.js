// Colours and patterns of a timeline in the theme at hand, and how intervals of a row are painted:
// wide ones as rectangles, those below half a pixel gathered into columns of one pixel, whose
// strength says how much of the time they fill. Columns are painted as one picture, one pixel high
// and stretched, since thousands of rectangles would take too long.

const STRENGTHS = 8;
const NARROW_PX = 0.5;
const HATCHED_PX = 5; // narrower ones would be all hatch
const LABELLED_PX = 44;
const RUN_STRENGTH = 0.6; // a run is paler than what is single

class TimelinePaint {
  constructor(context) {
    this.context = context;
    this.rowPixels = document.createElement("canvas"); // a row's columns
    this.rowPixels.height = 1;
  }

  recolour(ratio) {
    const style = getComputedStyle(document.documentElement);
    const colour = (role) => style.getPropertyValue(`--${role}`).trim();
    for (const role of ["surface", "ink", "muted", "faint", "line", "grid", "accent"]) this[role] = colour(role);
    const page = channels(colour("page"));
    const state = (base) => ({
      solid: mixed(base, page, 0),
      shades: Array.from({ length: STRENGTHS + 1 }, (_, i) => mixed(base, page, (1 - i / STRENGTHS) * 0.75)),
    });
    const [run, spin] = [channels(colour("run")), channels(colour("spin"))];
    const held = run.map((value, i) => Math.round(value + (page[i] - value) * 0.62));
    this.waits = ["park", "spin", "coordination", "gil", "line-4"].map((role) => state(channels(colour(role))));
    this.hatchColours = [mixed(spin, page, 0), mixed(spin, page, 0.42)];
    this.waits[SPINNING].hatch = this.#hatch(...this.hatchColours, ratio);
    this.holds = [held, run].map(state);
    this.waitInks = ["on-park", "on-spin", "on-coordination", "on-gil"].map(colour);
    this.holdInks = ["ink", "on-run"].map(colour);
    this.text = parseFloat(style.fontSize);
    this.font = `${Math.round(this.text * 0.8)}px ${style.getPropertyValue("--sans")}`;
    this.small = `${Math.round(this.text * 0.72)}px ${style.getPropertyValue("--sans")}`;
  }

  #hatch(ground, stripe, ratio) {
    const size = Math.round(8 * ratio);
    const tile = document.createElement("canvas");
    tile.width = tile.height = size;
    const context = tile.getContext("2d");
    context.fillStyle = ground;
    context.fillRect(0, 0, size, size);
    context.strokeStyle = stripe;
    context.lineWidth = 1.6 * ratio;
    for (const shift of [-size, 0, size]) {
      context.beginPath();
      context.moveTo(shift - 1, size + 1);
      context.lineTo(shift + size + 1, -1);
      context.stroke();
    }
    const pattern = this.context.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix([1 / ratio, 0, 0, 1 / ratio, 0, 0]));
    return pattern;
  }

  // What of a row is in view: `wide` intervals with their places, and for each kind the time that
  // narrow ones fill in each column.
  gathered(layer, row, { from, to, width, scale }, kinds) {
    const wide = [];
    const columns = Array.from({ length: kinds }, () => null);
    const last = layer.rowStart[row + 1];
    const { start, end, kind, busy } = layer;
    for (let at = layer.firstAfter(row, from); at < last && start[at] < to; at++) {
      if (end[at] <= from) continue;
      const x = (start[at] - from) * scale;
      const span = (end[at] - start[at]) * scale;
      if (span < NARROW_PX) {
        const filled = columns[kind[at]] ??= new Float64Array(Math.ceil(width));
        filled[Math.max(0, Math.floor(x))] += busy[at] * scale;
      } else wide.push(at, Math.max(x, 0), Math.min(x + span, width) - Math.max(x, 0));
    }
    return { layer, wide, columns };
  }

  // Paint what was gathered. `states` are the colours by kind, `places` tops and heights; `label`
  // may write into a wide interval.
  put({ layer, wide, columns }, { left, width }, states, places, label) {
    const { context } = this;
    const labels = [];
    for (let i = 0; i < wide.length; i += 3) {
      const [at, x, span] = [wide[i], wide[i + 1], wide[i + 2]];
      const kind = layer.kind[at];
      const [top, height] = places[kind];
      const { solid, hatch, shades } = states[kind];
      const isRun = layer.count[at] > 1;
      if (isRun) {
        const part = layer.busy[at] / (layer.end[at] - layer.start[at]);
        context.fillStyle = shades[Math.max(1, Math.min(STRENGTHS, Math.round(part * RUN_STRENGTH * STRENGTHS)))];
      } else context.fillStyle = hatch && span >= HATCHED_PX ? hatch : solid;
      context.fillRect(left + x, top, Math.max(span - (span > 3 ? 0.5 : 0), NARROW_PX), height);
      if (label && span > LABELLED_PX && !isRun) labels.push([at, kind, left + x, span, top, height]);
    }
    for (const one of labels) label(...one); // above what lies within the interval
    for (const place of new Set(places)) {
      const kinds = [...states.keys()].filter((kind) => columns[kind] && places[kind] === place);
      if (kinds.length) this.#columns(kinds.map((kind) => [columns[kind], states[kind].shades]), left, width, place);
    }
  }

  // Paint columns in the colour of the kind that fills most of each.
  #columns(kinds, left, width, [top, height]) {
    const pixels = Math.ceil(width);
    if (this.rowPixels.width !== pixels) this.rowPixels.width = pixels;
    const context = this.rowPixels.getContext("2d");
    const image = context.createImageData(pixels, 1);
    const colours = kinds.map(([, shades]) => shades.map((shade) => shade.match(/\d+/g).map(Number)));
    for (let column = 0; column < pixels; column++) {
      let sum = 0;
      let most = 0;
      kinds.forEach(([filled], kind) => {
        sum += filled[column];
        if (filled[column] > kinds[most][0][column]) most = kind;
      });
      if (!sum) continue;
      const strength = Math.max(1, Math.min(STRENGTHS, Math.round(sum * STRENGTHS)));
      image.data.set(colours[most][strength], 4 * column);
      image.data[4 * column + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(this.rowPixels, 0, 0, pixels, 1, left, top, pixels, height);
  }
}
