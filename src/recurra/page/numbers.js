// Numbers to read: series, frames and features of places, typed as JSON or pasted as columns out of a table.

import { sparkline } from "./chart.js";
import { element } from "./dom.js";

/** How tables write that a value is missing. */
const MISSING = ["na", "nan", "null", "none"];

/** A field of a run that reads steps of numbers. */
export function numbersField(run, { onchange }) {
  const columns = run.input.columns;
  const area = element("textarea", {
    class: "numbers-field",
    rows: 5,
    wrap: "off",
    spellcheck: "false",
    autocomplete: "off",
    "aria-label": `Input, ${run.input.about}`,
    placeholder: columns.length > 1 ? `${columns.join("\t")}\n…` : "A step a line, or JSON",
  });
  const said = element("p", { class: "numbers-said", role: "status" });
  const preview = element("div", { class: "numbers-preview" });
  const file = element("input", { type: "file", class: "unseen", accept: ".csv,.tsv,.txt,.json", tabindex: -1 });
  const open = element("button", { type: "button", class: "quiet", onclick: () => file.click() }, "Open a file");
  const node = element("div", { class: "numbers-input" }, area, element("div", { class: "numbers-about" }, preview, said, open, file));
  const told = run.input.kind === "vector" ? (of) => `${of.flat().length} numbers` : described;
  let value = null;

  function read() {
    try {
      value = area.value.trim() === "" ? null : parsed(area.value, run.input);
      tell(null);
    } catch (problem) {
      value = null;
      tell(problem.message);
    }
  }

  function tell(problem) {
    node.classList.toggle("wrong", problem !== null);
    const names = columns.length > 1 ? `: ${columns.join(", ")}` : "";
    said.textContent = problem ?? (value === null ? hint() : `${told(value)}${names}`);
    const steps = value === null || value.length < 2 ? null : rows(value);
    preview.replaceChildren(...(steps ? [sparkline(steps)] : []));
  }

  const hint = () => (columns.length > 1 ? `A line for each step: ${columns.join(", ")}.` : `Give ${run.input.about}.`);

  async function take(files) {
    if (!files?.length) return;
    area.value = await files[0].text();
    read();
    onchange();
  }

  area.addEventListener("input", () => {
    read();
    onchange();
  });
  file.addEventListener("change", () => take(file.files));
  node.addEventListener("dragover", (event) => event.preventDefault());
  node.addEventListener("drop", (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(event.dataTransfer.files);
  });
  tell(null);

  return {
    node,
    get value() {
      return value;
    },
    set value(given) {
      value = given;
      area.value = given === null ? "" : written(given);
      tell(null);
    },
    label: told,
    preview: (of) => (of.length > 1 && rows(of) ? sparkline(rows(of), { width: 90, height: 22 }) : null),
  };
}

/** How long lists in lists are, [T], [T, d] or more; null where something in them is neither a list nor a number. */
export function shape(value) {
  if (value === null || typeof value === "number") return [];
  if (!Array.isArray(value) || !value.length) return null;
  const inner = value.map(shape);
  const same = inner.every((each) => each !== null && String(each) === String(inner[0]));
  return same ? [value.length, ...inner[0]] : null;
}

/** The numbers of a text; an Error says what is wrong with it. */
export function parsed(text, { columns = [], kind } = {}) {
  const found = /^\s*[[{]/.test(text) ? fromJSON(text) : fromLines(text);
  const width = Array.isArray(found[0]) ? found[0].length : 1;
  if (kind === "series" && columns.length > 1 && width !== columns.length) {
    const has = `${width} number${width === 1 ? "" : "s"}`;
    throw new Error(`A step has ${has} here, but the model reads ${columns.length}: ${columns.join(", ")}.`);
  }
  const isRow = found.length === 1 && Array.isArray(found[0]) && columns.length === 1 && found[0].length > 1;
  return isRow ? found[0].map((number) => [number]) : found;
}

function fromJSON(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("This is not yet JSON: a list of lists of numbers, [[1, 2], [3, 4]].");
  }
  if (!Array.isArray(found) || shape(found) === null) {
    throw new Error("Every step has as many numbers as the others, and nothing but numbers.");
  }
  return found;
}

/** Columns as a table has them, with blanks, tabs, commas or semicolons between; a line of names above is left out. */
function fromLines(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const cells = lines.map((line) => line.split(/\s*[,;\t]\s*|\s+/).filter((cell) => cell !== ""));
  const isHeader = cells.length > 1 && cells[0].every((cell) => number(cell) === undefined);
  const steps = cells.slice(isHeader ? 1 : 0);
  return steps.map((step, place) =>
    step.map((cell) => {
      const found = number(cell);
      if (found === undefined) throw new Error(`Step ${place + 1}: “${cell.slice(0, 20)}” is not a number.`);
      if (step.length !== steps[0].length) {
        throw new Error(`Step ${place + 1} has ${step.length} numbers, but the first has ${steps[0].length}.`);
      }
      return found;
    }),
  );
}

function number(cell) {
  if (MISSING.includes(cell.toLowerCase())) return null;
  const found = Number(cell);
  return Number.isFinite(found) ? found : undefined;
}

/** Numbers as they are typed: a line a step, or JSON where they are nested deeper. */
function written(value) {
  const steps = rows(value);
  return steps ? steps.map((step) => step.map((each) => each ?? "NA").join("\t")).join("\n") : JSON.stringify(value);
}

/** Steps (T × d) of numbers or of lists of them; null where they are no such thing. */
export function rows(value) {
  const sizes = shape(value);
  if (sizes?.length === 1) return value.map((each) => [each]);
  return sizes?.length === 2 ? value : null;
}

function described(value) {
  const sizes = shape(value) ?? [value.length];
  if (sizes.length > 2) return `${sizes.slice(0, -1).join(" × ")} places of ${sizes.at(-1)} numbers`;
  const [steps, width = 1] = sizes;
  return `${steps} step${steps === 1 ? "" : "s"}${width > 1 ? ` of ${width} numbers` : ""}`;
}
