// The field of a run's input, of whatever kind that is, and inputs in the address of the page.

import { numbersField, shape } from "./numbers.js";
import { pad, strokesIn } from "./pad.js";
import { pictureField } from "./picture.js";
import { textField } from "./textfield.js";
import { vectorField } from "./vector.js";

/** An address holds no input of more letters. */
const LONGEST = 2000;

/** How deep numbers are nested. */
const DEPTHS = { vector: [1], series: [1, 2], frames: [1, 2], places: [2, 3], picture: [2, 3] };

const FIELDS = {
  text: textField,
  frames: numbersField,
  series: numbersField,
  places: numbersField,
  vector: vectorField,
  picture: pictureField,
  strokes: pad,
};

/**
 * What an input of a run is put in: {node, value, label(value)}. `value` is what the API takes, null while there is
 * none; `onchange` is called whenever a reader has changed it. `label` names a value in short, and where
 * there is a `preview`, it is a little picture of one.
 */
export function field(run, { onchange }) {
  return FIELDS[run.input.kind](run, { onchange });
}

/** An input as it stands in an address; null where it is too long for one. */
export function toURL(kind, value) {
  const text = kind === "text" ? String(value) : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > LONGEST ? null : text;
}

/** The input that an address holds; null where it is none of this kind. */
export function fromURL(kind, text) {
  if (kind === "text") return text;
  if (kind === "picture" && text.startsWith("data:image/")) return text;
  try {
    const found = JSON.parse(text);
    if (kind === "strokes") return strokesIn(found);
    if (kind === "series" && Array.isArray(found?.values)) return found;
    const depth = Array.isArray(found) ? (shape(found)?.length ?? 0) : 0;
    return DEPTHS[kind].includes(depth) ? found : null;
  } catch {
    return null;
  }
}
