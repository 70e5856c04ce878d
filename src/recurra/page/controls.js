// How a run searches for its answer, as controls. Only what differs from the run's own settings is kept and sent.

import { element } from "./dom.js";

/** What matters most of each way to search; the rest stands behind "More settings". */
const FIRST = {
  beam: ["width", "best", "length_penalty"],
  sampling: ["temperature", "top_k", "top_p", "best", "seed"],
  greedy: ["max_length"],
  exhaustive: ["max_length", "best"],
  given: [],
};

/** Settings that only some searches look at. */
const OF_SEARCHES = {
  width: ["beam"],
  best: ["beam", "sampling", "exhaustive"],
  temperature: ["sampling"],
  top_k: ["sampling"],
  top_p: ["sampling"],
  seed: ["sampling"],
};

/** Whether a setting changes nothing as the others are: no beam has a temperature, a mean no seed, and an interval of the model itself nothing to adapt. */
function isIdle(name, values) {
  if ("search" in values) return name in OF_SEARCHES && !OF_SEARCHES[name].includes(values.search);
  return (name === "seed" && values.paths === 0) || (name === "adaptation" && values.coverage === null);
}

/** So many settings need nothing to stand behind. */
const FEW = 5;

/** A page has room for so many answers, where a run by itself gives one. */
const ANSWERS = 5;

/** The way a run searches with a reader's changes; undefined where it has but one. */
export function searchOf(run, { search }) {
  return search ?? run.decoding.find((setting) => setting.name === "search")?.value;
}

/** The settings by name as they hold without a reader's changes. */
function standard(run, decoding) {
  const own = Object.fromEntries(run.decoding.map((setting) => [setting.name, setting.value]));
  const search = searchOf(run, decoding);
  if (search === "greedy") own.best = 1;
  else if (own.best === 1) {
    const { width } = { ...own, ...decoding };
    if (search === "beam") own.best = Math.max(1, Math.min(ANSWERS, width));
    if (search === "sampling" || search === "exhaustive") own.best = ANSWERS;
  }
  return own;
}

/** What is sent with a question: the reader's changes, and as many answers as the page has room for. */
export function sent(run, decoding) {
  const { best } = standard(run, decoding);
  const own = run.decoding.find((setting) => setting.name === "best");
  return own && best !== own.value ? { best, ...decoding } : decoding;
}

/** The controls of a run; `onchange` is told all that differs. */
export function controls(run, { onchange }) {
  let decoding = {};
  const settings = run.decoding.map((setting) => control(run, setting, (value) => set(setting.name, value)));
  const first = element("div", { class: "settings-first" });
  const rest = element("div", { class: "settings-rest" });
  const more = element("details", { class: "settings-more" }, element("summary", {}, "More settings"), rest);
  const reset = element("button", { type: "button", class: "quiet", onclick: () => onchange({}) }, "Reset settings");
  const foot = element("div", { class: "settings-foot" }, more, reset);
  const node = element("section", { class: "settings", "aria-label": "Search settings" }, first, foot);
  node.hidden = settings.length === 0;

  function set(name, value) {
    const next = { ...decoding, [name]: value };
    if (value === undefined || same(value, standard(run, next)[name])) delete next[name];
    if (value === "greedy") delete next.best; // it finds one, however many a beam was asked for
    onchange(next);
  }

  function show(changed) {
    decoding = changed;
    const own = standard(run, decoding);
    const values = { ...own, ...decoding };
    for (const each of settings) {
      each.show(decoding[each.name] ?? own[each.name], each.name in decoding);
      each.node.hidden = isIdle(each.name, values) && !(each.name in decoding); // what was changed can be seen
    }
    const leading = settings.length <= FEW ? settings.map((each) => each.name) : mattering(values);
    const isFirst = (each) => leading.includes(each.name);
    arrange(first, settings.filter(isFirst).map((each) => each.node));
    arrange(rest, settings.filter((each) => !isFirst(each)).map((each) => each.node));
    more.hidden = rest.childElementCount === 0;
    reset.hidden = Object.keys(decoding).length === 0;
    foot.hidden = more.hidden && reset.hidden;
  }

  show({});
  return { node, show };
}

function mattering(values) {
  return "search" in values ? ["search", ...(FIRST[values.search] ?? [])] : Object.keys(values).slice(0, FEW);
}

/** Nodes in an order, moving none that stands right: one that is moved would lose the focus. */
function arrange(place, nodes) {
  nodes.forEach((node, number) => {
    if (place.children[number] !== node) place.insertBefore(node, place.children[number] ?? null);
  });
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}

let count = 0;

/** One setting: its name, what it is now, and what it is about. */
function control(run, setting, onchange) {
  const id = `setting-${++count}`;
  const kind = KINDS[setting.kind];
  const input = kind.make(setting);
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-about`);
  input.addEventListener(kind.event, () => onchange(kind.read(input, setting)));
  const node = element(
    "div",
    { class: `setting ${setting.kind}` },
    element("label", { for: id }, setting.name.replaceAll("_", " ")),
    input,
    element("p", { class: "about", id: `${id}-about` }, setting.about),
  );
  function show(value, isChanged) {
    node.classList.toggle("changed", isChanged);
    // What is being typed is not written over.
    if (!same(kind.read(input, setting), value)) kind.write(input, value);
  }
  return { name: setting.name, node, show };
}

const number = {
  event: "input",
  make: (setting) =>
    element("input", {
      type: "number",
      step: setting.kind === "integer" ? 1 : "any",
      placeholder: setting.optional ? "none" : null,
    }),
  // An empty field asks for the run's own setting, or for none where there may be none.
  read: (input, setting) => (input.value !== "" ? Number(input.value) : setting.optional ? null : undefined),
  write: (input, value) => {
    input.value = value ?? "";
  },
};

const KINDS = {
  integer: number,
  number,
  choice: {
    event: "change",
    make: (setting) => element("select", {}, setting.choices.map((each) => element("option", {}, each))),
    read: (input) => input.value,
    write: (input, value) => {
      input.value = value;
    },
  },
  boolean: {
    event: "change",
    make: () => element("input", { type: "checkbox" }),
    read: (input) => input.checked,
    write: (input, value) => {
      input.checked = value;
    },
  },
  text: {
    event: "change",
    make: () => element("input", { type: "text", autocomplete: "off", spellcheck: "false" }),
    read: (input) => input.value,
    write: (input, value) => {
      input.value = value ?? "";
    },
  },
  list: {
    event: "change",
    make: () => element("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "separated by blanks" }),
    read: (input) => input.value.split(/\s+/).filter((each) => each !== ""),
    write: (input, value) => {
      input.value = (value ?? []).join(" ");
    },
  },
};
