// Curves over a common axis, in panels one below the other; a step that is pointed at says all its numbers.

import { extent, ticks } from "./chart.js";
import { element, short, svg } from "./dom.js";
import { fitted, follow, numbersTable, reading, sayingLine } from "./figure.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [56, 14, 8, 22]; // pixels around the curves
const NUMBER = 14; // pixels of a bar's number
const MOST_ROWS = 500; // of the table
const SHADE = 0.2; // of a band; where bands lie over each other it is darker

export function draw(place, numbers) {
  const { panels, about, caption } = numbers;
  const view = element("div", { class: "view lines" });
  place.append(view);
  if (about) view.append(reading(about));
  if (caption) view.append(element("p", { class: "summary" }, caption));
  const steps = stepsOf(panels);
  if (steps.length === 0) {
    view.append(element("p", { class: "why-not" }, "There is nothing to draw yet."));
    return;
  }
  const line = sayingLine("Point at a step; with the keyboard, arrows move over the steps.");
  fitted(view, (width) => figure(numbers, steps, width, line));
  view.append(line.node, table(numbers, steps));
}

/** The places of points along the common axis. */
const xOf = ({ x, y, low }) => (x.length ? x : (y ?? low).map((_, n) => n));

function stepsOf(panels) {
  const all = panels.flatMap(({ curves, bands, marks }) => [...[...curves, ...bands].flatMap(xOf), ...marks.map(({ x }) => x)]);
  return [...new Set(all)].sort((one, other) => one - other);
}

const stepIn = ({ x_labels: names }, step) => (names.length ? names[step] : short(step, 7));

function figure(numbers, steps, width, line) {
  const { panels, x, x_labels: names, title } = numbers;
  const room = width - LEFT - RIGHT;
  const [low, high] = names.length ? [-0.5, names.length - 0.5] : extent(steps);
  const across = (step) => LEFT + ((step - low) / (high - low)) * room;
  const drawn = panels.map((panel) => panelOf(panel, across, width));
  const label = `${title || "Lines"} over ${x}. Arrow keys move over the steps.`;
  const axis = axisOf(numbers, across, width, low, high);
  const node = element(
    "div",
    { class: "figure", tabindex: "0", role: "application", "aria-label": label },
    drawn.map(({ node }) => node),
    axis,
  );
  let at = -1;

  function point(number) {
    at = number;
    for (const panel of drawn) panel.mark(at < 0 ? null : steps[at]);
    if (at < 0) return line.rest();
    const step = steps[at];
    const said = drawn.flatMap((panel) => panel.said(step));
    return line.say(`${x} ${stepIn(numbers, step)}: ${said.join(", ") || "no number"}`);
  }

  function over(event) {
    const left = event.clientX - node.getBoundingClientRect().left;
    const distances = steps.map((step) => Math.abs(across(step) - left));
    point(distances.indexOf(Math.min(...distances)));
  }

  follow(node, { over, leave: () => point(-1) });
  node.addEventListener("blur", () => point(-1));
  node.addEventListener("keydown", (event) => {
    const last = steps.length - 1;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, PageUp: at - 10, PageDown: at + 10 }[event.key];
    if (event.key === "Escape") point(-1);
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    point(Math.min(last, Math.max(0, to)));
  });
  return node;
}

function panelOf({ title, curves, bands, marks, bars, log, height }, across, width) {
  const ends = bands.flatMap((band) => [...band.low, ...band.high]);
  const values = [...curves.flatMap(({ y }) => y), ...ends, ...marks.map(({ y }) => y)];
  const known = values.filter(Number.isFinite);
  const isLog = log && !bars && known.length > 0 && Math.min(...known) > 0 && Math.max(...known) / Math.min(...known) >= 10;
  const scale = isLog ? Math.log10 : (value) => value;
  const [least, most] = bars ? extentOfBars(known) : extent(known.map(scale));
  const air = bars ? 0 : (most - least) * 0.05;
  const high = Math.max(60, height - 40);
  // The number of a bar stands above it, that of a negative one below.
  const [top, foot] = [TOP + (bars ? NUMBER : 0), high - TOP - (bars && least < 0 ? NUMBER : 0)];
  const up = (value) => top + (1 - (scale(value) - least + air) / (most - least + 2 * air)) * (foot - top);
  const pointer = svg("line", { class: "pointer", y1: TOP, y2: high - TOP, visibility: "hidden" });
  const parts = bars
    ? curves.flatMap((curve) => barsOf(curve, across, up))
    : [...grid(least - air, most + air, isLog, up, width), ...bands.map((band) => bandOf(band, across, up)), ...curves.map((curve) => lineOf(curve, across, up))];
  const marked = marks.filter(({ y }) => Number.isFinite(y));
  const dots = marked.map(({ x, y }) => svg("circle", { class: "best", cx: across(x), cy: up(y), r: 4 }));
  const picture = svg(
    "svg",
    { class: "lines-panel", role: "img", "aria-label": `${title}: ${curves.map(({ name }) => name).join(", ")}`, width, height: high },
    svg("path", { class: "axis-line", d: `M${LEFT} ${TOP}V${high - TOP}` }),
    svg("path", { class: "axis-line", d: `M${LEFT} ${bars ? up(0) : high - TOP}H${width - RIGHT}` }),
    parts,
    dots,
    pointer,
  );
  // What has no number is not drawn, and so not named.
  const drawn = curves.filter(({ y }) => y.some(Number.isFinite));
  const keyed = (sample) => (drawn) => {
    const swatch = element("span", { class: `${sample} ${drawn.look}` });
    if (sample === "swatch") swatch.style.setProperty("--depth", `${100 * (1 - (1 - SHADE) ** depthOf(drawn, bands))}%`);
    return drawn.name && element("span", { class: "key" }, swatch, drawn.name);
  };
  const keys = bars ? [] : [...drawn.map(keyed("stroke")), ...bands.filter(isDrawn).map(keyed("swatch"))];
  const best = [...new Set(marked.map(({ name }) => name))].map((name) => element("span", { class: "key" }, `● ${name}`));
  const head = element("p", { class: "legend" }, element("b", {}, title + (isLog ? " (log scale)" : "")), keys, best);
  const found = curves.map((curve) => ({ name: curve.name || title, at: new Map(xOf(curve).map((x, n) => [x, curve.y[n]])) }));

  function mark(step) {
    pointer.setAttribute("visibility", step === null ? "hidden" : "visible");
    if (step !== null) for (const end of ["x1", "x2"]) pointer.setAttribute(end, across(step));
  }

  const between = bands.filter(({ name }) => name).map((band) => ({ name: band.name, at: new Map(endsOf(band).map(([x, ...ends]) => [x, ends])) }));
  const said = (step) => [
    ...found.filter(({ at }) => Number.isFinite(at.get(step))).map(({ name, at }) => `${name} ${short(at.get(step), 5)}`),
    ...between.filter(({ at }) => at.has(step)).map(({ name, at }) => `${name} ${at.get(step).map((end) => short(end, 4)).join(" to ")}`),
  ];
  return { node: element("div", { class: "lines-place" }, head, picture), mark, said };
}

/** Powers of ten between two exponents, and 2 and 5 times them where there is room. */
function decades(low, high) {
  const first = Math.floor(low);
  const powers = Array.from({ length: Math.ceil(high) - first + 1 }, (_, n) => first + n);
  const within = (value) => Math.log10(value) >= low && Math.log10(value) <= high;
  const finer = powers.flatMap((power) => [1, 2, 5].map((factor) => Number(`${factor}e${power}`))).filter(within);
  if (finer.length <= 6) return finer;
  const every = Math.ceil(powers.length / 6);
  return powers.filter((power) => power % every === 0).map((power) => Number(`1e${power}`)).filter(within);
}

function* grid(low, high, isLog, up, width) {
  for (const value of isLog ? decades(low, high) : ticks(low, high)) {
    yield svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: up(value), y2: up(value) });
    yield svg("text", { class: "tick", x: LEFT - 6, y: up(value) + 4, "text-anchor": "end" }, short(value, 3));
  }
}

function lineOf(curve, across, up) {
  const xs = xOf(curve);
  let pen = "M";
  const parts = curve.y.map((value, n) => {
    if (!Number.isFinite(value)) {
      pen = "M";
      return "";
    }
    const part = `${pen}${across(xs[n]).toFixed(1)} ${up(value).toFixed(1)}`;
    pen = "L";
    return part;
  });
  const known = curve.y.map((value, n) => [xs[n], value]).filter(([, value]) => Number.isFinite(value));
  const dots = (curve.dots && known.length <= 60) || known.length === 1 ? known : [];
  return svg(
    "g",
    { class: `curve ${curve.look}` },
    svg("path", { d: parts.join("") }),
    dots.map(([x, value]) => svg("circle", { cx: across(x), cy: up(value), r: 3 })),
  );
}

/** The steps at which a band has both its ends. */
function endsOf(band) {
  return xOf(band).map((x, n) => [x, band.low[n], band.high[n]]).filter((each) => each.every(Number.isFinite));
}

/** How many bands lie over each other where one is: itself, and those drawn before it that enclose it. */
function depthOf(band, bands) {
  const own = endsOf(band);
  const encloses = (other) => {
    const around = new Map(endsOf(other).map(([x, ...ends]) => [x, ends]));
    return own.every(([x, low, high]) => around.has(x) && around.get(x)[0] <= low && high <= around.get(x)[1]);
  };
  return 1 + bands.slice(0, bands.indexOf(band)).filter(encloses).length;
}

const isDrawn = (band) => endsOf(band).length > 1;

function bandOf(band, across, up) {
  const known = endsOf(band).map(([x, low, high]) => [across(x), low, high]);
  const there = known.map(([x, , high]) => `${x.toFixed(1)} ${up(high).toFixed(1)}`);
  const back = known.map(([x, low]) => `${x.toFixed(1)} ${up(low).toFixed(1)}`).reverse();
  return svg("path", { class: `between ${band.look}`, d: isDrawn(band) ? `M${[...there, ...back].join("L")}Z` : "" });
}

/** Least and most of bars, which stand on 0. */
function extentOfBars(values) {
  const [least, most] = [Math.min(0, ...values), Math.max(0, ...values)];
  return least === most ? [0, 1] : [least, most];
}

function barsOf(curve, across, up) {
  const wide = Math.min(60, across(1) - across(0)) * 0.7;
  return curve.y.flatMap((value, n) => {
    if (!Number.isFinite(value)) return [];
    const x = across(xOf(curve)[n]);
    const [end, zero] = [up(value), up(0)];
    return [
      svg("rect", { class: "column", x: x - wide / 2, y: Math.min(end, zero), width: wide, height: Math.abs(zero - end) }),
      svg("text", { class: "tick", x, y: value < 0 ? end + 12 : end - 3, "text-anchor": "middle" }, value.toLocaleString("en").replace("-", "−")),
    ];
  });
}

function axisOf(numbers, across, width, low, high) {
  const { x, x_labels: names } = numbers;
  const many = Math.max(2, Math.round(width / 110));
  const every = Math.ceil(names.length / (2 * many)) || 1;
  const steps = names.length ? names.map((_, n) => n).filter((n) => n % every === 0) : ticks(low, high, many);
  const texts = steps.map((step) => svg("text", { class: "tick", x: across(step), y: 14, "text-anchor": "middle" }, stepIn(numbers, step)));
  const name = svg("text", { class: "tick", x: width - RIGHT, y: 14 + BOTTOM - 6, "text-anchor": "end" }, x);
  return svg("svg", { class: "lines-axis", "aria-hidden": "true", width, height: 14 + BOTTOM }, texts, name);
}

function table(numbers, steps) {
  const curves = numbers.panels.flatMap(({ title, curves }) => curves.map((curve) => ({ ...curve, name: curve.name || title })));
  const rows = () => {
    const found = curves.map((curve) => new Map(xOf(curve).map((x, n) => [x, curve.y[n]])));
    const every = Math.ceil(steps.length / MOST_ROWS);
    return steps
      .filter((_, n) => n % every === 0)
      .map((step) => [stepIn(numbers, step), ...found.map((each) => short(each.get(step), 5))]);
  };
  return numbersTable("As numbers", [numbers.x, ...curves.map(({ name }) => name)], rows);
}
