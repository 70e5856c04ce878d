// What a program would send to get the same answer.

import { element } from "./dom.js";

/** A command longer than this is shown in part, and copied whole. */
const MOST = 1200;

export function program() {
  let command = null;
  const code = element("code");
  const copy = element("button", { type: "button", class: "quiet", onclick: () => copied(copy, command) }, "Copy");
  const node = element(
    "details",
    { class: "program" },
    element("summary", {}, "The same request from a program"),
    element("div", { class: "command" }, element("pre", { tabindex: "0", "aria-label": "A command for the shell" }, code), copy),
  );

  function show(next) {
    command = next;
    node.hidden = command === null;
    code.textContent = command === null || command.length <= MOST ? command ?? "" : `${command.slice(0, MOST)} …`;
  }

  return { node, show };
}

/** A text in the clipboard, and a button that says so for a moment. */
export async function copied(button, text, said = "Copied") {
  const label = (button.dataset.label ??= button.textContent);
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = said;
  } catch {
    button.textContent = "The browser refused";
  }
  setTimeout(() => (button.textContent = label), 1600);
}
