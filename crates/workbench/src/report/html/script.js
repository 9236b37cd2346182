"use strict";
// Applies the filter of the page, which stands in the address, and sorts tables. The page can be read without it.
const KEYS = ["q", "namespace", "platform", "severity"];
const form = document.getElementById("filter");
const status = form.querySelector("[role=status]");
const main = document.getElementById("main");
document.documentElement.className = "scripted";
let policy = "";

const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
const wanted = () => Object.fromEntries([...KEYS.map((key) => [key, form.elements[key].value]), ["policy", policy]]);

// Everything that is filtered, with its text, which is read when it is first needed. An object in an article is a part of it.
const items = [...main.querySelectorAll("article, li[data-kind], [data-change], tbody tr:not(#matrix tr, [data-change])")].map(
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
    let fits = ["namespace", "platform", "severity", "policy"].every((key) => has(element, key, filter[key], () => textOf(item)));
    fits &&= finds(item);
    if (objects.length) {
      const rest = sought.filter((word) => !headOf(item).includes(word));
      for (const object of objects) {
        const here = fits && (!filter.namespace || namespaceOf(object) === filter.namespace);
        object.element.hidden = !(here && rest.every((word) => textOf(object).includes(word)));
      }
      fits &&= "cut" in element.dataset || objects.some((object) => !object.element.hidden);
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
  // The matrix keeps the policies and namespaces that fit.
  for (const cell of main.querySelectorAll("#matrix [data-namespace]")) {
    cell.hidden = filter.namespace !== "" && cell.dataset.namespace !== filter.namespace;
  }
  for (const row of main.querySelectorAll("#matrix tr[data-policy]")) {
    row.hidden = filter.policy !== "" && row.dataset.policy !== filter.policy;
  }
  const names = { deny: "denials", warn: "warnings", note: "notes" };
  const counts = Object.keys(names).filter((key) => all[key]).map((key) => `${shown[key]} of ${all[key]} ${names[key]}`);
  const only = filter.policy ? `; only of policy ${filter.policy === "-" ? "of the platforms" : filter.policy}` : "";
  status.textContent = Object.values(filter).some(Boolean) ? `Shown: ${counts.join(", ") || "no findings"}${only}` : "";
}

// Keeps the filter in the address.
function keep() {
  const set = Object.entries(wanted()).filter(([, value]) => value);
  history.replaceState(null, "", `${location.href.split("#")[0]}${set.length ? `#${new URLSearchParams(set)}` : ""}`);
}

// Takes the filter out of the address, unless that leads to a part of the page.
function take() {
  if (!location.hash.includes("=")) return false;
  const values = new URLSearchParams(location.hash.slice(1));
  for (const key of KEYS) {
    const field = form.elements[key];
    const value = values.get(key) ?? "";
    if (field.options && ![...field.options].some((option) => option.value === value)) field.add(new Option(value));
    field.value = value;
  }
  policy = values.get("policy") ?? "";
  apply();
  return true;
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
  if (take()) form.scrollIntoView();
});
take();

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
