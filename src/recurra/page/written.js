// A sequence that was written, with the other answers that the search found, and others that may be drawn.

import { latest } from "./api.js";
import { percent } from "./classes.js";
import { element } from "./dom.js";
import { fixed } from "./figure.js";
import { formula } from "./formula.js";
import { hex } from "./vector.js";

/** So many are drawn at once. */
const DRAWN = 8;

/** Fill a place with a text that was written. */
export function drawWritten(place, answer, context) {
  const { best, run } = context;
  const every = [answer, ...(answer.alternatives ?? [])];
  const chosen = every[best - 1] ?? answer;
  place.append(large(chosen, context));
  if (every.length > 1) place.append(list(every, context), ...order(every));
  if (run.generates) place.append(draws(context));
}

function large(chosen, context) {
  const notes = [];
  if (chosen.cut_off) notes.push("The answer was cut off at the maximum length.");
  if (chosen.output === "") notes.push(chosen.tokens?.length ? "The answer has tokens, but no visible text." : "The answer is empty: the model writes nothing.");
  const math = formula(chosen.output);
  return element(
    "div",
    { class: "written" },
    swatchOf(context),
    element(
      "div",
      { class: "written-text" },
      math && element("p", { class: "answer-large formula" }, math),
      chosen.output !== "" && element("p", { class: math ? "written-source" : `answer-large ${sized(chosen.output)}`, dir: "auto" }, chosen.output),
      notes.map((note) => element("p", { class: "answer-words" }, note)),
    ),
  );
}

/** An answer among others. */
function shown(text) {
  return formula(text, "inline") ?? (text === "" ? "(nothing)" : text);
}

/** Long answers are text, not a headline. */
function sized(text) {
  return text.length > 160 ? "long" : text.length > 48 ? "middle" : "";
}

function swatchOf({ run, value }) {
  if (!run.input.colour || !Array.isArray(value)) return null;
  const node = element("span", { class: "written-swatch", role: "img", "aria-label": `The colour ${hex(value, run.input.colour)}` });
  node.style.background = hex(value, run.input.colour);
  return node;
}

function list(every, { best, choose }) {
  const most = every.reduce((one, { log_probability: log }) => Math.max(one, log), -Infinity);
  const rows = every.map((each, number) => {
    const bar = element("span", { class: "bar" });
    bar.style.width = `${100 * Math.exp(each.log_probability - most)}%`;
    const isChosen = number + 1 === best;
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", class: "nth", "aria-pressed": String(isChosen), title: "Explain this answer", onclick: () => choose(number + 1) },
        element("span", { class: "nth-number" }, `${number + 1}`),
        element("span", { class: "nth-text", dir: "auto" }, shown(each.output)),
        element("span", { class: "nth-bar", "aria-hidden": true }, bar),
        element("span", { class: "nth-p" }, percent(Math.exp(each.log_probability))),
        element("span", { class: "nth-score" }, `score ${fixed(each.score, 2)}`),
      ),
    );
  });
  return element("ol", { class: "nbest", "aria-label": "Answers, the best first; the pressed one is explained below" }, rows);
}

/** A word where a more probable answer stands below another, since nothing else says why. */
function order(every) {
  const logs = every.map((each) => each.log_probability);
  const isSorted = logs.every((log, number) => number === 0 || log <= logs[number - 1]);
  const why = "Sorted by score, which takes the length into account, not by probability alone.";
  return isSorted ? [] : [element("p", { class: "took" }, why)];
}

/** Of each pane: the seed and how it asks, and what was drawn of which input. */
const kept = new WeakMap();

/** What else may be written: drawn by chance, as probable as the model thinks. */
function draws({ ask, run, value, decoding = {} }) {
  if (!kept.has(ask)) kept.set(ask, { seed: 0, generate: latest(ask.generate), of: null, texts: [] });
  const mine = kept.get(ask);
  const chips = element("ul", { class: "drawn", "aria-live": "polite" });
  const said = element("p", { class: "continued-said", role: "status" });
  const button = element("button", { type: "button", onclick: draw }, "Draw some");
  const about = element("span", { class: "answer-aside" }, run.input.colour ? "other names, sampled at random" : "other answers, sampled at random");
  const asked = JSON.stringify(value);

  function show() {
    button.textContent = mine.texts.length && mine.of === asked ? "Draw others" : "Draw some";
    const times = new Map();
    for (const { text } of mine.of === asked ? mine.texts : []) times.set(text, (times.get(text) ?? 0) + 1);
    const often = [...times].sort(([, one], [, other]) => other - one);
    chips.replaceChildren(...often.map(([text, count]) => element("li", { title: text }, ...chip(text, count))));
  }

  function* chip(text, count) {
    if (run.input.colour) {
      const dot = element("span", { class: "drawn-dot" });
      dot.style.background = hex(value, run.input.colour);
      yield dot;
    }
    yield element("span", { dir: "auto" }, shown(text));
    if (count > 1) yield element("span", { class: "answer-aside" }, `${count} times`);
  }

  async function draw() {
    mine.seed += 1;
    said.textContent = "";
    button.setAttribute("aria-busy", "true");
    try {
      const { temperature, top_k, top_p } = decoding;
      const found = await mine.generate({ prompt: value, count: DRAWN, seed: mine.seed, temperature, top_k, top_p });
      if (found !== undefined) Object.assign(mine, { of: asked, texts: found.texts });
      show();
    } catch (problem) {
      said.textContent = problem.message;
    }
    button.removeAttribute("aria-busy");
  }

  show();
  return element("div", { class: "draws" }, element("p", { class: "continued-tools" }, button, about), chips, said);
}
