// What the page shows, and the address that says it: whoever follows the address sees the same.
//
// A state is a list of one or two panes {run, value, raw, decoding, tab, best, views}. `raw` says that the value is a raw
// text whose sentences the run finds; `decoding` holds what differs from the run's own settings, `best` the number of the
// answer that is explained, or of the sentence, `views` small settings of views by name. The first pane is in the address
// as run=…&input=…&raw=true&decoding.width=…&tab=…&best=…&tree.step=…, the second with "2.".

import { fromURL, toURL } from "./inputs.js";

const PREFIXES = ["", "2."];

/** A page that was opened from a disk may change its address after "#" only. */
const [MARK, PART] = location.protocol === "file:" ? ["#", "hash"] : ["?", "search"];

/** The run of a pane. */
export function runOf(runs, pane) {
  return runs.find((run) => run.name === pane.run);
}

/** A pane that shows a run as it is. */
export function fresh(run) {
  return { run: run.name, value: null, raw: false, decoding: {}, tab: run.views[0] ?? null, best: 1, views: {} };
}

/** The panes of an address, and the names of runs that it wants and that are not here. */
function read(search, runs) {
  const query = new URLSearchParams(search);
  const absent = [];
  const panes = [];
  for (const prefix of PREFIXES) {
    const name = query.get(`${prefix}run`);
    if (name === null && prefix !== "") continue;
    const run = runs.find((each) => each.name === name);
    if (name !== null && !run) absent.push(name);
    if (run) panes.push(paneOf(query, prefix, run));
    else if (prefix === "") panes.push({ ...fresh(runs[0]), value: valueOf(query, prefix, runs[0]) });
  }
  const [first, second] = panes.map((pane) => runOf(runs, pane));
  if (second && sharesInput(first, second)) panes[1].value = panes[0].value;
  return { panes, absent };
}

/** The address of some panes: its part from the mark on. */
function address(panes, runs) {
  const query = new URLSearchParams();
  const kinds = panes.map((pane) => runOf(runs, pane));
  panes.forEach((pane, number) => {
    const prefix = PREFIXES[number];
    const put = (name, value) => query.set(prefix + name, value);
    const run = kinds[number];
    put("run", pane.run);
    const text = pane.value === null ? null : toURL(run.input.kind, pane.value);
    if (text !== null && !(number > 0 && sharesInput(kinds[0], run))) put("input", text);
    if (pane.raw) put("raw", "true");
    for (const [name, value] of Object.entries(pane.decoding)) put(`decoding.${name}`, written(value));
    if (pane.tab !== (run.views[0] ?? null)) put("tab", pane.tab);
    if (pane.best !== 1) put("best", pane.best);
    for (const [view, settings] of Object.entries(pane.views)) {
      for (const [name, value] of Object.entries(settings)) put(`${view}.${name}`, written(value));
    }
  });
  return `${MARK}${query}`;
}

/** Browsers slow down pages that write their address too often. */
const PAUSE = 250;

let pause = null;
let due = null; // what the present step of the history is to hold

/**
 * The address bar says what is shown: in a new step of the history at once, otherwise in a while. An input that is too
 * long for an address is kept in the history alone, so that Back and loading anew have it.
 */
export function remember(panes, runs, { push = false } = {}) {
  const values = panes.map((pane) => (isTold(pane, runOf(runs, pane)) ? null : pane.value));
  const next = { values, search: address(panes, runs) };
  if (push && next.search !== (due?.search ?? location[PART])) {
    settle();
    write("pushState", next);
  } else {
    due = next;
    clearTimeout(pause);
    pause = setTimeout(settle, PAUSE);
  }
}

/** What is to be remembered in a while is remembered now. */
export function settle() {
  clearTimeout(pause);
  if (due !== null) write("replaceState", due);
  due = null;
}

function write(how, { values, search }) {
  try {
    history[how]({ values }, "", search);
  } catch {
    history[how](null, "", search); // the input is too long for the history too
  }
}

/** The panes of the present step of the history, and the names of runs that it wants and that are not here. */
export function recall(runs) {
  clearTimeout(pause);
  due = null;
  const { panes, absent } = read(location[PART].replace(/^#/, ""), runs);
  const values = history.state?.values ?? [];
  return { panes: panes.map((pane, number) => ({ ...pane, value: pane.value ?? values[number] ?? null })), absent };
}

/** Whether an address has room for the input of a pane. */
export function isTold({ value }, run) {
  return value === null || toURL(run.input.kind, value) !== null;
}

/** Whether two runs may be asked with the same input. */
export function sharesInput(one, other) {
  return one.input.kind === other.input.kind && columns(one) === columns(other);
}

function columns(run) {
  return Math.max(1, run.input.columns.length);
}

function paneOf(query, prefix, run) {
  const pane = { ...fresh(run), value: valueOf(query, prefix, run) };
  for (const setting of run.decoding) {
    const text = query.get(`${prefix}decoding.${setting.name}`);
    if (text !== null) pane.decoding[setting.name] = typed(text, setting);
  }
  pane.raw = run.cuts && query.get(`${prefix}raw`) === "true";
  const tab = query.get(`${prefix}tab`);
  if (run.views.includes(tab)) pane.tab = tab;
  const best = Number(query.get(`${prefix}best`));
  if (Number.isInteger(best) && best > 1) pane.best = best;
  for (const [name, text] of query) {
    const [view, setting, ...more] = name.startsWith(prefix) ? name.slice(prefix.length).split(".") : [];
    if (setting === undefined || more.length || !run.views.includes(view)) continue;
    pane.views[view] = { ...pane.views[view], [setting]: guessed(text) };
  }
  return pane;
}

function valueOf(query, prefix, run) {
  const text = query.get(`${prefix}input`);
  return text === null ? null : fromURL(run.input.kind, text);
}

function written(value) {
  if (value === null) return "none";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A setting of the search out of its text. What cannot be read stays a text, and the server says what is wrong. */
function typed(text, setting) {
  if (setting.optional && text === "none") return null;
  if (setting.kind === "integer" || setting.kind === "number") return text === "" || isNaN(text) ? text : Number(text);
  if (setting.kind === "boolean") return text === "true";
  if (setting.kind === "list") return guessed(text);
  return text;
}

function guessed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text === "none" ? null : text;
  }
}
