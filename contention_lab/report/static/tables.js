// Tables that sort by a click on a column's head. Without it they stay in their first order.

function makeSortable(table) {
  const heads = Array.from(table.tHead.rows[0].cells);
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
