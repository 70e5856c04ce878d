// A matrix with names at its rows and columns: a heat map of which cells, rows and columns are pointed at.

import { across, cellFor, down } from "./axis.js";
import { cellAt, cells, moved, reveal } from "./cells.js";
import { element, svg, visible } from "./dom.js";
import { fitted, fixed, follow, named, numbersTable, reading, sayingLine, signed } from "./figure.js";

const WIDEST = 36; // pixels of a cell
const LETTER = 6.5; // pixels, about, of a letter in the corner
const NAMES = 68; // pixels of the corner, at least
const MOST = 3; // names that are said where a row or a column is pointed at

export function draw(place, numbers) {
  const { rows, columns, weights, about } = numbers;
  const line = sayingLine("Point at a cell or at a name; with the keyboard, arrows move over the cells.");
  const view = element("div", { class: "view heat-map" });
  const say = saying(numbers);
  place.append(view);
  view.append(reading(about, "The stronger a cell, the larger its weight."));
  fitted(view, (width) => heatMap(numbers, width, line));
  view.append(line.node);
  if (numbers.pharaoh) view.append(element("div", { class: "below" }, copyButton(numbers.pharaoh)));
  view.append(
    numbersTable("All weights as numbers", ["", ...columns.map(visible)], () =>
      rows.map((name, row) => [visible(name), ...weights[row].map((weight) => say(weight, 3))]),
    ),
  );
}

/** How weights are said: counts are whole numbers, and what may be below 0 has its sign. */
function saying({ weights, signed: isSigned }) {
  const all = weights.flat();
  const isCount = all.some((weight) => Math.abs(weight) > 1) && all.every(Number.isInteger);
  return (weight, digits = 2) => (isCount ? String(weight) : isSigned ? signed(weight, digits) : fixed(weight, digits));
}

/** How strong the colour of each cell is, from -1 to 1. */
function strengthsOf({ weights, signed: isSigned }) {
  const largest = weights.reduce((most, row) => Math.max(most, ...row.map(Math.abs)), 0);
  const full = isSigned && largest ? largest : Math.max(1, largest);
  return weights.map((row) => row.map((weight) => weight / full));
}

function heatMap(numbers, width, line) {
  const { rows: target, columns: source, weights } = numbers;
  const rows = target.length;
  const columns = source.length;
  const strengths = strengthsOf(numbers);
  const say = saying(numbers);
  const most = Math.max(60, width * 0.3);
  const words = [numbers.across && `${numbers.across} →`, numbers.down && `${numbers.down} ↓`];
  const room = Math.max(NAMES, ...words.map((name) => (name ? 10 + LETTER * name.length : 0))); // for the corner's words
  const cell = cellFor(source, width - Math.max(room, down(target, WIDEST, most).width), WIDEST);
  const beside = down(target, cell, most);
  const above = across(source, cell);
  const marks = ["band", "band", "mark"].map((name) => svg("rect", { class: name, visibility: "hidden" }));
  const size = { width: columns * cell, height: rows * cell };
  const grid = svg(
    "svg",
    { class: "grid", role: "img", "aria-label": inWords(numbers), ...size },
    svg("rect", { class: "back", ...size }),
    cells(strengths, { width: cell, height: cell, gap: cell > 15 ? 2 : 1 }),
    marks,
  );
  const aside = Math.max(beside.width, room);
  const names = words.map((name) => element("span", {}, name));
  const corner = element("div", { class: "corner", "aria-hidden": "true" }, names);
  const inside = element("div", { class: "inside" }, corner, above.node, beside.node, grid);
  inside.style.gridTemplateColumns = `${aside}px max-content`;
  const map = element(
    "div",
    {
      class: "map scrolled",
      tabindex: "0",
      role: "application",
      "aria-label": `Heat map of ${rows} by ${columns}. Arrow keys move over its cells.`,
    },
    inside,
  );

  /** Marks a cell; a row or column of -1 stands for the token at the other end. */
  function point(row, column) {
    const isCell = row >= 0 && column >= 0;
    put(marks[0], row >= 0 && { x: 0, y: row * cell, width: size.width, height: cell });
    put(marks[1], column >= 0 && { x: column * cell, y: 0, width: cell, height: size.height });
    put(marks[2], isCell && { x: column * cell, y: row * cell, width: cell, height: cell });
    above.labels.forEach((label, n) => lit(label, n === column, column < 0 && Math.abs(strengths[row][n])));
    beside.labels.forEach((label, n) => lit(label, n === row, row < 0 && Math.abs(strengths[n][column])));
    line.say(...said(row, column));
  }

  function rest() {
    for (const mark of marks) put(mark, false);
    for (const label of [...above.labels, ...beside.labels]) lit(label, false, false);
    line.rest();
  }

  function said(row, column) {
    const does = (verb) => (verb ? ` ${verb} ` : ": ");
    if (column < 0) return [named(target[row]), does(numbers.of_row), ...listed(source, weights[row], say)];
    const of = weights.map((each) => each[column]);
    if (row < 0) return [named(source[column]), does(numbers.of_column), ...listed(target, of, say)];
    return [named(target[row]), " ← ", named(source[column]), `: ${say(of[row])}`];
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

function listed(names, weights, say) {
  const strongest = weights.map((weight, n) => ({ weight, n }));
  strongest.sort((one, other) => Math.abs(other.weight) - Math.abs(one.weight));
  return strongest
    .slice(0, MOST)
    .flatMap(({ weight, n }, place) => [place ? ", " : "", named(names[n]), ` ${say(weight)}`]);
}

function inWords({ title, rows, columns, weights, of_row: verb }) {
  const strongest = (row) => row.indexOf(row.reduce((one, other) => (Math.abs(other) > Math.abs(one) ? other : one)));
  const most = (row) => visible(columns[strongest(weights[row])]);
  const each = rows.slice(0, 40).map((name, row) => `${visible(name)} ${verb || "has"} most: ${most(row)}`);
  return `${title || "Heat map"}: ${each.join(", ")}${rows.length > 40 ? " and so on" : ""}.`;
}

function copyButton(links) {
  const note = element("output", { class: "links" });
  const copy = async () => {
    const isCopied = await navigator.clipboard.writeText(links).then(() => true, () => false);
    note.textContent = isCopied ? `copied: ${links}` : links;
  };
  const title = "The strongest link of each written token, as source-target counted from 0";
  return [element("button", { type: "button", title, onclick: copy }, "Copy as Pharaoh"), note];
}
