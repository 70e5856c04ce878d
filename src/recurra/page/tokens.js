// A row of tokens of which one is chosen, by pointing or by keys.

import { reveal } from "./cells.js";
import { element } from "./dom.js";
import { labelled } from "./figure.js";

/**
 * Tokens as a group of buttons with one stop of the Tab key. `onchoose(number)` follows clicks and arrow keys,
 * `onlook(number)` pointing; what is pointed at no longer gives way to what is chosen.
 */
export function tokenRow(tokens, { label, chosen, onchoose, onlook }) {
  let at = chosen;
  const buttons = tokens.map((token, number) =>
    element(
      "button",
      { type: "button", role: "radio", class: "token-button", dir: "auto", "data-number": number },
      labelled(token),
    ),
  );
  const node = element("div", { class: "token-row", role: "radiogroup", "aria-label": label }, buttons);
  const numberAt = (event) => Number(event.target.closest?.(".token-button")?.dataset.number ?? -1);

  function show(number) {
    at = number;
    buttons.forEach((button, n) => {
      button.setAttribute("aria-checked", String(n === at));
      button.tabIndex = n === at ? 0 : -1;
    });
  }

  function choose(number) {
    show(number);
    onchoose(number);
  }

  node.addEventListener("click", (event) => numberAt(event) >= 0 && choose(numberAt(event)));
  node.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse" && numberAt(event) >= 0) onlook(numberAt(event));
  });
  node.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && onlook(at));
  node.addEventListener("keydown", (event) => {
    const last = buttons.length - 1;
    const isTurned = getComputedStyle(node).direction === "rtl";
    const [on, back] = isTurned ? [at - 1, at + 1] : [at + 1, at - 1];
    const to = { ArrowRight: on, ArrowDown: at + 1, ArrowLeft: back, ArrowUp: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(Math.min(last, Math.max(0, to)));
    buttons[at].focus();
  });
  show(at);
  // What is chosen is seen where the row is higher than its place.
  requestAnimationFrame(() => {
    const [row, button] = [node.getBoundingClientRect(), buttons[at].getBoundingClientRect()];
    reveal(node, { left: node.scrollLeft, top: node.scrollTop + button.top - row.top, width: 0, height: button.height });
  });
  return { node, show };
}
