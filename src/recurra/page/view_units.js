// Every named value of every step: for each name a strip with the mean as a curve and, below it, a line for each unit.

import { across, cellFor } from "./axis.js";
import { cellAt, cells, moved, reveal } from "./cells.js";
import { element, svg, visible } from "./dom.js";
import { fitted, fixed, follow, named, numbersTable, reading, sayingLine } from "./figure.js";

const WIDEST = 34; // pixels of a step, by which it is decided how many strips stand side by side
const WIDENED = 160; // of a step, so that they fill the width
const UNIT = 7; // pixels of a unit
const CURVE = 38;
const GUTTER = 44; // beside a strip, for what its parts are
const GAP = 28; // between strips that stand side by side
const LEAST_STRIP = 150;

/** What the names of the two best-known cells stand for; other cells have names of their own. */
const ABOUT = {
  h: "output",
  c: "cell state",
  i: "input gate",
  f: "forget gate",
  o: "output gate",
  z: "update gate",
  r: "reset gate",
};

export function draw(place, numbers, context) {
  const { tokens, values, about } = numbers;
  const names = Object.keys(values);
  const view = element("div", { class: "view units" });
  const line = readout(names);
  place.append(view);
  view.append(
    choices(numbers, context),
    reading(about),
  );
  fitted(view, (width) => strips(numbers, width, line));
  view.append(
    line.node,
    numbersTable("Means as numbers", ["token", ...names], () =>
      tokens.map((token, step) => [visible(token), ...names.map((name) => fixed(values[name].means[step]))]),
    ),
  );
}

function choices({ caption, layer, layers, direction, directions }, { change }) {
  const picker = (label, options, chosen, onchoose) =>
    element(
      "label",
      {},
      `${label} `,
      element(
        "select",
        { onchange: (event) => onchoose(event.target.value) },
        options.map((each) => element("option", { value: each, selected: each === chosen }, String(each))),
      ),
    );
  const numbers = Array.from({ length: layers }, (_, n) => n + 1);
  return element(
    "div",
    { class: "choices" },
    element("span", { class: "summary" }, caption),
    layers > 1 && picker("Layer", numbers, layer, (to) => change({ layer: Number(to), direction })),
    directions.length > 1 && picker("Direction", directions, direction, (to) => change({ layer, direction: to })),
  );
}

/** Beneath the strips: of the step and the unit that are pointed at the value of every name. */
function readout(names) {
  const said = sayingLine("Point at a step; with the keyboard, arrows move over steps and units.");
  const figures = new Map(names.map((name) => [name, element("dd", {}, "–")]));
  const list = element("dl", {}, names.map((name) => element("div", {}, element("dt", {}, name), figures.get(name))));
  return {
    node: element("div", { class: "readout" }, said.node, list),
    say(parts, found) {
      said.say(...parts);
      for (const [name, node] of figures) node.textContent = fixed(found[name]);
    },
    rest() {
      said.rest();
      for (const node of figures.values()) node.textContent = "–";
    },
  };
}

function strips({ title, caption, tokens, values }, width, line) {
  const names = Object.keys(values);
  const steps = tokens.length;
  const usual = cellFor(tokens, width - GUTTER, WIDEST);
  const wide = Math.max(LEAST_STRIP, across(tokens, usual).width);
  const fitting = Math.max(1, Math.min(names.length, Math.floor((width + GAP) / (wide + GUTTER + GAP))));
  const aRow = Math.ceil(names.length / Math.ceil(names.length / fitting)); // rows of about as many
  const room = Math.floor((width + GAP) / aRow) - GAP - GUTTER;
  const cell = Math.max(usual, cellFor(tokens, room, WIDENED));
  const panels = names.map((name) => strip(name, values[name], tokens, cell, /lstm|gru/i.test(caption)));
  const about = { class: "strips", role: "img", "aria-label": inWords(title, tokens, values) };
  const inside = element("div", about, panels.map((each) => each.node));
  inside.style.gridTemplateColumns = `repeat(${aRow}, max-content)`;
  const figure = element(
    "div",
    {
      class: "scrolled figure",
      tabindex: "0",
      role: "application",
      "aria-label": `${title || "Units"}. Arrow keys move over steps and units.`,
    },
    inside,
  );
  const most = Math.max(...panels.map((each) => each.units.length));
  const bounds = { top: -1, left: 0, bottom: most - 1, right: steps - 1 };
  let cursor = { row: -1, column: 0 };

  /** A row of -1 is the mean. All names that have the unit say what they had then. */
  function point({ row, column }, units) {
    const unit = row < 0 ? null : units[row];
    const found = {};
    for (const panel of panels) {
      const at = unit === null ? -1 : panel.units.indexOf(unit);
      panel.mark(column, at);
      found[panel.name] = unit === null ? panel.means[column] : at < 0 ? null : panel.rows[at][column];
    }
    const what = unit === null ? "mean over all units" : `unit ${unit}`;
    line.say([named(tokens[column]), `, step ${column + 1} of ${steps}: ${what}`], found);
  }

  function rest() {
    for (const panel of panels) panel.mark(-1, -1);
    line.rest();
  }

  function pointed(event) {
    const panel = panels.find((each) => each.picture.contains(event.target));
    const found = panel?.at(event);
    if (!found) return;
    cursor = found;
    point(found, panel.units);
  }

  follow(inside, { over: pointed, leave: rest, holder: figure });
  figure.addEventListener("blur", rest);
  figure.addEventListener("focus", () => figure.matches(":focus-visible") && point(cursor, panels[0].units));
  figure.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return rest();
    const to = moved(event, cursor, bounds);
    if (to === null) return undefined;
    cursor = to;
    const left = GUTTER + to.column * cell;
    if (aRow === 1) reveal(figure, { left, top: 0, width: cell, height: 0 }, { aside: GUTTER });
    return point(to, panels[0].units);
  });
  return figure;
}

/** The strip of one name, and what is at a point of it. */
function strip(name, { means, units, rows }, tokens, cell, isKnown) {
  const limit = limitOf(rows);
  const least = rows.some((row) => row.some((value) => value < 0)) || means.some((mean) => mean < 0) ? -limit : 0;
  const above = across(tokens, cell);
  const size = { width: cell * tokens.length, height: CURVE + UNIT * units.length };
  const share = (value) => (Math.min(limit, Math.max(least, value)) - least) / (limit - least);
  const height = (value) => CURVE - 3 - share(value) * (CURVE - 6);
  const points = means.map((mean, step) => `${(step + 0.5) * cell} ${height(mean).toFixed(1)}`);
  const curve = points.length > 1 ? `M${points.join("L")}` : `M0 ${height(means[0])}H${cell}`;
  const marks = ["column", "unit"].map((kind) => svg("rect", { class: `band ${kind}`, visibility: "hidden" }));
  const drawn = cells(rows.map((row) => row.map((value) => value / limit)), { width: cell, height: UNIT });
  drawn.setAttribute("transform", `translate(0 ${CURVE})`);
  const picture = svg(
    "svg",
    { ...size },
    svg("rect", { class: "back", ...size }),
    svg("path", { class: "zero", d: `M0 ${height(0)}H${size.width}` }),
    svg("path", { class: "mean", d: curve }),
    drawn,
    marks,
  );
  const range = element("span", { class: "range" }, `${rounded(least)} to ${rounded(limit)}`);
  const about = isKnown && ABOUT[name] ? ` ${ABOUT[name]}` : "";
  const parts = ["mean", "units"].map((part) => element("span", {}, part));
  const beside = element("div", { class: "gutter", "aria-hidden": "true" }, parts);
  beside.style.height = `${size.height}px`;
  beside.style.setProperty("--curve", `${CURVE}px`);
  const node = element(
    "div",
    { class: "strip" },
    element("p", { class: "name" }, element("b", {}, name), about, range),
    above.node,
    beside,
    picture,
  );
  node.style.gridTemplateColumns = `${GUTTER}px max-content`;

  function mark(column, row) {
    const put = (which, isThere, box) => {
      which.setAttribute("visibility", isThere ? "visible" : "hidden");
      for (const [key, value] of Object.entries(box)) which.setAttribute(key, value);
    };
    put(marks[0], column >= 0, { x: column * cell, y: 0, width: cell, height: size.height });
    put(marks[1], row >= 0, { x: 0, y: CURVE + row * UNIT, width: size.width, height: UNIT });
  }

  function at(event) {
    const found = cellAt(picture, event, { width: cell, height: 1, rows: size.height, columns: tokens.length });
    return found && { row: Math.max(-1, Math.floor((found.row - CURVE) / UNIT)), column: found.column };
  }

  return { name, node, picture, units, means, rows, mark, at };
}

const rounded = (number) => fixed(number, number % 1 ? 1 : 0);

/** What the strongest colour stands for: 1, or more where values that large are not rare. */
function limitOf(rows) {
  const sizes = rows.flat().map(Math.abs).sort((one, other) => one - other);
  return Math.max(1, sizes[Math.floor(0.95 * (sizes.length - 1))] ?? 1);
}

function inWords(title, tokens, values) {
  const span = (means) => `from ${fixed(Math.min(...means), 2)} to ${fixed(Math.max(...means), 2)}`;
  const spans = Object.entries(values).map(([name, { means }]) => `${name} ${span(means)}`);
  return `${title || "Units"}, ${tokens.length} steps; means over units: ${spans.join(", ")}.`;
}
