// Tables that sort by a click on a column's head, filter by words, and copy as text. Without it they
// stay in their first order.

const FILTERED_ROWS = 5; // fewer can be read at a glance

function setUpTable(table) {
  const { rows } = table.tBodies[0];
  const region = table.closest(".scroll") ?? table;
  const label = region.getAttribute("aria-label") ?? "the table";
  const tools = document.createElement("div");
  tools.className = "table-tools";
  tools.role = "group";
  tools.ariaLabel = `Tools of: ${label}`;
  if (rows.length >= FILTERED_ROWS) tools.append(...filterOf(rows, label));
  tools.append(copyButton(() => tableText(table), `Copy as text: ${label}`));
  region.before(tools);
  if (table.classList.contains("sortable")) makeSortable(table);
}

function makeSortable(table) {
  const heads = Array.from(Array.from(table.tHead.rows).at(-1).cells);
  heads.forEach((head, column) => {
    if (head.dataset.sort === "no") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      sortRows(table.tBodies[0], column, descending);
    });
  });
}

function sortRows(body, column, descending) {
  const keyed = Array.from(body.rows, (row) => [sortKey(row.cells[column]), row]);
  keyed.sort(([one], [other]) => {
    const order = typeof one === "number" && typeof other === "number"
      ? one - other : String(one).localeCompare(String(other), "en");
    return descending ? -order : order;
  });
  body.append(...keyed.map(([, row]) => row));
}

function sortKey(cell) {
  const { value } = cell.dataset;
  return value === undefined ? cell.textContent.trim() : Number(value);
}

// A field that hides the rows without all of its words, and the number of those that are left.
function filterOf(rows, label) {
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "Filter rows";
  field.ariaLabel = `Filter rows of: ${label}`;
  field.autocomplete = "off";
  field.spellcheck = false;
  const said = document.createElement("output");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) left++;
    }
    said.textContent = words.length ? `${left} of ${rows.length} rows` : "";
  };
  field.addEventListener("input", filter);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    field.value = "";
    filter();
    event.preventDefault();
  });
  return [field, said];
}

// The rows in view, cells parted by tabs.
function tableText(table) {
  const lines = [];
  for (const row of table.rows) {
    if (row.hidden) continue;
    const cells = [];
    for (const cell of row.cells) {
      cells.push(cellText(cell));
      for (let i = 1; i < cell.colSpan; i++) cells.push("");
    }
    lines.push(cells.join("\t"));
  }
  return `${lines.join("\n")}\n`;
}

function cellText(cell) {
  const parts = [];
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) parts.push(walker.currentNode.data.trim());
  return parts.filter(Boolean).join(" ").replace(/\s+/g, " ");
}
