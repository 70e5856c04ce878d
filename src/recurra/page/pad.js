// Pen strokes to read: a pad to write on with mouse, pen or finger.

import { element, svg } from "./dom.js";

/** Points nearer to the one before are left out, in pixels of the screen. */
const NEAREST = 2;

const WIDTH = 800;
const HEIGHT = 280;
const MARGIN = 24;

/** A field of a run that reads strokes. */
export function pad(run, { onchange }) {
  const paper = svg("svg", {
    class: "pad-paper",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    tabindex: 0,
    "aria-label": "A pad to write on. Ctrl+Z undoes a stroke, Delete clears the pad.",
  });
  const ghost = element("p", { class: "pad-hint", "aria-hidden": true }, "Write here");
  const undo = element("button", { type: "button", class: "quiet", onclick: () => put(strokes.slice(0, -1)) }, "Undo");
  const clear = element("button", { type: "button", class: "quiet", onclick: () => put([]) }, "Clear");
  const json = element("textarea", { rows: 3, spellcheck: "false", "aria-label": "Strokes as JSON" });
  const said = element("p", { class: "pad-said", role: "status" });
  const asJSON = element(
    "details",
    { class: "pad-json" },
    element("summary", {}, "As JSON"),
    element("p", { class: "pad-about" }, "A list of strokes, each [[x, …], [y, …]] with y downwards. A file may be dropped too."),
    json,
  );
  const tools = element("div", { class: "pad-tools" }, undo, clear, said, asJSON);
  const node = element("div", { class: "pad" }, element("div", { class: "pad-place" }, paper, ghost), tools);

  let strokes = []; // [[x, …], [y, …]] each, in units of their own
  let units = { scale: 1, left: 0, top: 0 }; // of the strokes, to those of the pad
  let pen = null; // the stroke that is being drawn, and its pointer

  function put(next, { silently = false } = {}) {
    strokes = next;
    if (strokes.length === 0) units = { scale: 1, left: 0, top: 0 };
    draw();
    if (!silently) onchange();
  }

  function draw() {
    const all = pen ? [...strokes, pen.stroke] : strokes;
    paper.replaceChildren(...all.map((stroke) => svg("path", { class: "ink", d: line(stroke, units) })));
    ghost.hidden = all.length > 0;
    undo.disabled = clear.disabled = strokes.length === 0;
    said.textContent = strokes.length ? `${strokes.length} stroke${strokes.length === 1 ? "" : "s"}` : "";
    if (document.activeElement !== json) json.value = strokes.length ? JSON.stringify(strokes) : "";
  }

  /** Where an event points to, in the units of the strokes. */
  function place(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(paper.getScreenCTM().inverse());
    const digits = units.scale > 2 ? 2 : 0;
    const rounded = (number, start) => Number((number / units.scale + start).toFixed(digits));
    return [rounded(point.x, units.left), rounded(point.y, units.top)];
  }

  function extend(event) {
    const { last } = pen;
    if (last && Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY) < NEAREST) return;
    pen.last = event;
    const [x, y] = place(event);
    pen.stroke[0].push(x);
    pen.stroke[1].push(y);
  }

  paper.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || pen) return;
    event.preventDefault();
    paper.focus({ preventScroll: true });
    paper.setPointerCapture(event.pointerId);
    pen = { pointer: event.pointerId, stroke: [[], []], last: null };
    extend(event);
    draw();
  });
  paper.addEventListener("pointermove", (event) => {
    if (pen?.pointer !== event.pointerId) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length ? passed : [event]) extend(each);
    draw();
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    paper.addEventListener(kind, (event) => {
      if (pen?.pointer !== event.pointerId) return;
      const { stroke } = pen;
      pen = null;
      put([...strokes, stroke]);
    });
  }
  paper.addEventListener("keydown", (event) => {
    const takesBack = event.key === "Backspace" || (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey));
    if (!takesBack && event.key !== "Delete") return;
    event.preventDefault();
    if (strokes.length) put(takesBack ? strokes.slice(0, -1) : []);
  });
  json.addEventListener("input", () => typed(json.value));
  node.addEventListener("dragover", (event) => event.preventDefault());
  node.addEventListener("drop", async (event) => {
    event.preventDefault();
    const [file] = event.dataTransfer.files;
    if (file) typed(await file.text());
  });

  function typed(text) {
    let found = null;
    try {
      found = text.trim() === "" ? [] : strokesIn(JSON.parse(text));
    } catch {
      // It is told below.
    }
    if (found === null) said.textContent = "This is not a JSON list of strokes, [[[x, …], [y, …]], …].";
    else {
      units = fitted(found);
      put(found);
    }
  }

  draw();
  return {
    node,
    get value() {
      return strokes.length ? strokes : null;
    },
    set value(given) {
      const found = given === null ? [] : (strokesIn(given) ?? []);
      units = fitted(found);
      put(found, { silently: true });
    },
    label: (value) => `${value.length} stroke${value.length === 1 ? "" : "s"}`,
    preview: small,
  };
}

/** Strokes as a little picture. */
function small(given) {
  const strokes = strokesIn(given) ?? [];
  const units = fitted(strokes, { always: true });
  const paths = strokes.map((stroke) => svg("path", { class: "ink", d: line(stroke, units) }));
  return svg("svg", { class: "preview", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": true }, paths);
}

/** The path of a stroke on the pad. */
function line([xs, ys], units) {
  const points = xs.map((x, place) => {
    const across = (x - units.left) * units.scale;
    const down = (ys[place] - units.top) * units.scale;
    return `${across.toFixed(1)} ${down.toFixed(1)}`;
  });
  return `M${points.join("L")}${points.length === 1 ? "h0.01" : ""}`; // a dot is a line of no length
}

/** Where strokes stand on the pad: as large as fits, but no single dash as wide as all of it. */
function fitted(strokes, { always = false } = {}) {
  if (!strokes.length) return { scale: 1, left: 0, top: 0 };
  const ends = (of) => of.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [Infinity, -Infinity]);
  const [left, right] = ends(strokes.flatMap(([xs]) => xs));
  const [top, bottom] = ends(strokes.flatMap(([, ys]) => ys));
  const [width, height] = [right - left, bottom - top];
  const isInside = left >= 0 && top >= 0 && right <= WIDTH && bottom <= HEIGHT && Math.max(width, height) > 60;
  if (isInside && !always) return { scale: 1, left: 0, top: 0 };
  const least = 1e-9;
  const scale = Math.min((WIDTH - 2 * MARGIN) / Math.max(width, least), (HEIGHT - 2 * MARGIN) / Math.max(height, width / 4, least));
  return { scale, left: (left + right - WIDTH / scale) / 2, top: (top + bottom - HEIGHT / scale) / 2 };
}

/** Strokes out of JSON, each as [[x, …], [y, …]]; null where they are none. */
export function strokesIn(found) {
  const isPoints = (row) => Array.isArray(row) && row.length > 0 && row.every(Number.isFinite);
  if (!Array.isArray(found) || !found.every((stroke) => Array.isArray(stroke) && stroke.every(isPoints))) return null;
  const areRows = found.every((stroke) => stroke.length === 2);
  const strokes = areRows ? found : found.map((points) => [0, 1].map((axis) => points.map((point) => point[axis])));
  return strokes.every(([xs, ys]) => xs.length === ys?.length && ys.every(Number.isFinite)) ? strokes : null;
}
