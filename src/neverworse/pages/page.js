// Tables that can be sorted and filtered. Without this script they are plain tables.
"use strict";
(() => {
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const number = cell.querySelector("data");
    return number ? Number(number.value) : cell.textContent;
  };

  // Numbers come before words, so that cells without a number stay together.
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") {
      return Number.isNaN(a) ? 1 : Number.isNaN(b) ? -1 : a - b;
    }
    if (typeof a === "string" && typeof b === "string") return words.compare(a, b);
    return typeof a === "number" ? -1 : 1;
  };

  const sort = (table, heading, column) => {
    const numeric = heading.classList.contains("number");
    const first = numeric ? "descending" : "ascending";
    const second = numeric ? "ascending" : "descending";
    const order = heading.getAttribute("aria-sort") === first ? second : first;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [valueOf(row, column), row]);
    rows.sort((a, b) => sign * compare(a[0], b[0]));
    body.append(...rows.map((pair) => pair[1]));
  };

  const makeSortable = (table) => {
    Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading, column));
      heading.append(button);
    });
  };

  const makeFilter = (box, table) => {
    const rows = Array.from(table.tBodies[0].rows);
    const texts = rows.map((row) => row.textContent.toLocaleLowerCase());
    const label = document.createElement("label");
    const input = document.createElement("input");
    const count = document.createElement("output");
    input.type = "search";
    input.placeholder = "Filter rows";
    input.setAttribute("aria-label", `Filter rows: ${table.getAttribute("aria-label")}`);
    input.addEventListener("input", () => {
      const wanted = input.value.toLocaleLowerCase().split(/\s+/);
      let shown = 0;
      rows.forEach((row, k) => {
        row.hidden = !wanted.every((word) => texts[k].includes(word));
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = input.value ? `${shown} of ${rows.length} rows` : "";
    });
    label.className = "filter";
    label.append(input, count);
    box.before(label);
  };

  for (const box of document.querySelectorAll(".sortable")) {
    const table = box.querySelector("table");
    makeSortable(table);
    if (table.tBodies[0].rows.length > 8) makeFilter(box, table);
  }
  document.documentElement.classList.add("enhanced");
})();
