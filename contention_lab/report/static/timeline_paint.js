// Colours and patterns of a timeline in the theme at hand, and how intervals of a row are painted:
// wide ones as they are, those below half a pixel gathered into columns of one pixel, whose strength
// says how much of the time they fill.

const STRENGTHS = 8;
const NARROW_PX = 0.5;
const HATCHED_PX = 5; // narrower ones would be all hatch

class TimelinePaint {
  constructor(context) { this.context = context; }

  recolour(ratio) {
    const style = getComputedStyle(document.documentElement);
    const colour = (role) => style.getPropertyValue(`--${role}`).trim();
    const page = channels(colour("page"));
    const run = channels(colour("run"));
    const shades = (base) => Array.from({ length: STRENGTHS + 1 }, (_, i) => mixed(base, page, (1 - i / STRENGTHS) * 0.75));
    const solid = (channel) => mixed(channel, page, 0);
    const held = run.map((value, i) => Math.round(value + (page[i] - value) * 0.62));
    const states = (bases) => bases.map((base) => ({ solid: solid(base), shades: shades(base) }));
    this.waits = states(["park", "spin", "coordination", "gil"].map((role) => channels(colour(role))));
    this.holds = states([held, run]);
    this.inks = ["on-park", "on-spin", "on-coordination", "on-gil"].map(colour);
    this.holdInks = [colour("ink"), colour("on-run")];
    for (const role of ["page", "surface", "raised", "ink", "muted", "faint", "line", "grid", "accent", "spin"]) this[role] = colour(role);
    this.hatch = this.#hatch(colour("spin"), mixed(channels(colour("spin")), page, 0.42), ratio);
    const text = parseFloat(style.fontSize);
    this.text = text;
    this.font = `${Math.round(text * 0.8)}px ${style.getPropertyValue("--sans")}`;
    this.small = `${Math.round(text * 0.72)}px ${style.getPropertyValue("--sans")}`;
  }

  #hatch(one, other, ratio) {
    const size = Math.round(8 * ratio);
    const tile = new OffscreenCanvas(size, size);
    const context = tile.getContext("2d");
    context.fillStyle = one;
    context.fillRect(0, 0, size, size);
    context.strokeStyle = other;
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

  // Paint a row of a layer. `view` has from, to, left, width and scale; `states` the colours by kind;
  // `place` gives [top, height] by kind; `label` may write into a wide interval.
  row(layer, row, view, states, place, label) {
    const { from, to, left, width, scale } = view;
    const last = layer.rowStart[row + 1];
    const edge = left + width;
    const filled = new Float64Array(states.length); // time in the column at hand, by kind
    let column = -1;
    const flush = () => {
      if (column < 0) return;
      let most = 0;
      let sum = 0;
      for (let kind = 0; kind < filled.length; kind++) {
        sum += filled[kind];
        if (filled[kind] > filled[most]) most = kind;
      }
      if (sum > 0) {
        const strength = Math.max(1, Math.min(STRENGTHS, Math.round(sum * scale * STRENGTHS)));
        this.context.fillStyle = states[most].shades[strength];
        this.context.fillRect(column, place[most][0], 1, place[most][1]);
      }
      filled.fill(0);
      column = -1;
    };
    let drawn = 0;
    for (let at = layer.firstAfter(row, from); at < last; at++) {
      const begin = layer.start[at];
      if (begin >= to) break;
      const end = layer.end[at];
      if (end <= from) continue;
      const x = left + (begin - from) * scale;
      const span = (end - begin) * scale;
      const kind = layer.kind[at];
      if (span < NARROW_PX) {
        const pixel = Math.floor(Math.max(x, left));
        if (pixel !== column) {
          flush();
          column = pixel;
        }
        filled[kind] += layer.busy[at];
        continue;
      }
      const [top, height] = place[kind];
      const shown = Math.max(x, left);
      const wide = Math.min(x + span, edge) - shown;
      const isRun = layer.count[at] > 1;
      this.context.fillStyle = isRun
        ? states[kind].shades[Math.max(1, Math.round((layer.busy[at] / (end - begin)) * 0.6 * STRENGTHS))]
        : states[kind].hatch && wide >= HATCHED_PX ? states[kind].hatch : states[kind].solid;
      this.context.fillRect(shown, top, Math.max(wide - (wide > 3 ? 0.5 : 0), NARROW_PX), height);
      if (label && wide > 44 && !isRun) label(at, kind, shown, wide, top, height);
      drawn++;
    }
    flush();
    return drawn;
  }
}
