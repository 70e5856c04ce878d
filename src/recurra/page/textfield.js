// Texts to read: one field, or one for each column with its name. Several are one input with tabs between them.

import { element } from "./dom.js";

let count = 0;

/** A field of a run that reads text. */
export function textField(run, { onchange }) {
  const names = run.input.columns.length > 1 ? run.input.columns : [""];
  // A model that generates goes on from nothing too.
  const empty = run.generates ? "" : null;
  const areas = names.map(() => area(names.length > 1, onchange));
  const node = element("div", { class: "texts" }, names.map((name, number) => labelled(name, areas[number])));

  return {
    node,
    get value() {
      const texts = areas.map((each) => (names.length > 1 ? each.value.replaceAll("\t", " ") : each.value));
      return texts.some((text) => text !== "") ? texts.join("\t") : empty;
    },
    set value(value) {
      const whole = Array.isArray(value) ? value.join(" ") : (value ?? "");
      const texts = names.length > 1 ? parted(whole, names.length) : [whole];
      areas.forEach((each, number) => {
        if (each.value !== texts[number]) each.value = texts[number];
        grow(each);
      });
    },
    label: (value) => (Array.isArray(value) ? value.join(" ") : String(value).split("\t").join(" · ")),
  };
}

/** The texts between tabs, as many as there are fields. */
function parted(whole, many) {
  const texts = whole.split("\t");
  return Array.from({ length: many }, (_, number) => (number < many - 1 ? texts[number] : texts.slice(number).join(" ")) ?? "");
}

function labelled(name, field) {
  if (name === "") {
    field.setAttribute("aria-label", "Input, a text");
    return field;
  }
  field.id = `text-${++count}`;
  return element("div", { class: "text-column" }, element("label", { for: field.id }, name), field);
}

function area(isShort, onchange) {
  const found = element("textarea", {
    class: "text-field",
    rows: isShort ? 1 : 2,
    dir: "auto",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    placeholder: isShort ? null : "Type or paste a text",
  });
  found.addEventListener("input", () => {
    grow(found);
    onchange();
  });
  // A field that was hidden or is made narrower needs another height.
  new ResizeObserver(() => grow(found)).observe(found);
  return found;
}

/** As high as its text, up to what the style allows. */
function grow(field) {
  if (CSS.supports("field-sizing", "content") || !field.isConnected) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}
