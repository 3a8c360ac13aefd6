// Buttons that copy text, and what has no better way to be copied: what stands in a part of the page.

const TOLD_MS = 1500;

function copyButton(text, label, title = "Copy") {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small";
  button.textContent = title;
  button.ariaLabel = label;
  button.addEventListener("click", async () => {
    button.textContent = await copied(text()) ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = title; }, TOLD_MS);
  });
  return button;
}

async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* a page from a disk may not, in some browsers */ }
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

// A button that copies the verdict, what led to it and what to do, as they are read.
function setUpVerdictCopy() {
  const verdict = document.querySelector(".verdict");
  if (!verdict) return;
  const parts = [verdict, ...document.querySelectorAll("main > .meaning")];
  const button = copyButton(() => {
    const buttons = parts.flatMap((part) => Array.from(part.querySelectorAll("button")));
    for (const one of buttons) one.hidden = true; // else they would be part of the text
    const text = parts.map((part) => part.innerText.replace(/\n{3,}/g, "\n\n").trim()).join("\n\n");
    for (const one of buttons) one.hidden = false;
    return `${text}\n`;
  }, "Copy the verdict as text", "Copy as text");
  const item = document.createElement("p");
  item.className = "tools-line";
  item.append(button);
  verdict.append(item);
}
