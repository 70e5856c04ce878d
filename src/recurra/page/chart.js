// Lines over steps as SVG: a small one of what was typed, and one with axes and a pointer.

import { element, short, svg } from "./dom.js";

/** The path of some numbers; where one is missing, there is a gap. */
export function path(values, x, y) {
  let pen = "M";
  return values
    .map((value, step) => {
      if (value === null || value === undefined) {
        pen = "M";
        return "";
      }
      const part = `${pen}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
      return part;
    })
    .join("");
}

/** Least and most of some numbers, never the same. */
export function extent(values) {
  const known = values.filter((value) => Number.isFinite(value));
  const low = known.reduce((one, other) => Math.min(one, other), Infinity);
  const high = known.reduce((one, other) => Math.max(one, other), -Infinity);
  if (!known.length) return [0, 1];
  return low === high ? [low - 1, high + 1] : [low, high];
}

/** As many lines can be told apart. */
const LINES = 4;

/** A little picture of a series (T × d): a line for each column, each on its own scale; of many, where they are high. */
export function sparkline(steps, { width = 240, height = 44 } = {}) {
  const columns = steps[0].map((_, column) => steps.map((step) => step[column]));
  const x = (step) => 2 + (step / Math.max(1, steps.length - 1)) * (width - 4);
  const lines = columns.length > LINES ? [raster(columns, width, height)] : columns.map((values, number) => {
    const [low, high] = extent(values);
    const y = (value) => height - 3 - ((value - low) / (high - low)) * (height - 6);
    return svg("path", { d: path(values, x, y), class: `series-${number}` });
  });
  const label = `${steps.length} steps of ${columns.length === 1 ? "a number" : `${columns.length} numbers`}`;
  return svg("svg", { class: "sparkline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, lines);
}

/** Shades between the least and the greatest value of a column. */
const SHADES = 5;

/** A row for each column: the darker a dash, the greater the value within its column. */
function raster(columns, width, height) {
  const [across, down] = [width / columns[0].length, height / columns.length];
  const dashes = Array.from({ length: SHADES + 1 }, () => "");
  for (const [row, values] of columns.entries()) {
    const [low, high] = extent(values);
    const y = ((row + 0.5) * down).toFixed(1);
    for (const [step, value] of values.entries()) {
      const shade = Math.round((SHADES * (value - low)) / (high - low));
      dashes[shade] += `M${(step * across).toFixed(1)} ${y}h${across.toFixed(1)}`;
    }
  }
  const paths = dashes.map((d, shade) => svg("path", { class: "raster", d, "stroke-opacity": shade / SHADES })).slice(1);
  for (const each of paths) each.style.strokeWidth = 0.8 * down;
  return svg("g", {}, paths);
}

/** Round numbers from low to high, about so many. */
export function ticks(low, high, many = 4) {
  const rough = (high - low) / many;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const first = Math.ceil(low / step);
  const found = [];
  for (let number = first; number * step <= high + step * 1e-9; number++) found.push(Number((number * step).toPrecision(12)));
  return found;
}

/** Pixels of a chart; where there are several, fewer. */
const HEIGHT = 220;
export const LOW = 160;
const LEFT = 52;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 26;

/** So near to the line between two steps, in pixels, it is taken hold of. */
const HOLD = 9;

/**
 * A chart of lines [{values, kind, from}] and bands [{low, high, from}] over steps; `marked` is the step at which
 * something new begins. The reader points at a step, or moves with arrow keys, and `said(step)` tells of it; of several
 * charts one has a `hint` of that.
 */
export const chart = (options) => changingChart(options).node;

/**
 * A chart as `{node, show}`, which shows something else after `show(drawn)`: lines, bands, `marked`, `label` and
 * `said`. It has so many `steps`; where there is `onmove(step)`, the line at `marked` can be dragged to another step.
 */
export function changingChart({ steps = 0, first = 1, height = HEIGHT, hint = true, onmove = null, ...drawn }) {
  let { lines, bands, marked, said } = {};
  let [many, low, high, air] = [1, 0, 1, 0];
  const picture = svg("svg", { class: "chart", role: "img", tabindex: 0 });
  const reading = element("p", { class: "pointed", "aria-live": "polite" }, hint ? "Point at a step, or move with the arrow keys." : "");
  picture.style.setProperty("--chart-height", `${height}px`);
  const node = element("figure", { class: "chart-place" }, picture, reading);
  let width = 640;
  let chosen = null;
  let isHeld = false;

  const x = (step) => LEFT + (step / Math.max(1, many - 1)) * (width - LEFT - RIGHT);
  const y = (value) => TOP + (1 - (value - low + air) / (high - low + 2 * air)) * (height - TOP - BOTTOM);

  function draw() {
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const parts = [...grid()];
    for (const band of bands) parts.push(svg("path", { class: "between", d: bandPath(band) }));
    if (marked !== null) {
      const at = x(marked - 0.5);
      parts.push(svg("line", { class: "marked", x1: at, x2: at, y1: TOP, y2: height - BOTTOM }));
      if (onmove) parts.push(svg("circle", { class: "handle", cx: at, cy: TOP + 6, r: 6 }));
    }
    for (const line of lines) {
      parts.push(svg("path", { class: `line ${line.kind}`, d: path(line.values, (step) => x(step + line.from), y) }));
    }
    if (chosen !== null) parts.push(...pointer());
    picture.replaceChildren(...parts);
  }

  function* grid() {
    for (const value of ticks(low - air, high + air)) {
      yield svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) });
      yield svg("text", { class: "tick", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, short(value, 4));
    }
    for (const step of ticks(first, Math.max(first + many - 1, first + 1), Math.max(2, Math.round(width / 110)))) {
      if (!Number.isInteger(step)) continue;
      yield svg("text", { class: "tick", x: x(step - first), y: height - 8, "text-anchor": "middle" }, step);
    }
  }

  function bandPath(band) {
    const at = (step) => x(step + band.from);
    const back = band.low.map((value, step) => `L${at(step).toFixed(1)} ${y(value).toFixed(1)}`).reverse();
    return `${path(band.high, at, y)}${back.join("")}Z`;
  }

  function* pointer() {
    yield svg("line", { class: "pointer", x1: x(chosen), x2: x(chosen), y1: TOP, y2: height - BOTTOM });
    for (const line of lines) {
      const value = line.values[chosen - line.from];
      if (Number.isFinite(value)) yield svg("circle", { class: `dot ${line.kind}`, cx: x(chosen), cy: y(value), r: 4 });
    }
  }

  function choose(step) {
    chosen = step === null ? null : Math.max(0, Math.min(many - 1, step));
    if (chosen !== null) reading.textContent = said(chosen);
    draw();
  }

  function show(next) {
    ({ lines, bands = [], marked = null, said } = next);
    picture.setAttribute("aria-label", next.label);
    many = Math.max(steps, ...lines.map((line) => line.from + line.values.length));
    [low, high] = extent([...lines.flatMap((line) => line.values), ...bands.flatMap((band) => [...band.low, ...band.high])]);
    air = (high - low) * 0.05;
    choose(chosen);
  }

  /** Where an event is, in the picture's own pixels, and as a step with its fraction. */
  function placeOf(event) {
    const box = picture.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    return { at, step: ((at - LEFT) / (width - LEFT - RIGHT)) * (many - 1) };
  }

  const isNear = (at) => onmove !== null && marked !== null && Math.abs(at - x(marked - 0.5)) <= HOLD;

  picture.addEventListener("pointerdown", (event) => {
    isHeld = isNear(placeOf(event).at);
    if (isHeld) picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    const { at, step } = placeOf(event);
    picture.classList.toggle("held", isHeld || isNear(at));
    if (isHeld) onmove(Math.round(step + 0.5));
    else choose(Math.round(step));
  });
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => (isHeld = false));
  picture.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
    if (event.key in moves) choose((chosen ?? marked ?? 0) + moves[event.key]);
    else if (event.key === "Home") choose(0);
    else if (event.key === "End") choose(many - 1);
    else if (event.key === "Escape") choose(null);
    else return;
    event.preventDefault();
  });
  new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || contentRect.width === width) return;
    width = contentRect.width;
    draw();
  }).observe(picture);
  show(drawn);
  return { node, show };
}
