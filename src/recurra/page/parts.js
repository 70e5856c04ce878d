// Parts that may not be there yet, with a plain stand-in for each.
import { element } from "./dom.js";

const part = (name, otherwise) => import(`./${name}.js`).catch(() => otherwise);

function field(run, { onchange }) {
  const input = element("input", { type: "text", "aria-label": "Input", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", onchange);
  return {
    node: input,
    get value() {
      if (input.value === "") return null;
      return run.input.kind === "text" ? input.value : fromURL(run.input.kind, input.value);
    },
    set value(value) {
      input.value = value === null ? "" : toURL(run.input.kind, value);
    },
    label: (value) => toURL(run.input.kind, value),
  };
}

function fromURL(kind, text) {
  if (kind === "text" || kind === "picture") return text;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function toURL(kind, value) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 2000 ? null : text;
}

const plain = (place, shown) => place.append(element("pre", {}, JSON.stringify(shown, null, 1).slice(0, 4000)));

export const inputs = await part("inputs", { field, fromURL, toURL });
export const answers = await part("answers", {
  draw: (place, answer) => place.append(element("p", { class: "output" }, String(answer.output))),
});
const [attention, places, words, tree, gates] = await Promise.all(
  ["attention", "places", "words", "tree", "gates"].map((name) => part(name, { draw: plain })),
);
export const views = { attention, places, words, tree, gates };
