"use strict";
// Sorts and filters what can be read without it.
const table = document.getElementById("scenarios");
const body = table.tBodies[0];
const value = (row, column) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();

table.querySelectorAll("thead th[data-sort]").forEach((head) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const numbers = head.dataset.sort === "number";
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a, head.cellIndex), value(b, head.cellIndex)];
      return numbers ? Number(x || -1) - Number(y || -1) : x.localeCompare(y);
    });
    body.append(...(up ? rows : rows.reverse()));
  });
});

const filters = document.getElementById("filters");
const text = document.getElementById("filter");
const only = document.getElementById("only");
const status = document.getElementById("shown");
const filter = () => {
  let shown = 0;
  for (const row of body.rows) {
    const fits = row.cells[0].textContent.toLowerCase().includes(text.value.trim().toLowerCase());
    row.hidden = !(fits && (!only.checked || row.dataset.verdict !== "clean"));
    shown += row.hidden ? 0 : 1;
  }
  status.textContent = `${shown} of ${body.rows.length} scenarios`;
};
filters.hidden = false;
filters.addEventListener("input", filter);
filter();

// Where a printer would leave out what is folded.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((it) => { it.open = true; }));
