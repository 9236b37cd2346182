"use strict";
// Adds a filter to each section with `data-filter`, and sorting to each table with `data-sort`. The page can be read
// without it.
for (const section of document.querySelectorAll("[data-filter]")) {
  const items = [...section.querySelectorAll(section.dataset.filter)];
  if (items.length < 5) continue;
  let texts;
  const box = document.createElement("div");
  const label = document.createElement("label");
  const input = document.createElement("input");
  const status = document.createElement("span");
  box.className = "filter";
  input.type = "search";
  input.id = `${section.id}-filter`;
  label.htmlFor = input.id;
  label.textContent = `Filter: ${section.querySelector("h2").textContent}`;
  status.setAttribute("role", "status");
  input.addEventListener("input", () => {
    texts ??= items.map((item) => item.textContent.toLowerCase());
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    items.forEach((item, index) => {
      item.hidden = !words.every((word) => texts[index].includes(word));
      shown += item.hidden ? 0 : 1;
    });
    status.textContent = words.length ? `${shown} of ${items.length} shown` : "";
  });
  box.append(label, input, status);
  (items[0].closest(".scroll") ?? items[0]).before(box);
}
// A long table has several parts, which are sorted as one.
for (const section of document.querySelectorAll("section")) {
  const tables = [...section.querySelectorAll("table[data-sort]")];
  const heads = tables.map((table) => [...table.tHead.rows[0].cells]);
  heads.flat().forEach((head) => {
    const column = head.cellIndex;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads.flat()) other.removeAttribute("aria-sort");
      for (const cells of heads) cells[column].setAttribute("aria-sort", down ? "descending" : "ascending");
      const parts = tables.map((table) => [...table.tBodies[0].rows]);
      const keyed = parts.flat().map((row) => [row.cells[column].textContent, row]);
      const order = new Intl.Collator("en", { numeric: true }).compare;
      keyed.sort(([one], [two]) => (down ? order(two, one) : order(one, two)));
      const rows = keyed.map(([, row]) => row);
      tables.forEach((table, part) => table.tBodies[0].append(...rows.splice(0, parts[part].length)));
    });
  });
}
