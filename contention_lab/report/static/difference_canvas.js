// Draws a DifferenceTree: the colour of a frame is its change, and its text says it, too.

const STRENGTHS_OF_CHANGE = 4;
const HATCH_PX = 7;
const READABLE = 4.5; // contrast of text on its ground

class DifferenceCanvas extends FlameCanvas {
  recolour() {
    super.recolour();
    const style = getComputedStyle(document.documentElement);
    const colour = (role) => channels(style.getPropertyValue(`--${role}`).trim());
    const same = colour("same");
    const inks = [colour("ink"), colour("page")];
    const steps = (role) => Array.from({ length: STRENGTHS_OF_CHANGE }, (_, step) =>
      mixed(same, colour(role), (step + 1) / STRENGTHS_OF_CHANGE));
    this.changes = { more: steps("more"), less: steps("less") };
    this.same = mixed(same, same, 0);
    this.hatch = { [NEW]: mixed(colour("more"), colour("page"), 0.55), [GONE]: mixed(colour("less"), colour("page"), 0.55) };
    this.inkOn = new Map([this.same, ...this.changes.more, ...this.changes.less].map((fill) => {
      const ground = fill.match(/\d+/g).map(Number);
      const best = contrast(inks[0], ground) >= READABLE ? inks[0] : inks[1];
      return [fill, mixed(best, best, 0)];
    }));
  }

  #colourOf(strength) {
    const step = Math.min(STRENGTHS_OF_CHANGE - 1, Math.floor(Math.abs(strength) * STRENGTHS_OF_CHANGE));
    return this.changes[strength > 0 ? "more" : "less"][step];
  }

  paint(node) {
    const { tree } = this;
    const fill = tree.claim[node] === SAME ? this.same : this.#colourOf(tree.strength(node));
    return [fill, this.inkOn.get(fill)];
  }

  runColour(place, next) {
    const strength = this.tree.runStrength(place, next);
    return strength ? this.#colourOf(strength) : this.same;
  }

  title(node) {
    const { tree } = this;
    const mark = { [NEW]: "new: ", [GONE]: "gone: ", [MORE]: "+ ", [LESS]: "− ", [SAME]: "" };
    return mark[tree.claim[node]] + tree.name(node);
  }

  // Frames of one side only are hatched along their upper edge, clear of the text.
  decorate(node, left, right, y) {
    const stroke = this.hatch[this.tree.claim[node]];
    if (!stroke || right - left < HATCH_PX) return;
    const { context } = this;
    const height = Math.max(3, Math.round(this.row * 0.2));
    context.save();
    context.beginPath();
    context.rect(left, y, right - left, height);
    context.clip();
    context.beginPath();
    for (let x = left - height; x < right; x += HATCH_PX) {
      context.moveTo(x, y + height);
      context.lineTo(x + height, y);
    }
    context.strokeStyle = stroke;
    context.lineWidth = HATCH_PX * 0.4;
    context.stroke();
    context.restore();
  }
}

function contrast(one, other) {
  const light = ([red, green, blue]) => {
    const [r, g, b] = [red, green, blue].map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
