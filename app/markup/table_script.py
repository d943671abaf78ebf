"""The part of the page's script that sorts, filters and narrows the table of kernels.

Without it the table is whole and in the order of the record. `packed.script` joins it to the script
that unpacks: the page allows one script.
"""

from __future__ import annotations

from typing import Final

__all__ = ["TABLE_SCRIPT"]

TABLE_SCRIPT: Final = """
(() => {
  const start = () => {
    const table = document.querySelector("table.matrix"), tools = document.querySelector(".tools");
    if (!table || !tools) return;
    const body = table.tBodies[0], rows = [...body.rows];
    const cells = [...table.querySelectorAll("[data-g]")];
    const heads = [...table.querySelectorAll("th[data-c]")];
    const text = tools.querySelector("[name=filter]"), wrong = tools.querySelector("[name=wrong]");
    const brief = tools.querySelector("[name=brief]"), count = tools.querySelector("output");
    const filter = () => {
      const words = text.value.toLowerCase().split(/\\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const found = row.textContent.toLowerCase();
        row.hidden = (wrong.checked && !row.classList.contains("wrong")) ||
          !words.every(word => found.includes(word));
        shown += !row.hidden;
        const section = document.getElementById(row.dataset.k);
        if (section) section.hidden = row.hidden;
      }
      count.textContent = shown + " of " + rows.length;
    };
    const narrow = () => {
      table.classList.toggle("brief", brief.checked);
      for (const cell of table.querySelectorAll("[data-all]"))
        cell.colSpan = brief.checked ? cell.dataset.brief : cell.dataset.all;
    };
    const value = (row, key) => {
      const cell = row.querySelector('[data-c="' + key + '"]');
      if (!cell) return [2, 0, ""];
      const shown = cell.textContent.trim(), number = parseFloat(cell.dataset.v);
      if (!isNaN(number)) return [0, number, ""];
      return shown ? [1, 0, shown.toLowerCase()] : [2, 0, ""];
    };
    let sorted = "", turned = false;
    const sort = key => {
      turned = sorted === key && !turned;
      sorted = key;
      const sign = turned ? -1 : 1;
      const keyed = rows.map((row, i) => [value(row, key), i, row]);
      keyed.sort(([a, i], [b, j]) => {
        if (a[0] === 2 || b[0] === 2) return a[0] - b[0] || i - j;
        const order = a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : 0);
        return sign * order || i - j;
      });
      body.append(...keyed.map(([, , row]) => row));
      for (const head of heads) {
        const here = head.dataset.c === key;
        head.setAttribute("aria-sort", here ? (turned ? "descending" : "ascending") : "none");
      }
    };
    for (const head of heads) {
      const button = document.createElement("button");
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(head.dataset.c));
    }
    for (const box of tools.querySelectorAll("[data-backend]"))
      box.addEventListener("change", () => {
        for (const cell of cells) {
          if (cell.dataset.g === box.dataset.backend) cell.hidden = !box.checked;
        }
      });
    text.addEventListener("input", filter);
    wrong.addEventListener("change", filter);
    brief.addEventListener("change", narrow);
    brief.checked = table.scrollWidth > table.parentElement.clientWidth;
    narrow();
    filter();
    tools.hidden = false;
  };
  document.addEventListener("DOMContentLoaded", start);
})();
"""
