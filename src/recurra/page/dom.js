// Elements made of text, never of markup: whatever a model reads or writes is shown as it is.

/** An HTML element: attributes by name, listeners by "onclick" and the like, children as nodes or texts. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, likewise. */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A token as it is named: its end is a small black box, blanks and controls have a sign. */
export function visible(token) {
  if (token === "</s>") return "∎";
  const signs = { " ": "␣", "\n": "↵", "\t": "⇥" };
  return [...token].map((letter) => signs[letter] ?? (/\p{Cc}/u.test(letter) ? "�" : letter)).join("") || "∅";
}

/** A number as a person reads it, with a real minus. */
export function short(number, digits = 3) {
  if (number === null || number === undefined) return "–";
  const size = Math.abs(number);
  const isFar = size !== 0 && (size < 1e-3 || size >= 1e6);
  return (isFar ? number.toExponential(1) : String(Number(number.toPrecision(digits)))).replace(/^-/, "−");
}

/** A place drawn anew, with the focus and what was unfolded where they were. */
export function redrawn(place, draw) {
  const stops = () => [...place.querySelectorAll("a, button, input, select, textarea, summary, [tabindex]")];
  const focused = stops().indexOf(document.activeElement);
  const open = [...place.querySelectorAll("details")].map((each) => each.open);
  const fresh = element("div");
  place.replaceChildren(fresh);
  draw(fresh);
  fresh.querySelectorAll("details").forEach((each, number) => (each.open = open[number] ?? each.open));
  if (focused !== -1) stops()[focused]?.focus({ preventScroll: true });
}

/** Whether two plain values are the same. */
export function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
