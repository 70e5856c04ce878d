// What follows on a series: the chart of what was given and of what comes, and the numbers.

import { latest } from "./api.js";
import { changingChart, LOW } from "./chart.js";
import { percent } from "./classes.js";
import { sent } from "./controls.js";
import { element, redrawn, short } from "./dom.js";
import { rows } from "./numbers.js";

/** So many steps of what was given are shown before what follows. */
const SHOWN = 200;

/** Of the least origin so many steps are read. */
const LEAST = 2;

/** Between which quantiles lie so many percent, the most first; these are drawn inside of the interval of the answer. */
const INNER = [[80, "0.1", "0.9"], [50, "0.25", "0.75"]];

/** Fill a place with a series and what follows, from its end or from an earlier step. */
export function drawForecast(place, answer, { run, value, ask, decoding }) {
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
    place.append(table(answer, names, given.length));
    return;
  }
  const share = shareOf(run, decoding);
  const shown = { origin: given.length, answer, share };
  const before = Math.max(0, given.length - SHOWN);
  const least = Math.max(LEAST, before + 1);
  const mayMove = ask?.predict && given.length > least;
  const keys = ["given", "forecast", ...intervals(answer, share).map(({ share }) => `${share} % interval`)];
  const charts = names.map((_, column) =>
    changingChart({
      ...drawn(given, shown, column, names),
      steps: given.length - before + answer.values.length,
      first: before + 1,
      hint: column === 0,
      onmove: mayMove ? (step) => from.move(before + step) : null,
      ...(names.length > 1 ? { height: LOW } : {}),
    }),
  );
  const numbers = element("div", {}, table(answer, names, given.length, share));
  const from = originOf({ least, last: given.length, onmove: asked });
  const question = latest((origin, options) =>
    ask.predict({ inputs: [cut(value, origin)], decoding: sent(run, decoding) }, options),
  );

  /** Ask for the forecast from a step, and draw it beside what came. */
  async function asked(origin) {
    show({ origin, answer: null, share });
    if (origin === given.length) {
      question.stop();
      return show({ origin, answer, share });
    }
    const found = await question(origin).catch((problem) => from.say(problem.message));
    return found && show({ origin, answer: found.answers[0], share });
  }

  function show(next) {
    charts.forEach((each, column) => each.show(drawn(given, next, column, names)));
    if (next.answer) redrawn(numbers, (fresh) => fresh.append(table(next.answer, names, next.origin, share)));
  }

  const pictures = charts.map(({ node }, column) =>
    element("div", {}, names.length > 1 && element("h3", { class: "column-name" }, names[column]), node),
  );
  place.append(legend(keys), element("div", { class: "charts" }, pictures), mayMove ? from.node : "", numbers);
}

/** A slider over the steps from which a forecast may start. */
function originOf({ least, last, onmove }) {
  const slider = element("input", { type: "range", min: least, max: last, step: 1, value: last, "aria-label": "Forecast after step" });
  const said = element("output", { class: "origin-said" });
  const node = element("p", { class: "origin" }, element("span", { "aria-hidden": "true" }, "Forecast after step"), slider, said);

  function move(to) {
    const step = Math.min(last, Math.max(least, to));
    slider.value = step;
    slider.setAttribute("aria-valuetext", words(step));
    say(words(step));
    onmove(step);
  }

  const words = (step) => (step === last ? `${step}, the last` : `${step} of ${last}`);
  const say = (text) => {
    said.textContent = text;
  };
  slider.addEventListener("input", () => move(Number(slider.value)));
  say(words(last));
  return { node, move, say };
}

/** The first steps of a series; what is known ahead of them stays known. */
function cut(value, count) {
  if (Array.isArray(value)) return value.slice(0, count);
  const first = (part) => (Array.isArray(part) ? part.slice(0, count) : part);
  const past = value.past && (Array.isArray(value.past) ? first(value.past) : Object.fromEntries(Object.entries(value.past).map(([name, cells]) => [name, first(cells)])));
  return { ...value, values: first(value.values), ...(past ? { past } : {}) };
}

/** How many percent of the values the interval of an answer is to hold. */
function shareOf(run, decoding) {
  const own = run.decoding.find(({ name }) => name === "coverage")?.value;
  return Number((100 * (decoding?.coverage ?? own ?? 0.9)).toPrecision(4));
}

/** The intervals of an answer, the widest first: {share, low, high}, each end a list of steps. */
function intervals({ low, high, quantiles }, share) {
  if (!low) return [];
  const inner = quantiles ? INNER.filter(([within]) => within < share) : [];
  return [{ share, low, high }, ...inner.map(([within, a, b]) => ({ share: within, low: quantiles[a], high: quantiles[b] }))];
}

/** What a chart of a column shows: what was given up to the origin, what came, and a forecast where there is one. */
function drawn(given, { origin, answer, share }, column, names) {
  const pick = (steps) => steps.map((step) => step[column]);
  const before = Math.max(0, given.length - SHOWN);
  const past = pick(given.slice(before, origin));
  const came = pick(given.slice(origin));
  const next = answer ? pick(answer.values) : [];
  const last = past.length ? [past.at(-1)] : [];
  const from = past.length - last.length;
  const within = answer ? intervals(answer, share) : [];
  const bands = within.map(({ low, high }) => ({ low: [...last, ...pick(low)], high: [...last, ...pick(high)], from }));
  const said = (step) => {
    const what = `Step ${before + step + 1}`;
    if (step < past.length) return `${what}, given: ${short(past[step], 5)}`;
    const ahead = step - past.length;
    const real = ahead < came.length ? `, actual ${short(came[ahead], 5)}` : "";
    if (ahead >= next.length) return `${what}${real}`;
    const when = answer.times ? `, ${answer.times[ahead]}` : "";
    const ranges = within.map(({ share: held, low, high }) => `, with ${held} % from ${short(low[ahead][column], 4)} to ${short(high[ahead][column], 4)}`);
    return `${what}${when}, ${ahead + 1} ahead: ${short(next[ahead], 5)}${real}${ranges.join("")}`;
  };
  const ending = next.length ? `, ending at ${short(next.at(-1), 4)}` : "";
  return {
    lines: [
      { values: past, kind: "given", from: 0 },
      { values: came.length ? [...last, ...came] : [], kind: "came", from },
      { values: [...last, ...next], kind: "follows", from },
    ],
    bands,
    marked: past.length,
    label: `${names[column]}: ${past.length} given steps and a forecast of ${next.length}${ending}`,
    said,
  };
}

/** What lines and colours mean: what was given, what follows, and its range. */
function legend(names, style = "") {
  const kinds = ["given", "follows", "between", "between inner", "between innermost"];
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

function table(answer, names, given, share = 90) {
  const ends = [50 - share / 2, 50 + share / 2].map((level) => `${short(level, 3)} %`);
  const heads = [answer.times ? "time" : "step", ...names.flatMap((name) => (answer.low ? [name, ...ends] : [name]))];
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
