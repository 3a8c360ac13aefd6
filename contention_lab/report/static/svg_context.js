// A drawing context that makes an SVG of what is drawn: as much of a canvas's context as the views
// use. Text is measured by a real one.

const SVG = "http://www.w3.org/2000/svg";

class SvgContext {
  // `hatch` has the two colours of any pattern that is filled with.
  constructor(width, height, measuring, hatch) {
    this.root = document.createElementNS(SVG, "svg");
    for (const [key, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
      this.root.setAttribute(key, value);
    }
    this.measuring = measuring;
    this.hatch = hatch;
    this.at = this.root;
    this.saved = [];
    this.path = "";
    this.ids = 0;
  }

  setTransform() {}

  clearRect() {}

  set font(font) {
    this.measuring.font = this.fontText = font;
    [, this.size, this.family] = /([\d.]+)px (.*)/.exec(font);
  }

  get font() { return this.fontText; }

  measureText(text) { return this.measuring.measureText(text); }

  #put(tag, attributes, parent = this.at) {
    const element = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, typeof value === "number" ? Math.round(value * 100) / 100 : value);
    }
    parent.append(element);
    return element;
  }

  #colour(style) {
    if (typeof style === "string") return style;
    if (!this.pattern) {
      this.pattern = "hatch";
      const [ground, stripe] = this.hatch;
      const pattern = this.#put("pattern", {
        id: this.pattern, width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)",
      }, this.root);
      this.#put("rect", { width: 4, height: 4, fill: ground }, pattern);
      this.#put("rect", { width: 1.4, height: 4, fill: stripe }, pattern);
    }
    return `url(#${this.pattern})`;
  }

  fillRect(x, y, width, height) {
    this.#put("rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), fill: this.#colour(this.fillStyle) });
  }

  strokeRect(x, y, width, height) {
    this.#put("rect", { x, y, width, height, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth });
  }

  fillText(text, x, y) {
    this.#put("text", {
      x, y, fill: this.#colour(this.fillStyle), "font-size": this.size, "font-family": this.family,
      "dominant-baseline": "central", "xml:space": "preserve",
    }).textContent = text;
  }

  beginPath() { this.path = ""; }

  moveTo(x, y) { this.path += `M${x.toFixed(1)} ${y.toFixed(1)}`; }

  lineTo(x, y) { this.path += `L${x.toFixed(1)} ${y.toFixed(1)}`; }

  rect(x, y, width, height) { this.path += `M${x} ${y}h${width}v${height}h${-width}z`; }

  stroke() { this.#put("path", { d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth }); }

  fill() { this.#put("path", { d: this.path, fill: this.#colour(this.fillStyle) }); }

  save() { this.saved.push(this.at); }

  restore() { this.at = this.saved.pop(); }

  clip() {
    const id = `clip-${this.ids++}`;
    this.#put("path", { d: this.path }, this.#put("clipPath", { id }, this.root));
    this.at = this.#put("g", { "clip-path": `url(#${id})` });
  }

  // A picture from a part of a canvas that is as large as that part.
  drawImage(canvas, _x, _y, _width, _height, x, y, width, height) {
    this.#put("image", { href: canvas.toDataURL(), x, y, width, height, preserveAspectRatio: "none" })
      .setAttribute("image-rendering", "pixelated");
  }
}
