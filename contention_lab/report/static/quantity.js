// Figures as people read them: the same words as quantity.py.

const THIN = "\u202f";

function threeDigits(value) {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

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
