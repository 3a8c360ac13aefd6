// The theme button: the system's choice, then light, then dark. The choice is kept if the browser
// lets a local file keep anything.

function setUpTheme(button, changed) {
  const names = ["system", "light", "dark"];
  const set = (name) => {
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
    button.dataset.choice = name;
    try { localStorage.setItem("contention-lab-theme", name); } catch { /* storage is closed */ }
    changed();
  };
  let kept = null;
  try { kept = localStorage.getItem("contention-lab-theme"); } catch { /* storage is closed */ }
  button.addEventListener("click", () => {
    set(names[(names.indexOf(button.dataset.choice) + 1) % names.length]);
  });
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", changed);
  }
  set(names.includes(kept) ? kept : "system");
  button.hidden = false;
}
