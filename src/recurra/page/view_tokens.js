// Words on coloured ground, for what they say of one thing or of several, of which one is chosen.

import { colouredWords } from "./coloured.js";
import { element, visible } from "./dom.js";
import { named, numbersTable, reading, sayingLine, within } from "./figure.js";
import { tokenRow } from "./tokens.js";

export function draw(place, numbers, { state, change }) {
  const { tokens, rows, asked, first, about, caption, left_out: leftOut } = numbers;
  const line = sayingLine("Point at a token, or walk over them with the arrow keys.");
  const summary = element("p", { class: "summary", "aria-live": "polite" });
  const words = element("div");
  const view = element("div", { class: "view words-view" });
  let chosen = within(state.row, 0, rows.length - 1, first);

  function show(number) {
    const { name, strengths, said, note } = rows[number];
    const about = [name && note ? [named(name), ": "] : [], note ? real(note) : []].flat();
    summary.replaceChildren(...about);
    summary.hidden = about.length === 0;
    words.replaceChildren(
      colouredWords(tokens, strengths, {
        label: `Tokens by ${visible(name || caption || numbers.title)}`,
        said: (n) => [...(name ? [named(name), " ← "] : []), named(tokens[n]), `: ${real(said[n])}`],
        line,
      }),
    );
  }

  place.append(view);
  if (about) view.append(reading(about));
  if (rows.length > 1) {
    const more = leftOut ? ` The first ${rows.length} of ${rows.length + leftOut} are here.` : "";
    const onchoose = (number) => {
      chosen = number;
      change({ row: chosen });
      show(chosen);
    };
    const names = rows.map(({ name }) => name);
    view.append(
      element("p", { class: "asks" }, `${asked} Point or choose.${more}`.trim()),
      tokenRow(names, { label: asked || "What is shown", chosen, onlook: show, onchoose }).node,
    );
  }
  view.append(summary, words, line.node, legend(numbers), table(numbers));
  show(chosen);
}

/** A number with a real minus. */
const real = (text) => text.replace(/(^|\s)-(?=\d)/g, "$1−");

function table({ tokens, rows, table: own, total }) {
  const head = own?.columns ?? ["token", ...rows.map(({ name }) => visible(name || total || "said"))];
  const said = () => tokens.map((token, n) => [visible(token), ...rows.map((row) => real(row.said[n]))]);
  const cell = (each) => (typeof each === "number" && !Number.isInteger(each) ? Number(each.toPrecision(4)) : each);
  return numbersTable("As numbers", head, own ? () => own.rows.map((row) => row.map(cell)) : said);
}

function legend({ rows, scale: [low, high], signed }) {
  const isBelow = rows.every(({ strengths }) => strengths.every((each) => each <= 0));
  const ramp = element("span", { class: `ramp ${signed ? "both" : isBelow ? "less" : "more"}` });
  return element("p", { class: "legend", "aria-hidden": "true" }, low, ramp, high);
}
