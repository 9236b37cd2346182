"use strict";
// Applies the filter of the page, which stands in the address, and sorts tables. The page can be read without it.
const KEYS = ["q", "namespace", "platform", "severity"];
const FACETS = ["namespace", "platform", "severity", "policy"];
const form = document.getElementById("filter");
const status = form.querySelector("[role=status]");
const main = document.getElementById("main");
document.documentElement.className = "scripted";
let policy = "";

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
const wanted = () => Object.fromEntries([...KEYS.map((key) => [key, form.elements[key].value]), ["policy", policy]]);

// Everything that is filtered, with its text, which is read when it is first needed. An object in an article is a part of it.
const items = [...main.querySelectorAll("article, li[data-kind], [data-change], #assumed li, #errors .finding, tbody tr:not(#matrix tr, [data-change])")].map(
  (element) => ({ element, objects: [...element.querySelectorAll("li[data-object]")].map((element) => ({ element })) }),
);
// A picture stays: it shows where what fits belongs.
const parts = [...main.querySelectorAll("section")]
  .filter((section) => !section.querySelector("svg"))
  .map((section) => [section, items.filter(({ element }) => section.contains(element))])
  .filter(([, own]) => own.length);
const textOf = (item) => (item.text ??= item.element.textContent.toLowerCase());
const headOf = (item) => (item.head ??= [...item.element.children].filter((it) => it.localName !== "details").map((it) => it.textContent).join(" ").toLowerCase());
// The namespace in the name of an object; of a Namespace its own name.
const namespaceOf = ({ element }) => {
  const [kind, ...rest] = element.dataset.object.split(" ");
  const [name, ...others] = rest.join("_").split("/");
  return others.length || kind === "Namespace" ? name : "-";
};

// Whether an attribute with words has one. An element without the attribute has them all, but a row of a table has the
// namespaces that are in its text.
function has(element, key, value, text) {
  const known = element.dataset[key];
  if (!value || "cut" in element.dataset && key === "namespace") return true;
  if (known !== undefined) return known.split(" ").includes(value) || (value === "-" && known === "");
  return key !== "namespace" || element.localName !== "tr" || text().split(/[^\w.-]+/).includes(value);
}

function apply() {
  const filter = wanted();
  const sought = words(filter.q);
  const finds = (item) => sought.every((word) => textOf(item).includes(word));
  const [all, shown] = [{}, {}];
  for (const item of items) {
    const { element, objects } = item;
    let fits = FACETS.every((key) => has(element, key, filter[key], () => textOf(item)));
    fits &&= finds(item);
    if (objects.length) {
      const rest = sought.filter((word) => !headOf(item).includes(word));
      for (const object of objects) {
        const here = fits && (!filter.namespace || namespaceOf(object) === filter.namespace);
        object.element.hidden = !(here && rest.every((word) => textOf(object).includes(word)));
      }
      fits &&= "cutList" in element.dataset || objects.some((object) => !object.element.hidden);
    }
    element.hidden = !fits;
    if (element.localName === "article") {
      all[element.dataset.severity] = (all[element.dataset.severity] ?? 0) + 1;
      shown[element.dataset.severity] = (shown[element.dataset.severity] ?? 0) + (fits ? 1 : 0);
    }
  }
  // A part of which nothing fits is hidden with its heading.
  for (const [section, own] of parts) {
    section.hidden = own.every((item) => item.element.hidden);
  }
  // The matrix keeps the policies and namespaces of which a number fits, and in them the numbers that fit.
  const filled = (cell) => cell.dataset.count !== "0";
  for (const table of main.querySelectorAll("#matrix table")) {
    const [head, ...rows] = table.rows;
    const cells = rows.map((row) => [...row.cells].slice(1));
    const fitting = new Set(cells.flat().filter((cell) => FACETS.every((key) => has(cell, key, filter[key]))));
    const keeps = (all) => FACETS.every((key) => !filter[key]) || all.some((cell) => fitting.has(cell) && filled(cell));
    rows.forEach((row, number) => (row.hidden = !keeps(cells[number])));
    [...head.cells].slice(1).forEach((th, column) => {
      const all = cells.map((row) => row[column]);
      th.hidden = !keeps(all);
      for (const cell of all) {
        cell.hidden = th.hidden || (filled(cell) && !fitting.has(cell));
        cell.classList.toggle("kept", cell.hidden && !th.hidden);
      }
    });
    table.closest("section").hidden = rows.every((row) => row.hidden);
  }
  const names = { deny: "denials", warn: "warnings", note: "notes" };
  const counts = Object.keys(names).filter((key) => all[key]).map((key) => `${shown[key]} of ${all[key]} ${names[key]}`);
  const policies = filter.policy === "-" ? "; only rules of the platforms" : `; only of policy ${filter.policy}`;
  const only = filter.policy ? policies : "";
  status.textContent = Object.values(filter).some(Boolean) ? `Shown: ${counts.join(", ") || "no findings"}${only}` : "";
}

const leadsToPart = () => location.hash.length > 1 && document.getElementById(location.hash.slice(1)) !== null;

// Keeps the filter in the address. Its entry in the history is marked as seen.
function keep() {
  const set = Object.entries(wanted()).filter(([, value]) => value);
  const rest = leadsToPart() ? location.hash : "";
  history.replaceState("seen", "", location.href.split("#")[0] + (set.length ? `#${new URLSearchParams(set)}` : rest));
}

// Takes the filter out of the address. One that leads to a part of the page, or has lost its filter, has none.
function take() {
  const values = new URLSearchParams(leadsToPart() ? "" : location.hash.slice(1));
  for (const key of KEYS) {
    const field = form.elements[key];
    const value = values.get(key) ?? "";
    if (field.options && ![...field.options].some((option) => option.value === value)) field.add(new Option(value));
    field.value = value;
  }
  policy = values.get("policy") ?? "";
  apply();
}

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  apply();
  keep();
});
form.addEventListener("reset", (event) => {
  event.preventDefault();
  for (const key of KEYS) form.elements[key].value = "";
  policy = "";
  apply();
  keep();
});
addEventListener("hashchange", () => {
  const [isNew, toPart] = [history.state === null, leadsToPart()];
  // On the way to a part the filter stays. What was seen before is as it was there.
  if (isNew && toPart) return keep();
  take();
  history.replaceState("seen", "");
  if (isNew && location.hash.includes("=")) (main.querySelector("article:not([hidden])") ?? form).scrollIntoView();
});
take();
history.replaceState("seen", "");

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
