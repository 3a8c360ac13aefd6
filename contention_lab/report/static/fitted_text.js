// A name cut to a room in pixels; `widths` remembers what was measured.

function fitted(context, widths, name, room) {
  let width = widths.get(name);
  if (width === undefined) {
    width = context.measureText(name).width;
    widths.set(name, width);
  }
  if (width <= room) return name;
  const letters = Array.from(name); // not in the middle of an emoji
  return `${letters.slice(0, Math.max(1, Math.floor((letters.length * room) / width) - 1)).join("")}…`;
}
