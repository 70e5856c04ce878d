// How likely a text is: how each token surprised the model, and how a model that generates would go on.

import { latest } from "./api.js";
import { element, short, visible } from "./dom.js";

/** So many tokens are asked for first, to have something to read at once. */
const FIRST = 48;

/** Full colour is so many bits, or as many as the most surprising token has. */
const LEAST_BITS = 8;

/** Of each pane: the seed, how it asks, and what was written last. */
const kept = new WeakMap();

function keptOf(ask) {
  if (!kept.has(ask)) kept.set(ask, { seed: 1, generate: latest(ask.generate), last: null });
  return kept.get(ask);
}

/** Fill a place with a text, how surprising it is, and how it goes on where the run generates. */
export function drawContinuation(place, answer, context) {
  const { ask, run, value } = context;
  const mine = keptOf(ask);
  const text = Array.isArray(value) ? value.join(" ") : value;
  const written = element("span", { class: "continued", title: "The continuation by the model" });
  const said = element("p", { class: "continued-said", role: "status" });
  const seed = element("span", { class: "answer-aside" });
  const another = element("button", { type: "button", onclick: () => write(mine.seed + 1) }, "Another");
  const copy = element("div", { class: "prose", dir: "auto" }, tokensOf(answer, text), written);
  place.append(
    copy,
    ...(run.generates ? [element("p", { class: "continued-tools" }, another, seed), said] : []),
    element("p", { class: "continued-about" }, ...about(answer, run)),
    table(answer),
  );

  function show(found, isOld) {
    const isBefore = found.whole !== undefined && !found.whole.startsWith(found.prompt);
    if (isBefore) copy.prepend(written);
    written.replaceChildren(...linesOf(found.text));
    written.classList.toggle("old", isOld);
  }

  async function write(number) {
    mine.seed = number;
    seed.textContent = `seed ${number}`;
    const rest = remainder(mine.last, text);
    if (rest === null) written.replaceChildren(element("span", { class: "thinking", "aria-label": "writing" }, "…"));
    else show({ text: rest }, true);
    const question = asked(answer, text, context, number);
    try {
      // A piece that is there at once, then all of it, which begins the same.
      for (const length of [...new Set([Math.min(FIRST, question.length), question.length])]) {
        const found = await mine.generate({ ...question, length });
        if (found === undefined) return;
        mine.last = found.texts[0];
        show(found.texts[0], false);
        said.textContent = found.texts[0].text === "" ? "It would end here." : "";
        if (found.texts[0].ended) return;
      }
    } catch (problem) {
      written.replaceChildren();
      said.textContent = problem.message;
    }
  }

  if (run.generates) write(mine.seed);
}

function asked(answer, text, { run, decoding = {} }, seed) {
  const setting = (name) => decoding[name] ?? run.decoding.find((each) => each.name === name)?.value ?? undefined;
  return {
    prompt: text,
    seed,
    length: Math.min(setting("max_length") ?? 200, 400),
    temperature: setting("temperature"),
    top_k: setting("top_k"),
    top_p: setting("top_p"),
    allow_unknown: answer.unknown > 0 ? true : undefined,
  };
}

/** What is left of an earlier continuation where a reader has typed just that; null where something else was typed. */
function remainder(last, text) {
  return last?.whole?.startsWith(last.prompt) && last.whole.startsWith(text) ? last.whole.slice(text.length) : null;
}

/** A text whose ends of lines are such. */
function linesOf(text) {
  return text.split("\n").flatMap((line, number) => (number ? [element("br"), line] : [line]));
}

/** The tokens of what was typed, the stronger the more they surprised. */
function tokensOf(answer, text) {
  const tokens = answer.tokens.slice(0, -1); // the last is the end that no one typed
  const bits = bitsOf(answer);
  const scale = bits.reduce((one, other) => Math.max(one, other), LEAST_BITS);
  const isSpelt = tokens.length === [...text].length;
  const typed = isSpelt ? [...text] : text.split(/\s+/);
  return tokens.flatMap((token, place) => {
    const isEnd = ["\n", "<eos>", "</s>"].includes(token);
    const isUnknown = token === "<unk>" && typed.length === tokens.length;
    const shown = isEnd ? "↵" : isUnknown ? typed[place] : isSpelt ? token : visible(token);
    const style = `typed-token${isEnd ? " end" : isUnknown ? " unknown" : ""}`;
    const node = element("span", { class: style, title: told(isUnknown ? `${shown} (never seen)` : token, bits[place]) }, shown);
    node.style.setProperty("--surprise", (bits[place] / scale).toFixed(3));
    return [node, isEnd ? element("br") : isSpelt ? "" : " "];
  });
}

function bitsOf(answer) {
  return answer.log_probabilities.map((each) => -each / Math.LN2);
}

function told(token, bits) {
  return `${token.length > 1 ? token : visible(token)}: p ${short(2 ** -bits)}, ${bits.toFixed(1)} bits`;
}

function about(answer, run) {
  const bits = answer.nll / Math.LN2;
  const perplexity = answer.perplexity < 100 ? answer.perplexity.toFixed(2) : short(answer.perplexity);
  return [
    element("span", { class: "key surprise" }, "surprising"),
    ...(run.generates ? [element("span", { class: "key continued-key" }, "continuation")] : []),
    `${bits.toFixed(2)} bits a token, perplexity ${perplexity}.`,
  ];
}

function table(answer) {
  const bits = bitsOf(answer);
  const heads = element("tr", {}, ["token", "probability", "bits"].map((name) => element("th", { scope: "col" }, name)));
  const rows = answer.tokens.map((token, place) =>
    element("tr", {}, element("th", { scope: "row" }, visible(token)), [short(2 ** -bits[place]), bits[place].toFixed(2)].map((cell) => element("td", {}, cell))),
  );
  const inner = element("table", {}, element("thead", {}, heads), element("tbody", {}, rows));
  return element("details", {}, element("summary", {}, "Every token’s surprise"), element("div", { class: "table-place" }, inner));
}
