// What is read out of a timeline, in words.

class TimelineWords {
  constructor(model) { this.model = model; }

  frame(index) {
    if (index < 0) return "";
    const [name, file, line] = this.model.frames[index];
    return file ? `${name} (${file}:${line})` : name;
  }

  thread(index) { return this.model.data.threads[index] ?? "a thread"; }

  lock(index) { return index < 0 ? "a lock" : `“${this.model.data.locks[index][0]}”`; }

  moment(time) { return `at ${exactTime(time, this.model.length, 1000)}`; }

  waits(at) {
    const { waits, waitContext } = this.model;
    const context = waits.context[at];
    const site = this.frame(waitContext.site[context]);
    const kind = waits.kind[at];
    const lock = this.lock(waitContext.lock[context]);
    const what = {
      [GIL]: "for the GIL", [COORDINATION]: `for others, at ${lock},`, [NATIVE]: `in native code for ${lock}`,
    }[kind] ?? `for ${lock}`;
    const who = this.thread(waits.row[at]);
    const parts = [];
    if (waits.count[at] > 1) {
      parts.push(`${who}: ${grouped(waits.count[at])} waits ${this.moment(waits.start[at])}, ` +
        `${seconds(waits.busy[at])} in all, the longest ${what}`);
    } else {
      const how = kind === SPINNING ? " spinning" : "";
      parts.push(`${who} waited ${seconds(waits.busy[at])}${how} ${what} ${this.moment(waits.start[at])}`);
    }
    if (site) parts[0] += `, in ${site}`;
    const isKnown = kind !== NATIVE || waitContext.holder[context] >= 0;
    if (kind !== COORDINATION && isKnown) parts.push(this.#culprit(context));
    return parts.filter(Boolean).join(" · ");
  }

  #culprit(context) {
    const { waitContext } = this.model;
    const holder = waitContext.holder[context];
    if (holder < 0) return waitContext.lock[context] < 0 ? "" : "nobody is known to have held it for most of the time";
    const heldAt = this.frame(waitContext.heldAt[context]);
    const doing = this.frame(waitContext.doing[context]);
    if (waitContext.lock[context] < 0) return `${this.thread(holder)} had it`; // the GIL
    const text = `${this.thread(holder)} had it longest`;
    const verb = waitContext.letGo[context] ? "let it go" : "was";
    return text + (heldAt ? `, taken in ${heldAt}` : "") + (doing ? `, and ${verb} in ${doing}` : "");
  }

  holds(at) {
    const { holds, holdContext } = this.model;
    const context = holds.context[at];
    const [start, end] = this.model.wholeHold(at);
    const site = this.frame(holdContext.site[context]);
    const call = holdContext.call[context];
    const lock = this.lock(holdContext.lock[context]);
    const who = this.thread(holds.row[at]);
    const parts = [holds.count[at] > 1
      ? `${who}: ${grouped(holds.count[at])} holds ${this.moment(holds.start[at])}, ` +
        `${seconds(holds.busy[at])} in all, the longest of ${lock}`
      : `${who} held ${lock} for ${seconds(end - start)} ${this.moment(start)}`];
    if (site) parts[0] += `, taken in ${site}`;
    if (call >= 0) parts.push(`it was blocked in ${this.model.data.calls[call]} meanwhile`);
    if (holds.kind[at] === WAITED_FOR) parts.push("others waited for it");
    return parts.join(" · ");
  }

  // What a chain of waits comes to.
  root(chain) {
    const hops = Math.floor(chain.length / 2) - 1;
    const last = chain.at(-1);
    if (chain.length % 2) return `${this.waits(last)} · nobody is known to have held it`;
    const head = hops > 0 ? `Root, ${counted(hops, "wait")} further` : "Root";
    return `${head}: ${this.holds(last)} · its thread waited for no other lock meanwhile`;
  }
}
