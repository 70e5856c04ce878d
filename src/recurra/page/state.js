// What the page shows, and the address that says it: whoever follows the address sees the same.
//
// A state is a list of one or two panes {run, value, decoding, tab, best, views}. `decoding` holds what differs from
// the run's own settings, `best` the number of the answer that is explained, `views` small settings of views by name.
// The first pane is in the address as run=…&input=…&decoding.width=…&tab=…&best=…&tree.step=…, the second with "2.".

import { fromURL, toURL } from "./inputs.js";

const PREFIXES = ["", "2."];

/** A pane that shows a run as it is. */
export function fresh(run) {
  return { run: run.name, value: null, decoding: {}, tab: run.views[0] ?? null, best: 1, views: {} };
}

/** The panes of an address, and the names of runs that it wants and that are not here. */
export function read(search, runs) {
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
  const [first, second] = panes.map((pane) => runs.find((run) => run.name === pane.run));
  if (second && sharesInput(first, second)) panes[1].value = panes[0].value;
  return { panes, absent };
}

/** The address of some panes: its part from "?". */
export function address(panes, runs) {
  const query = new URLSearchParams();
  const kinds = panes.map((pane) => runs.find((run) => run.name === pane.run));
  panes.forEach((pane, number) => {
    const prefix = PREFIXES[number];
    const put = (name, value) => query.set(prefix + name, value);
    const run = kinds[number];
    put("run", pane.run);
    const text = pane.value === null ? null : toURL(run.input.kind, pane.value);
    if (text !== null && !(number > 0 && sharesInput(kinds[0], run))) put("input", text);
    for (const [name, value] of Object.entries(pane.decoding)) put(`decoding.${name}`, written(value));
    if (pane.tab !== (run.views[0] ?? null)) put("tab", pane.tab);
    if (pane.best !== 1) put("best", pane.best);
    for (const [view, settings] of Object.entries(pane.views)) {
      for (const [name, value] of Object.entries(settings)) put(`${view}.${name}`, written(value));
    }
  });
  return `?${query}`;
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
