// What follows on a series: the chart of what was given and of what comes, and the numbers.

import { chart, LOW } from "./chart.js";
import { percent } from "./classes.js";
import { element, short } from "./dom.js";
import { rows } from "./numbers.js";

/** So many steps of what was given are shown before what follows. */
const SHOWN = 200;

/** Fill a place with a series and what follows. */
export function drawForecast(place, answer, { run, value }) {
  const given = rows(value) ?? [];
  if (!answer.values.length) {
    place.append(element("p", { class: "answer-words" }, "Give at least one step to forecast from."));
    return;
  }
  const names = answer.values[0].map((_, column) => run.input.columns[column] ?? `value ${column + 1}`);
  if (answer.probabilities) {
    const found = coins(given, answer, names);
    place.append(legend(["given", "forecast: the stronger, the more probable"], "filled"), found);
    found.scrollLeft = found.scrollWidth; // to what follows
  }
  else {
    const charts = names.map((_, column) => one(given, answer, column, names));
    const keys = ["given", "forecast", ...(answer.low ? ["90 % interval"] : [])];
    place.append(legend(keys), element("div", { class: "charts" }, charts));
  }
  place.append(table(answer, names, given.length));
}

function one(given, answer, column, names) {
  const pick = (steps) => steps.map((step) => step[column]);
  const past = pick(given.slice(-SHOWN));
  const before = given.length - past.length;
  const next = pick(answer.values);
  const last = past.length ? [past.at(-1)] : [];
  const from = past.length - last.length;
  const band = answer.low ? { low: [...last, ...pick(answer.low)], high: [...last, ...pick(answer.high)], from } : null;
  const said = (step) => {
    const what = `Step ${before + step + 1}`;
    if (step < past.length) return `${what}, given: ${short(past[step], 5)}`;
    const ahead = step - past.length;
    const when = answer.times ? `, ${answer.times[ahead]}` : "";
    const range = band ? `, with 90 % from ${short(answer.low[ahead][column], 4)} to ${short(answer.high[ahead][column], 4)}` : "";
    return `${what}${when}, ${ahead + 1} ahead: ${short(next[ahead], 5)}${range}`;
  };
  const picture = chart({
    lines: [
      { values: past, kind: "given", from: 0 },
      { values: [...last, ...next], kind: "follows", from },
    ],
    band,
    marked: past.length,
    first: before + 1,
    label: `${names[column]}: ${past.length} given steps and a forecast of ${next.length}, ending at ${short(next.at(-1), 4)}`,
    said,
    hint: column === 0,
    ...(names.length > 1 ? { height: LOW } : {}),
  });
  return element("div", {}, names.length > 1 && element("h3", { class: "column-name" }, names[column]), picture);
}

/** What lines and colours mean: what was given, what follows, and its range. */
function legend(names, style = "") {
  const kinds = ["given", "follows", "between"];
  const keys = names.map((name, number) => element("span", { class: `key ${kinds[number]}` }, name));
  return element("p", { class: `chart-keys ${style}`, "aria-hidden": true }, keys);
}

/** Values that are 0 or 1: a row for each, dark where it is 1, and what follows by its probability. */
function coins(given, answer, names) {
  const past = given.slice(-64);
  const body = names.map((name, column) => {
    const cell = (p, isGiven) => {
      const found = element("td", { class: isGiven ? "coin given" : "coin", title: `${name}: ${isGiven ? p : percent(p)}` });
      found.style.setProperty("--p", p);
      return found;
    };
    const before = past.map((step) => cell(step[column], true));
    const after = answer.probabilities.map((step) => cell(step[column], false));
    return element("tr", {}, element("th", { scope: "row" }, name), before, after);
  });
  const label = `${past.length} given steps and a forecast of ${answer.probabilities.length}`;
  return element("div", { class: "table-place" }, element("table", { class: "coins", "aria-label": label }, element("tbody", {}, body)));
}

function table(answer, names, given) {
  const heads = [answer.times ? "time" : "step", ...names.flatMap((name) => (answer.low ? [name, "5 %", "95 %"] : [name]))];
  const body = answer.values.map((step, ahead) => {
    const cells = step.flatMap((value, column) =>
      answer.low ? [value, answer.low[ahead][column], answer.high[ahead][column]] : [value],
    );
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, answer.times?.[ahead] ?? given + ahead + 1),
      cells.map((cell) => element("td", {}, short(cell, 5))),
    );
  });
  const head = element("thead", {}, element("tr", {}, heads.map((name) => element("th", { scope: "col" }, name))));
  const inner = element("table", {}, head, element("tbody", {}, body));
  return element("details", {}, element("summary", {}, "The forecast as numbers"), element("div", { class: "table-place" }, inner));
}
