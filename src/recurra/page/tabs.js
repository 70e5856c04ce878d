// Tabs as readers of the keyboard know them: one stop of the Tab key, arrows, Home and End between them.

import { element } from "./dom.js";

let count = 0;

/** A list of tabs and the one panel below it. `titles` are by name; `onchoose` is told the name of a tab. */
export function tabs(titles, { label, onchoose }) {
  const id = `tabs-${++count}`;
  const names = Object.keys(titles);
  const panel = element("div", { role: "tabpanel", id: `${id}-panel`, tabindex: "0", class: "panel" });
  const buttons = names.map((name) =>
    element(
      "button",
      { type: "button", role: "tab", id: `${id}-${name}`, "aria-controls": panel.id, onclick: () => onchoose(name) },
      titles[name],
    ),
  );
  const list = element("div", { role: "tablist", "aria-label": label, class: "tabs", onkeydown: move }, buttons);
  list.addEventListener("scroll", () => list.classList.toggle("moved", list.scrollLeft > 4), { passive: true });

  function move(event) {
    const at = buttons.indexOf(document.activeElement);
    const last = buttons.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[event.key];
    if (to === undefined || at === -1) return;
    event.preventDefault();
    buttons[to].focus();
    onchoose(names[to]);
  }

  function show(name) {
    buttons.forEach((button, number) => {
      const isOpen = names[number] === name;
      if (isOpen && button.getAttribute("aria-selected") !== "true") {
        // A strip that is wider than the screen scrolls to the open tab, and only sideways.
        list.scrollTo({ left: button.offsetLeft - list.offsetLeft - 40 });
      }
      button.setAttribute("aria-selected", String(isOpen));
      button.tabIndex = isOpen ? 0 : -1;
      if (isOpen) panel.setAttribute("aria-labelledby", button.id);
    });
  }

  function rename(name, title) {
    const button = buttons[names.indexOf(name)];
    if (button.textContent !== title) button.textContent = title;
  }

  return { list, panel, show, rename };
}
