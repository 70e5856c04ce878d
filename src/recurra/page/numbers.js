// Numbers to read: series, frames and features of places, typed as JSON or pasted as columns out of a table.

import { sparkline } from "./chart.js";
import { element } from "./dom.js";
import { fromTable } from "./table.js";

/** A field of a run that reads steps of numbers. */
export function numbersField(run, { onchange }) {
  const columns = run.input.kind === "vector" ? [] : run.input.columns;
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
  let note = ""; // what was left out of a table

  function read() {
    try {
      const found = area.value.trim() === "" ? { numbers: null, note: "" } : parsed(area.value, run.input);
      [value, note] = [found.numbers, found.note];
      tell(null);
    } catch (problem) {
      [value, note] = [null, ""];
      tell(problem.message);
    }
  }

  function tell(problem) {
    node.classList.toggle("wrong", problem !== null);
    const names = columns.length > 1 ? `: ${columns.join(", ")}` : "";
    said.textContent = problem ?? (value === null ? hint() : `${told(value)}${names}${note && ` (${note})`}`);
    const steps = value === null || listed(value).length < 2 ? null : rows(value);
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
      [value, note] = [given, ""];
      area.value = given === null ? "" : written(given);
      tell(null);
    },
    label: told,
    preview: (of) => (listed(of).length > 1 && rows(of) ? sparkline(rows(of), { width: 90, height: 22 }) : null),
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

/** The numbers of a text, and what was left out of it; an Error says what is wrong with it. */
export function parsed(text, input = {}) {
  const { columns = [], kind } = input;
  const { numbers, note } = /^\s*[[{]/.test(text) ? { numbers: fromJSON(text, kind), note: "" } : fromTable(text, input);
  if (!Array.isArray(numbers)) return { numbers, note }; // a series with its times and covariates
  const width = Array.isArray(numbers[0]) ? numbers[0].length : 1;
  const isRow = numbers.length === 1 && Array.isArray(numbers[0]) && columns.length === 1 && width > 1;
  if (kind === "series" && columns.length > 1 && width !== columns.length) {
    const has = `${width} number${width === 1 ? "" : "s"}`;
    throw new Error(`A step has ${has} here, but the model reads ${columns.length}: ${columns.join(", ")}.`);
  }
  return { numbers: isRow ? numbers[0].map((number) => [number]) : numbers, note };
}

function fromJSON(text, kind) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("This is not yet JSON: a list of lists of numbers, [[1, 2], [3, 4]].");
  }
  if (kind === "series" && Array.isArray(found?.values)) return found;
  if (!Array.isArray(found) || shape(found) === null) {
    throw new Error("Every step has as many numbers as the others, and nothing but numbers.");
  }
  return found;
}

/** Numbers as they are typed: a line a step, or JSON where they are nested deeper. */
function written(value) {
  if (!Array.isArray(value)) {
    const parts = Object.entries(value).map(([name, each]) => `  ${JSON.stringify(name)}: ${JSON.stringify(each)}`);
    return `{\n${parts.join(",\n")}\n}`;
  }
  const steps = rows(value);
  return steps ? steps.map((step) => step.map((each) => each ?? "NA").join("\t")).join("\n") : JSON.stringify(value);
}

/** The steps of a value: itself, or the values of a series that has times and covariates. */
export const listed = (value) => (Array.isArray(value) ? value : (value?.values ?? []));

/** Steps (T × d) of numbers or of lists of them; null where they are no such thing. */
export function rows(value) {
  const steps = listed(value);
  const sizes = shape(steps);
  if (sizes?.length === 1) return steps.map((each) => [each]);
  return sizes?.length === 2 ? steps : null;
}

function described(whole) {
  const value = listed(whole);
  const sizes = shape(value) ?? [value.length];
  if (sizes.length > 2) return `${sizes.slice(0, -1).join(" × ")} places of ${sizes.at(-1)} numbers`;
  const [steps, width = 1] = sizes;
  return `${steps} step${steps === 1 ? "" : "s"}${width > 1 ? ` of ${width} numbers` : ""}`;
}
