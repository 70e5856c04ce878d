// Words with their tags. Tags that mark spans (B-, I-, …) are joined, and each span has its kind as a label.

import { chart } from "./chart.js";
import { percent } from "./classes.js";
import { element, short, visible } from "./dom.js";

const KNOWN = [
  ...["input", "output", "score", "tokens", "values", "label", "probabilities", "label_probability", "not_in_vocabulary"],
  ...["of", "text", "start", "end", "offsets", "ranges", "before", "after", "opens", "spans"],
];

/** Tags less probable are marked. */
const UNSURE = 0.7;

/** What CoNLL-U writes where there is nothing to say, such as the features of a comma. */
const NOTHING = "_";

/** As many colours as the style has; from then on they come again with another line. */
const COLOURS = 7;

/** The number of each kind of span, as they were seen first, so that a kind keeps its colour while one types. */
const numbered = new WeakMap();

function numberOf(run, kind) {
  if (!numbered.has(run)) numbered.set(run, new Map());
  const kinds = numbered.get(run);
  if (!kinds.has(kind)) kinds.set(kind, kinds.size);
  return kinds.get(kind);
}

/** Fill a place with tokens and their tags or numbers. */
export function drawTags(place, answer, { run }) {
  const columns = Object.entries(answer).filter(([name, tags]) => !KNOWN.includes(name) && Array.isArray(tags));
  const steps = columns[0]?.[1].length ?? answer.values?.length ?? answer.tokens.length;
  const words = answer.tokens.length ? answer.tokens.map(visible) : Array.from({ length: steps }, (_, step) => String(step + 1));
  if (steps === 0 && answer.label === undefined) {
    place.append(element("p", { class: "answer-words" }, "There is no word to tag."));
    return;
  }
  if (typeof answer.label === "string") place.append(whole(answer));
  const reading = element("p", { class: "pointed", "aria-live": "polite" }, answer.probabilities ? hint(answer) : "");
  const tell = (text) => (reading.textContent = text);
  const known = columns.map(([name, tags], number) => ({ run, name, tags, words, p: answer.probabilities?.[number] ?? [], tell }));
  const [apart, together] = [known.filter(isDrawnApart), known.filter((column) => !isDrawnApart(column))];
  for (const column of apart) {
    if (columns.length > 1) place.append(element("h3", { class: "column-name" }, column.name));
    place.append((answer.tokens.length ? spans : strip)(column));
  }
  if (together.length) place.append(under(together));
  if (columns.length && steps) place.append(reading, table(words, columns, answer.probabilities));
  if (answer.values?.length) place.append(...(answer.tokens.length ? [valued(words, answer.values)] : lines(answer.values)));
}

/** Spans stand in lines of their own, as do steps without words; tags of words stand under them. */
function isDrawnApart({ tags, words, run }) {
  return run.input.kind === "frames" || (words.length > 0 && tags.every((tag) => tag === "O" || /^[BIESLUM]-./.test(tag)));
}

function hint({ probabilities, tokens }) {
  const isUnsure = tokens.length > 0 && probabilities.flat().some((p) => p < UNSURE);
  return `Point at a tag to see how probable it is.${isUnsure ? ` A question mark is at those below ${100 * UNSURE} %.` : ""}`;
}

function whole(answer) {
  const p = answer.label_probability;
  return element(
    "p",
    { class: "answer-large" },
    element("strong", { class: "answer-class" }, answer.label),
    p !== undefined && element("span", { class: "answer-aside" }, percent(p)),
  );
}

/** The stretches of words that one tag or span covers: [{kind, from, to}], kind null outside of spans. */
export function stretches(tags) {
  const found = [];
  for (const [place, tag] of tags.entries()) {
    const [, mark, kind] = /^([BIESLUM])-(.*)$/.exec(tag) ?? [null, "O", null];
    const last = found.at(-1);
    const goesOn = kind !== null && last?.kind === kind && last.isOpen && !["B", "S", "U"].includes(mark);
    if (goesOn) last.to = place + 1;
    else found.push({ kind, from: place, to: place + 1 });
    found.at(-1).isOpen = kind !== null && !["E", "L", "S", "U"].includes(mark);
  }
  return found;
}

function spans({ run, name, words, tags, p, tell }) {
  const parts = stretches(tags).map(({ kind, from, to }) => {
    const inside = words.slice(from, to).map((word, place) => tagged(word, tags[from + place], p[from + place], tell));
    const spaced = inside.flatMap((each, place) => (place ? [" ", each] : [each]));
    if (kind === null) return spaced;
    const number = numberOf(run, kind);
    const style = `span kind-${number % COLOURS} line-${Math.floor(number / COLOURS) % 3}`;
    return element("mark", { class: style }, element("span", { class: "span-words" }, spaced), element("span", { class: "span-kind" }, kind));
  });
  const nothing = tags.every((tag) => tag === "O");
  return element(
    "div",
    { class: "tagged" },
    element("p", { class: "tagged-words", dir: "auto", "aria-label": `Spans of ${name}` }, parts.flatMap((part) => [part, " "]).flat()),
    nothing && element("p", { class: "answer-words" }, "No span was found."),
  );
}

function tagged(word, tag, p, tell) {
  const said = `${word}: ${tag}${p === undefined ? "" : `, ${percent(p)}`}`;
  const isUnsure = p !== undefined && p < UNSURE;
  const node = element("span", { class: "word", title: said }, word, isUnsure && element("sup", { class: "unsure-sign" }, "?"));
  node.addEventListener("pointerenter", () => tell(said));
  return node;
}

/** Each word with its tags under it, one of each column. */
function under(columns) {
  const names = element("li", { class: "under-names", "aria-hidden": true }, element("span", {}, "\u00a0"), columns.map(({ name }) => element("span", { class: "tag" }, name)));
  const each = columns[0].words.map((word, place) => element("li", {}, element("span", {}, word), columns.map((column) => tagOf(column, word, place))));
  return element("ol", { class: "tagged under", dir: "auto" }, columns.length > 1 && names, each);
}

function tagOf({ run, tags, p, tell }, word, place) {
  const number = tags[place] === NOTHING ? 0 : numberOf(run, tags[place]);
  const isUnsure = p[place] < UNSURE;
  const said = `${word}: ${tags[place]}${p[place] === undefined ? "" : `, ${percent(p[place])}`}`;
  const isNothing = tags[place] === NOTHING;
  const style = isNothing ? "tag nothing" : `tag kind-${number % COLOURS} line-${Math.floor(number / COLOURS) % 3}`;
  const node = element("span", { class: style, title: said }, isNothing ? "–" : parted(tags[place]), isUnsure && element("span", { class: "unsure-sign" }, " ?"));
  node.addEventListener("pointerenter", () => tell(said));
  return node;
}

/** A tag of several parts, such as Case=Nom|Number=Sing, which may be broken after each. */
function parted(tag) {
  return tag.split(/(?<=\|)/).flatMap((part, number) => (number ? [element("wbr"), part] : [part]));
}

/** Steps that have no words: how long each tag holds. */
function strip({ run, tags, p, tell }) {
  const runs = [];
  tags.forEach((tag, step) => {
    if (runs.at(-1)?.tag === tag) runs.at(-1).to = step + 1;
    else runs.push({ tag, from: step, to: step + 1 });
  });
  const parts = runs.map(({ tag, from, to }) => {
    const mean = p.slice(from, to).reduce((sum, each) => sum + each, 0) / (to - from);
    const where = to - from === 1 ? `step ${from + 1}` : `steps ${from + 1} to ${to}`;
    const said = `${where}: ${tag}${p.length ? `, ${percent(mean)} on average` : ""}`;
    const part = element("li", { class: `kind-${numberOf(run, tag) % COLOURS}`, title: said }, tag);
    part.style.flexGrow = to - from;
    part.addEventListener("pointerenter", () => tell(said));
    return part;
  });
  return element("ol", { class: "steps" }, parts);
}

function table(words, columns, probabilities = []) {
  const heads = ["", ...columns.flatMap(([name], number) => (probabilities[number] ? [name, "probability"] : [name]))];
  const rows = words.map((word, place) => {
    const cells = columns.flatMap(([, tags], number) =>
      probabilities[number] ? [tags[place], percent(probabilities[number][place])] : [tags[place]],
    );
    return element("tr", {}, element("th", { scope: "row" }, word), cells.map((cell) => element("td", {}, cell)));
  });
  const head = element("thead", {}, element("tr", {}, heads.map((name) => element("th", { scope: "col" }, name))));
  const body = element("div", { class: "table-place" }, element("table", {}, head, element("tbody", {}, rows)));
  return element("details", {}, element("summary", {}, "Every tag with its probability"), body);
}

/** Each word with the numbers that were predicted of it. */
function valued(words, values) {
  const each = words.map((word, place) => {
    const numbers = values[place].map((value) => element("span", { class: "tag kind-0" }, short(value, 4)));
    return element("li", {}, element("span", {}, word), numbers);
  });
  return element("ol", { class: "tagged under", dir: "auto" }, each);
}

/** Numbers that were predicted at each step. */
function lines(values) {
  return values[0].map((_, column) =>
    chart({
      lines: [{ values: values.map((step) => step[column]), kind: "given", from: 0 }],
      label: `Number ${column + 1} at each of ${values.length} steps`,
      said: (step) => `Step ${step + 1}: ${short(values[step][column], 5)}`,
    }),
  );
}
