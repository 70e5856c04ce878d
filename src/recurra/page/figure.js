// What the figures of all views share: the width they fit, the line that says what is pointed at, numbers as a table.

import { element, visible } from "./dom.js";

/** A width that differs by less, as by that of a scroll bar, changes no figure. */
const SLACK = 18;

/** Draws into a parent what fits its width: now, and again whenever the width changes. `draw(width)` gives a node. */
export function fitted(parent, draw) {
  const place = element("div", { class: "fitted" });
  parent.append(place);
  let drawn = -SLACK;
  const fit = () => {
    const width = Math.floor(place.clientWidth);
    if (width === 0 || Math.abs(width - drawn) < SLACK) return;
    drawn = width;
    place.replaceChildren(draw(width));
  };
  fit();
  new ResizeObserver(fit).observe(place);
  return place;
}

/** A line beneath a figure: `say` fills it with what is pointed at, `rest` with the hint again. */
export function sayingLine(...hint) {
  // What is said is read aloud, the hint only where a reader comes by it.
  const [hinted, said] = [element("span", { class: "hint" }), element("span", { "aria-live": "polite" })];
  const node = element("p", { class: "said" }, hinted, said);
  const rest = () => {
    hinted.replaceChildren(...hint);
    said.replaceChildren();
  };
  rest();
  return {
    node,
    rest,
    say(...parts) {
      hinted.replaceChildren();
      said.replaceChildren(...parts);
    },
    quiet: (isQuiet) => said.setAttribute("aria-live", isQuiet ? "off" : "polite"),
  };
}

/** A token or a name as a label: blanks within it are blanks, one that is nothing but blanks has its sign. */
export function labelled(token) {
  return /^\S.*\S$/u.test(token) ? token.split(" ").map(visible).join(" ") : visible(token);
}

/** How a figure is to be read, in a sentence or two. */
export function reading(...sentences) {
  return element("p", { class: "reading" }, sentences.join(" "));
}

/** Tells where the pointer or a finger is over a node; `leave` when a mouse leaves it and the keyboard is not there. */
export function follow(node, { over, leave, holder = node }) {
  node.addEventListener("pointermove", over);
  node.addEventListener("pointerdown", over);
  node.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse" && !holder.matches(":focus-visible")) leave();
  });
}

/** A token within a sentence: words of the other direction do not turn the sentence around. */
export function named(token) {
  return element("bdi", { class: "token" }, labelled(token));
}

/** Numbers as a table, unfolded when it is wanted and made only then. `rows()` gives rows that begin with a name. */
export function numbersTable(summary, head, rows) {
  const details = element("details", { class: "numbers" }, element("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const cell = (tag, scope) => (each) => element(tag, { scope, dir: "auto" }, String(each));
    const body = rows().map(([name, ...rest]) => element("tr", {}, cell("th", "row")(name), rest.map(cell("td"))));
    const table = element(
      "table",
      {},
      element("thead", {}, element("tr", {}, head.map(cell("th", "col")))),
      element("tbody", {}, body),
    );
    details.append(element("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": summary }, table));
  });
  return details;
}

/** A number with a sign that stands out, as in +1.2 and −0.3. */
export function signed(number, digits = 3) {
  const text = Math.abs(number).toFixed(digits);
  return Number(text) === 0 ? text : (number < 0 ? "−" : "+") + text;
}

/** A number with so many digits behind its point, and a real minus. */
export function fixed(number, digits = 3) {
  if (number === null) return "–";
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

const pen = document.createElement("canvas").getContext("2d");
let [letters, inked] = [null, null]; // asking for them again and again would take most of the time of a tree

/** Pixels that a text takes in the letters of the page. */
export function widthOf(text, size, weight = 400) {
  letters ??= getComputedStyle(document.documentElement).fontFamily;
  const font = `${weight} ${size}px ${letters}`;
  if (font !== inked) pen.font = inked = font;
  return pen.measureText(text).width;
}

/** A whole number of a link, kept within its bounds; anything else is `otherwise`. */
export function within(value, first, last, otherwise) {
  const number = Math.round(Number(value));
  const isMissing = value === undefined || value === null || Number.isNaN(number);
  return isMissing ? otherwise : Math.min(last, Math.max(first, number));
}
