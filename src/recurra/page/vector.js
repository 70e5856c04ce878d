// A vector to read: a number for each column, with a slider; red, green and blue also as a colour to choose.

import { element } from "./dom.js";
import { numbersField, parsed } from "./numbers.js";

/** More numbers than these are pasted, not set one by one. */
const FEW = 12;

let count = 0;

/** A field of a run that reads one vector. */
export function vectorField(run, { onchange }) {
  const { columns, ranges, colour } = run.input;
  if (columns.length > FEW) return pasted(run, { onchange });
  const said = element("p", { class: "numbers-said", role: "status" });
  const controls = columns.map((name, number) => control(name, ranges[number], colour !== null, changed));
  const chooser = colour === null ? null : swatch(run, (numbers) => {
    controls.forEach((each, number) => each.set(numbers[number]));
    onchange();
  });
  const node = element(
    "div",
    { class: colour === null ? "vector" : "vector coloured", role: "group", "aria-label": "Input, a vector" },
    chooser?.node,
    element("div", { class: "vector-columns" }, controls.map((each) => each.node)),
    said,
  );

  /** A row of the table that a model was trained on, pasted or dropped: its numbers go to their columns. */
  function take(text) {
    try {
      const { numbers, note } = parsed(text, run.input);
      const row = numbers.flat();
      if (row.length !== columns.length) throw new Error(`There are ${row.length} numbers here, but the model reads ${columns.length}: ${columns.join(", ")}.`);
      controls.forEach((each, number) => each.set(row[number]));
      said.textContent = note;
      changed();
    } catch (problem) {
      said.textContent = problem.message;
    }
  }

  node.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text").trim();
    if (!/[\s,;[]/.test(text)) return; // one number goes where it is pasted
    event.preventDefault();
    take(text);
  });
  node.addEventListener("dragover", (event) => event.preventDefault());
  node.addEventListener("drop", async (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    take(await event.dataTransfer.files[0].text());
  });

  function read() {
    const numbers = controls.map((each) => each.get());
    return numbers.includes(null) ? null : numbers;
  }

  function changed() {
    chooser?.show(read());
    onchange();
  }

  return {
    node,
    get value() {
      return read();
    },
    set value(value) {
      controls.forEach((each, number) => each.set(value === null ? null : value[number]));
      chooser?.show(value);
    },
    preview(of) {
      if (colour === null) return null;
      const dot = element("span", { class: "drawn-dot" });
      dot.style.background = hex(of, colour);
      return dot;
    },
    label: (value) => (colour === null ? value.slice(0, 8).map((each) => Number(each.toPrecision(4))).join(" ") : hex(value, colour)),
  };
}

/** Many numbers in one field, in one line or one a line. */
function pasted(run, { onchange }) {
  const inner = numbersField(run, { onchange });
  return {
    node: inner.node,
    get value() {
      return inner.value === null ? null : inner.value.flat();
    },
    set value(value) {
      inner.value = value === null ? null : value.map((number) => [number]);
    },
    label: inner.label,
    preview: inner.preview,
  };
}

function control(name, [low, high], isColour, onchange) {
  const id = `vector-${++count}`;
  const step = isColour && high === 255 ? 1 : Number(((high - low) / 200).toPrecision(1));
  const number = element("input", { type: "number", id, step: "any", class: "vector-number" });
  const slider = element("input", { type: "range", min: low, max: high, step, tabindex: -1, "aria-hidden": true });
  number.addEventListener("input", () => {
    slider.value = number.value === "" ? (low + high) / 2 : number.value;
    onchange();
  });
  slider.addEventListener("input", () => {
    number.value = Number(Number(slider.value).toPrecision(6));
    onchange();
  });
  return {
    node: element("div", { class: "vector-column" }, element("label", { for: id }, name), number, slider),
    get: () => (number.value === "" || !Number.isFinite(number.valueAsNumber) ? null : number.valueAsNumber),
    set(value) {
      number.value = value === null || value === undefined ? "" : Number(value.toPrecision(7));
      slider.value = value ?? (low + high) / 2;
    },
  };
}

/** The colour that three numbers are, to be seen and to be chosen. */
function swatch(run, onchoose) {
  const { colour } = run.input;
  const input = element("input", { type: "color", class: "vector-swatch", "aria-label": "The colour", title: "Choose a colour" });
  input.addEventListener("input", () => {
    const bytes = [1, 3, 5].map((start) => parseInt(input.value.slice(start, start + 2), 16));
    onchoose(bytes.map((byte) => (colour === 255 ? byte : Number((byte / 255).toFixed(3)))));
  });
  const show = (value) => {
    input.value = value === null ? "#808080" : hex(value, colour);
    input.classList.toggle("unset", value === null);
  };
  show(null);
  return { node: input, show };
}

/** A colour as #rrggbb; numbers out of range are the nearest that there are. */
export function hex(value, most = 255) {
  const byte = (number) => Math.round(Math.min(1, Math.max(0, number / most)) * 255);
  return `#${value.slice(0, 3).map((number) => byte(number).toString(16).padStart(2, "0")).join("")}`;
}
