// Models that read words and say something of each, or of all: taggers and classifiers out of an exported program.

import { array } from "./engine.js";
import { gatesOf } from "./gates.js";
import { split, vocabulary } from "./texts.js";
import { rounded } from "./writing.js";

/** Of a longer word, so many letters at either end are read. */
const HALF = 20;

/** The inputs of `scores` for some words: their ids, and their spelling where the model reads it. */
function inputsOf(engine, about, tokens) {
  const lower = about.lowercase ? tokens.map((token) => token.toLowerCase()) : tokens;
  const words = about.words_known.ids(lower);
  const found = { words: array(words, 1, words.length), lengths: array([words.length], 1) };
  if (about.characters === null) return found;
  const distinct = new Map();
  const places = tokens.map((token, place) => {
    const key = `${token}\0${words[place]}`;
    if (!distinct.has(key)) distinct.set(key, distinct.size);
    return distinct.get(key);
  });
  const spelt = [...distinct.keys()].map((key) => about.letters_known.ids(clipped([...key.slice(0, key.lastIndexOf("\0"))])));
  const widest = Math.max(1, ...spelt.map((each) => each.length));
  const characters = array(spelt.flatMap((each) => [...each, ...Array(widest - each.length).fill(0)]), spelt.length, widest);
  const widths = array(spelt.map((each) => each.length), spelt.length);
  const read = { characters, widths, places: array(places, 1, places.length) };
  if ("spell" in engine.functions) read.spelt = engine.call("spell", { characters, widths }).vectors;
  return { ...found, ...read };
}

function clipped(letters) {
  return letters.length <= 2 * HALF ? letters : [...letters.slice(0, HALF), ...letters.slice(-HALF)];
}

function knowing(about) {
  const letters_known = about.characters === null ? null : vocabulary(about.characters);
  return { ...about, words_known: vocabulary(about.words), letters_known };
}

function softmax(scores) {
  const most = Math.max(...scores);
  const shares = scores.map((each) => Math.exp(each - most));
  const whole = shares.reduce((sum, each) => sum + each, 0);
  return shares.map((each) => each / whole);
}

function logSum(values) {
  const most = Math.max(...values);
  return most === -Infinity ? most : most + Math.log(values.reduce((sum, each) => sum + Math.exp(each - most), 0));
}

/** Row `number` of the last dimension of an array. */
function row({ data, shape }, number) {
  const size = shape.at(-1);
  return Array.from(data.subarray(number * size, (number + 1) * size));
}

/** A tagger. */
export function tagging(engine, given) {
  const about = knowing(given);
  const chains = about.columns.map((_, number) =>
    `chain${number}` in engine.functions ? engine.call(`chain${number}`, {}) : null,
  );

  function predict(text) {
    const tokens = split(text, { kind: "symbols" });
    if (tokens.length === 0) throw new Error("There is no word in this text.");
    const found = engine.call("scores", inputsOf(engine, about, tokens));
    const answer = { input: tokens.join(" "), tokens, text };
    const probabilities = [];
    const output = [];
    let score = 0;
    about.columns.forEach(({ name, tags }, number) => {
      const scores = tokens.map((_, place) => row(found[`tags${number}`], place));
      const best = chains[number] === null ? chosenApart(scores) : chosenTogether(scores, chains[number]);
      answer[name] = best.tags.map((tag) => tags[tag]);
      probabilities.push(best.probabilities.map(rounded));
      output.push(answer[name].join(" "));
      score += best.score;
    });
    return { ...answer, output: output.join("\t"), score: rounded(score), probabilities };
  }

  return { predict, explain: (_, text, __, ___, rest) => seen(engine, about, split(text, { kind: "symbols" }), rest) };
}

/** The gates of what read the words. */
function seen(engine, about, tokens, rest) {
  return gatesOf(engine.call("gates", inputsOf(engine, about, tokens)), tokens, about.gates, rest, about.views.gates);
}

function chosenApart(scores) {
  const shares = scores.map(softmax);
  const tags = shares.map((each) => each.indexOf(Math.max(...each)));
  const probabilities = tags.map((tag, place) => shares[place][tag]);
  // scores are log p
  return { tags, probabilities, score: tags.reduce((sum, tag, place) => sum + scores[place][tag], 0) };
}

/** The best path of a chain (Viterbi), its log p, and the probability of each of its tags (forward and backward sums). */
function chosenTogether(emissions, { transitions, start, end }) {
  const count = start.data.length;
  const A = (from, to) => transitions.data[from * count + to];
  const tags = [...Array(count).keys()];
  const best = [tags.map((tag) => start.data[tag] + emissions[0][tag])];
  const forward = [[...best[0]]];
  const parents = [];
  for (let t = 1; t < emissions.length; t++) {
    const from = tags.map((to) => {
      let chosen = 0;
      for (const tag of tags) if (best[t - 1][tag] + A(tag, to) > best[t - 1][chosen] + A(chosen, to)) chosen = tag;
      return chosen;
    });
    parents.push(from);
    best.push(tags.map((to) => best[t - 1][from[to]] + A(from[to], to) + emissions[t][to]));
    forward.push(tags.map((to) => logSum(tags.map((tag) => forward[t - 1][tag] + A(tag, to))) + emissions[t][to]));
  }
  const last = emissions.length - 1;
  const backward = [];
  backward[last] = tags.map((tag) => end.data[tag]);
  for (let t = last - 1; t >= 0; t--) {
    backward[t] = tags.map((tag) => logSum(tags.map((to) => A(tag, to) + emissions[t + 1][to] + backward[t + 1][to])));
  }
  const ends = tags.map((tag) => best[last][tag] + end.data[tag]);
  const path = [ends.indexOf(Math.max(...ends))];
  for (let t = last; t > 0; t--) path.unshift(parents[t - 1][path[0]]);
  const whole = logSum(tags.map((tag) => forward[last][tag] + end.data[tag]));
  const probabilities = path.map((tag, t) => Math.exp(forward[t][tag] + backward[t][tag] - whole));
  return { tags: path, probabilities, score: Math.max(...ends) - whole };
}

/** A classifier of one text. */
export function classification(engine, given) {
  const about = knowing(given);

  function predict(text, decoding) {
    const tokens = split(text, about.text);
    if (tokens.length === 0) throw new Error("There is no word in this text.");
    const { scores, attention } = engine.call("scores", inputsOf(engine, about, tokens));
    const members = [...Array(scores.shape[0]).keys()].map((number) => softmax(row(scores, number)));
    const shares = about.classes.map((_, at) => members.reduce((sum, each) => sum + each[at], 0) / members.length);
    const order = [...shares.keys()].sort((one, other) => shares[other] - shares[one]);
    const [best, ...others] = order.map((at) => about.classes[at]);
    const { alternatives: most, abstain } = { ...about.decoding, ...decoding };
    const isSure = shares[order[0]] >= abstain;
    const found = {
      input: text,
      output: isSure ? best : "-",
      score: rounded(Math.log(shares[order[0]])),
      label: best,
      ...(!isSure && { abstained: true }),
      probabilities: Object.fromEntries(order.slice(0, most + 1).map((at) => [about.classes[at], rounded(shares[at])])),
      alternatives: others.slice(0, most),
    };
    if (attention) found.tokens = tokens;
    if (attention) found.attention = [...Array(attention.shape[1]).keys()].map((number) => row(attention, number).map(rounded));
    const unknown = about.words_known.unknownAmong(about.lowercase ? tokens.map((each) => each.toLowerCase()) : tokens);
    return unknown.length > 0 ? { ...found, not_in_vocabulary: unknown } : found;
  }

  return { predict, explain: (_, text, __, ___, rest) => seen(engine, about, split(text, about.text), rest) };
}
