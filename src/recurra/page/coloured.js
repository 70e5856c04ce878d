// Words on coloured ground that are pointed at or walked over with the arrow keys.

import { element, visible } from "./dom.js";
import { follow, labelled } from "./figure.js";

const FLOWING = 24; // letters, from which on they are set as a text and not as a row of boxes

let made = 0; // ids of words, which readers of the screen go by

/** Tokens with a strength from -1 to 1 each; `said(number)` is what the line says of one that is pointed at. */
export function colouredWords(tokens, strengths, { label, said, line }) {
  const isFlowing = tokens.length >= FLOWING && tokens.every((token) => [...token].length < 2 || token === "</s>");
  const spans = tokens.map((token, n) => {
    const span = element("span", {
      class: strengths[n] < 0 ? "word less" : "word more",
      role: "option",
      "data-number": n,
      "aria-label": said(n).map((part) => part.textContent ?? part).join(""),
    });
    // In a text, blanks are blanks; among boxes they would not be seen.
    if (isFlowing) span.append(token === " " ? " " : visible(token));
    else span.append(element("bdi", {}, labelled(token)));
    span.style.setProperty("--share", Math.abs(strengths[n]).toFixed(3));
    return span;
  });
  const node = element("div", {
    class: `words ${isFlowing ? "flowing" : "apart"}`,
    role: "listbox",
    tabindex: "0",
    "aria-orientation": "horizontal",
    "aria-label": label,
    dir: "auto",
  });
  spans.forEach((span, n) => {
    node.append(span);
    if (isFlowing && tokens[n] === "\n") node.append(element("br"));
  });
  let at = -1;

  function point(number) {
    spans[at]?.removeAttribute("aria-selected");
    at = number;
    if (at < 0) return line.rest();
    spans[at].setAttribute("aria-selected", "true");
    spans[at].id ||= `word-${++made}`;
    node.setAttribute("aria-activedescendant", spans[at].id);
    return line.say(...said(at));
  }

  const numberAt = (event) => Number(event.target.closest?.(".word")?.dataset.number ?? -1);
  const over = (event) => numberAt(event) >= 0 && numberAt(event) !== at && point(numberAt(event));
  follow(node, { over, leave: () => point(-1) });
  node.addEventListener("focus", () => node.matches(":focus-visible") && point(Math.max(0, at)));
  node.addEventListener("blur", () => point(-1));
  node.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const way = getComputedStyle(node).direction === "rtl" ? -1 : 1;
    const steps = { ArrowRight: way, ArrowLeft: -way, ArrowDown: 10, ArrowUp: -10, Home: -Infinity, End: Infinity };
    const by = steps[event.key];
    if (event.key === "Escape") point(-1);
    if (by === undefined) return;
    event.preventDefault();
    point(Math.min(tokens.length - 1, Math.max(0, at + by)));
  });
  return node;
}
