// Figures as people read them: the same words as quantity.py.

const THIN = "\u202f";

function threeDigits(value) {
  if (value === 0) return "0";
  return Math.abs(value) < 999.5 ? value.toPrecision(3) : grouped(value.toFixed(0));
}

// A whole number with thousands separated; much quicker than by locale.
function grouped(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, ","); }

function counted(number, noun) { return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`; }

function seconds(nanoseconds) {
  if (nanoseconds === 0) return `0${THIN}s`;
  for (const [scale, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]) {
    if (nanoseconds >= scale * 0.9995 || unit === "ns") return threeDigits(nanoseconds / scale) + THIN + unit;
  }
}

function share(part, whole) {
  if (!whole) return "–";
  const percent = (part / whole) * 100;
  if (percent === 0) return `0${THIN}%`;
  if (percent < 0.1) return `<0.1${THIN}%`;
  return percent.toFixed(percent >= 9.95 ? 0 : 1) + THIN + "%";
}
