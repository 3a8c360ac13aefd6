// What is shown, in the address: `#run=…&timeline=START-END&wait=123&flame=culprit&frame=7&search=x`.
// A view says what it shows with `set`; what a link wants is handed to all views. Hashes without
// `=` are places of the page, and left alone.

const HASH_KEYS = [
  "run", "timeline", "wait", "flame", "lock", "thread", "inverted", "frame", "search",
  "difference-flame", "difference-frame", "difference-search", "difference-before", "difference-after",
];
const HASH_DELAY_MS = 200; // browsers refuse to have the address changed all the time

class HashState {
  constructor(changed) {
    this.values = parsedHash(location.hash);
    this.timer = 0;
    addEventListener("hashchange", () => {
      const values = parsedHash(location.hash);
      if (!values.size) return;
      clearTimeout(this.timer);
      for (const [key, value] of values) this.values.set(key, value);
      changed(values);
    });
  }

  set(key, value) {
    if (value === null || value === "") this.values.delete(key);
    else this.values.set(key, String(value));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.#write(), HASH_DELAY_MS);
  }

  #write() {
    const parts = HASH_KEYS.filter((key) => this.values.has(key))
      .map((key) => `${key}=${encodeURIComponent(this.values.get(key))}`);
    const { hash } = location;
    if (!parts.length && !hash.includes("=")) return; // a place of the page
    try {
      history.replaceState(null, "", parts.length ? `#${parts.join("&")}` : "#");
    } catch { /* a page in a frame without an address */ }
  }
}

// The whole number that a text of an address is, or -1.
function hashNumber(text) { return /^\d{1,15}$/.test(text ?? "") ? Number(text) : -1; }

function parsedHash(hash) {
  const found = new Map();
  for (const part of hash.slice(1).split("&")) {
    const at = part.indexOf("=");
    const key = part.slice(0, at);
    if (at < 0 || !HASH_KEYS.includes(key)) continue;
    try {
      found.set(key, decodeURIComponent(part.slice(at + 1)));
    } catch { /* not an encoded text */ }
  }
  return found;
}
