// Where each written token looked among those that were read: a heat map with tokens on its axes.

import { across, cellFor, down } from "./axis.js";
import { cellAt, cells, moved, reveal } from "./cells.js";
import { element, svg, visible } from "./dom.js";
import { fitted, fixed, follow, named, numbersTable, reading, sayingLine } from "./figure.js";

const WIDEST = 36; // pixels of a cell
const NAMES = 68; // pixels: the corner has room for its words
const MOST = 3; // tokens that are named where one is pointed at

export function draw(place, numbers) {
  const { source, target, weights } = numbers;
  const line = sayingLine("Point at a cell or at a token; with the keyboard, arrows move over the cells.");
  const view = element("div", { class: "view attention" });
  place.append(view);
  view.append(
    reading(
      "Rows are what was written, columns what was read; ∎ is the end.",
      "The stronger a cell, the more it looked there.",
    ),
  );
  fitted(view, (width) => heatMap(numbers, width, line));
  view.append(
    line.node,
    element("div", { class: "below" }, copyButton(numbers)),
    numbersTable("All weights as numbers", ["", ...source.map(visible)], () =>
      target.map((token, row) => [visible(token), ...weights[row].map((weight) => fixed(weight))]),
    ),
  );
}

function heatMap({ source, target, weights }, width, line) {
  const rows = target.length;
  const columns = source.length;
  const most = Math.max(60, width * 0.3);
  const cell = cellFor(source, width - Math.max(NAMES, down(target, WIDEST, most).width), WIDEST);
  const beside = down(target, cell, most);
  const above = across(source, cell);
  const marks = ["band", "band", "mark"].map((name) => svg("rect", { class: name, visibility: "hidden" }));
  const size = { width: columns * cell, height: rows * cell };
  const grid = svg(
    "svg",
    { class: "grid", role: "img", "aria-label": inWords({ source, target, weights }), ...size },
    svg("rect", { class: "back", ...size }),
    cells(weights, { width: cell, height: cell, gap: cell > 15 ? 2 : 1 }),
    marks,
  );
  const aside = Math.max(beside.width, NAMES);
  const names = ["read →", "written ↓"].map((name) => element("span", {}, name));
  const corner = element("div", { class: "corner", "aria-hidden": "true" }, names);
  const inside = element("div", { class: "inside" }, corner, above.node, beside.node, grid);
  inside.style.gridTemplateColumns = `${aside}px max-content`;
  const map = element(
    "div",
    {
      class: "map scrolled",
      tabindex: "0",
      role: "application",
      "aria-label": `Heat map of ${rows} by ${columns} tokens. Arrow keys move over its cells.`,
    },
    inside,
  );

  /** Marks a cell; a row or column of -1 stands for the token at the other end. */
  function point(row, column) {
    const isCell = row >= 0 && column >= 0;
    put(marks[0], row >= 0 && { x: 0, y: row * cell, width: size.width, height: cell });
    put(marks[1], column >= 0 && { x: column * cell, y: 0, width: cell, height: size.height });
    put(marks[2], isCell && { x: column * cell, y: row * cell, width: cell, height: cell });
    above.labels.forEach((label, n) => lit(label, n === column, column < 0 && weights[row][n]));
    beside.labels.forEach((label, n) => lit(label, n === row, row < 0 && weights[n][column]));
    line.say(...said(row, column));
  }

  function rest() {
    for (const mark of marks) put(mark, false);
    for (const label of [...above.labels, ...beside.labels]) lit(label, false, false);
    line.rest();
  }

  function said(row, column) {
    if (column < 0) return [named(target[row]), " looked at ", ...listed(source, weights[row])];
    const of = weights.map((each) => each[column]);
    if (row < 0) return [named(source[column]), " was looked at by ", ...listed(target, of)];
    return [named(target[row]), " ← ", named(source[column]), `: ${fixed(of[row], 2)}`];
  }

  let cursor = { row: 0, column: 0 };
  const bounds = { top: -1, left: -1, bottom: rows - 1, right: columns - 1 };

  function pointed(event) {
    const label = event.target.closest?.(".label");
    const at = Number(label?.dataset.place);
    if (label) return beside.node.contains(label) ? point(at, -1) : point(-1, at);
    const found = cellAt(grid, event, { width: cell, height: cell, rows, columns });
    if (found === null || !grid.contains(event.target)) return rest();
    cursor = found;
    return point(found.row, found.column);
  }

  function pressed(event) {
    if (event.key === "Escape") return rest();
    let to = moved(event, cursor, bounds);
    if (to === null) return undefined;
    if (to.row < 0 && to.column < 0) to = cursor; // the corner is no token
    cursor = to;
    const corner = { left: aside + to.column * cell, top: above.height + to.row * cell };
    reveal(map, { ...corner, width: cell, height: cell }, { aside, above: above.height });
    return point(to.row, to.column);
  }

  follow(inside, { over: pointed, leave: rest, holder: map });
  map.addEventListener("keydown", pressed);
  map.addEventListener("focus", () => map.matches(":focus-visible") && point(cursor.row, cursor.column));
  map.addEventListener("blur", rest);
  return map;
}

function put(mark, box) {
  mark.setAttribute("visibility", box ? "visible" : "hidden");
  for (const [name, value] of Object.entries(box || {})) mark.setAttribute(name, value);
}

/** A token stands out where it is pointed at, and is lit by the share that it gave or got. */
function lit(label, isPointed, share) {
  label.classList.toggle("pointed", isPointed);
  label.style.setProperty("--share", share === false ? 0 : share);
}

function listed(tokens, weights) {
  const strongest = weights.map((weight, n) => ({ weight, n })).sort((one, other) => other.weight - one.weight);
  return strongest
    .slice(0, MOST)
    .flatMap(({ weight, n }, place) => [place ? ", " : "", named(tokens[n]), ` ${fixed(weight, 2)}`]);
}

const strongestOf = (weights) => weights.indexOf(Math.max(...weights));

function inWords({ source, target, weights }) {
  const most = (row) => visible(source[strongestOf(weights[row])]);
  const each = target.slice(0, 40).map((token, row) => `${visible(token)} looked most at ${most(row)}`);
  return `Attention: ${each.join(", ")}${target.length > 40 ? " and so on" : ""}.`;
}

/** Links source-target, counted from 0, of each target token to where it looked most; ends are left out. */
export function pharaoh({ source, target, weights }) {
  const withoutEnd = (tokens) => tokens.length - (tokens.at(-1) === "</s>");
  const rows = weights.slice(0, withoutEnd(target)).map((row) => row.slice(0, withoutEnd(source)));
  return rows.flatMap((row, n) => (row.some((weight) => weight > 0) ? [`${strongestOf(row)}-${n}`] : [])).join(" ");
}

function copyButton(numbers) {
  const links = pharaoh(numbers);
  const note = element("output", { class: "links" });
  const copy = async () => {
    const isCopied = await navigator.clipboard.writeText(links).then(() => true, () => false);
    note.textContent = isCopied ? `copied: ${links}` : links;
  };
  const title = "The strongest link of each written token, as source-target counted from 0";
  return [element("button", { type: "button", title, onclick: copy }, "Copy as Pharaoh"), note];
}
