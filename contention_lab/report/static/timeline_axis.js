// Marks of time along the top: round moments, as far apart as their labels need.

const TICK_PX = 96;

// Moments between two times in nanoseconds, and their labels.
function timeTicks(from, to, width, whole) {
  const least = ((to - from) * TICK_PX) / Math.max(width, TICK_PX);
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const step = Math.max(1, [1, 2, 5, 10].find((factor) => factor * power >= least) * power);
  const found = [];
  for (let index = Math.ceil(from / step); index * step <= to; index++) {
    found.push([index * step, exactTime(index * step, whole, step)]);
  }
  return found;
}

// A moment in the unit of the whole, with as many digits as steps need.
function exactTime(time, whole, step) {
  const [scale, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([size]) => whole >= size) ?? [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9));
  return (time / scale).toFixed(Math.min(digits, 9)) + THIN + unit;
}
