// A model that reads a text and writes another, out of an exported program: its answers, and views of how they came about.

import { array, rowsOf } from "./engine.js";
import { gatesOf } from "./gates.js";
import { beam, drawn, followed, largest, randomFrom } from "./search.js";
import { join, split, vocabulary } from "./texts.js";

const END = "</s>";
const END_SHOWN = "∎";
const DROPPED = 4; // of what a step of a beam dropped, so many of the best are shown

/** `predict(input, decoding)` and `explain(view, input, decoding, best)` of a model; `about` is what the page knows of it. */
export function writing(engine, about) {
  const source = vocabulary(about.source.vocabulary);
  const target = about.target.vocabulary.tokens;
  const end = about.end;

  /** Ids of what is read, with the end where the model reads one. */
  function read(text) {
    const tokens = split(text, about.source);
    return { tokens, ids: [...source.ids(tokens), about.source_end] };
  }

  function begun(ids) {
    const found = engine.call("start", {
      source: array(ids, 1, ids.length),
      lengths: array([ids.length], 1),
    });
    const named = (name) => Object.entries(found).filter(([each]) => each.startsWith(name));
    const fixed = Object.fromEntries(named("fixed"));
    let states = Object.fromEntries(named("state"));
    /** See search.js. */
    return (tokens, rows) => {
      const moved = Object.entries(states).map(([name, state]) => [name, rowsOf(state, rows)]);
      const now = engine.call("step", { tokens: array(tokens, tokens.length), ...Object.fromEntries(moved), ...fixed });
      states = Object.fromEntries(Object.entries(now).filter(([name]) => name.startsWith("state")));
      const row = (each, number) => each.data.subarray(number * each.shape[1], (number + 1) * each.shape[1]);
      return {
        logP: (number) => row(now.log_p, number),
        weights: (number) => (now.weights ? row(now.weights, number) : null),
      };
    };
  }

  function searched(ids, changed) {
    const decoding = { ...about.decoding, ...changed };
    const { width, best, max_length: most, max_ratio: ratio, min_length: least } = decoding;
    const bound = ratio === null ? most : Math.min(most, Math.max(least + 1, Math.floor(ratio * ids.length) + 10));
    const banned = decoding.banned.flatMap((token) => {
      const id = target.indexOf(token);
      if (id < 0) throw new Error(`decoding.banned: ${token} is not a token of the answers.`);
      return [id];
    });
    const never = decoding.unknown ? about.never.filter((id) => target[id] !== "<unk>") : about.never;
    const options = {
      first: about.first,
      length: Math.max(1, least, bound),
      penalty: decoding.length_penalty,
      coverage: decoding.coverage_penalty,
      rules: { end, banned: [...never, ...banned], minLength: least, noRepeat: decoding.no_repeat },
    };
    if (decoding.search === "beam") return beam(begun(ids), { ...options, width, best });
    if (decoding.search === "greedy") {
      return { answers: [followed(begun(ids), (logP) => largest(logP, 1)[0], options)], layers: [] };
    }
    const { temperature, top_k: topK, top_p: topP } = decoding;
    const answers = [...Array(best).keys()].map((number) => {
      const random = randomFrom(decoding.seed + number);
      return followed(begun(ids), (logP) => drawn(logP, random, { temperature, topK, topP }), options);
    });
    return { answers: answers.sort((one, other) => other.score - one.score), layers: [] };
  }

  /** An answer as the page takes it. */
  function told(answer) {
    const tokens = (answer.ended ? answer.tokens.slice(0, -1) : answer.tokens).map((id) => target[id]);
    const found = {
      output: join(tokens, about.target),
      score: rounded(answer.score),
      log_probability: rounded(answer.logProbability),
      tokens,
    };
    if (!answer.ended) found.cut_off = true;
    if (answer.weights.length > 0) found.alignment = answer.weights.map((row) => Array.from(row, rounded));
    return found;
  }

  function predict(text, decoding) {
    const { tokens, ids } = read(text);
    if (tokens.length === 0) return { input: text, output: "", score: 0, tokens: [], alternatives: [] };
    const [best, ...others] = searched(ids, decoding).answers.map(told);
    const found = { input: text, ...best, alternatives: others };
    if (best.alignment) found.source_tokens = [...tokens, END];
    const unknown = source.unknownAmong(tokens);
    return unknown.length > 0 ? { ...found, not_in_vocabulary: unknown } : found;
  }

  const views = {
    gates({ tokens, ids, rest }) {
      const found = engine.call("gates", { source: array(ids, 1, ids.length), lengths: array([ids.length], 1) });
      return gatesOf(found, [...tokens, END], about.gates, rest, about.views.gates);
    },
    attention({ tokens, answer, text }) {
      if (answer.alignment === undefined) throw new Error("This model has no attention.");
      const rows = [...answer.tokens, END].slice(0, answer.alignment.length);
      const columns = [...tokens, END].slice(0, answer.alignment[0].length);
      return {
        kind: "heat_map",
        ...about.views.attention,
        caption: `${text} → ${answer.output}`,
        rows,
        columns,
        weights: answer.alignment.map((row) => row.map((each) => Math.min(1, each))),
        source: columns,
        target: rows,
      };
    },
    probabilities({ ids, found, answer, text }) {
      const step = begun(ids);
      const logs = found.tokens.map((token, place) => {
        const now = step([place === 0 ? about.first : found.tokens[place - 1]], [0]);
        return now.logP(0)[token];
      });
      const whole = logs.reduce((sum, each) => sum + each, 0);
      const caption = `${text} → ${answer.output}, p ${significant(Math.exp(whole))}`;
      const tokens = found.tokens.map((id) => (id === end ? END : target[id]));
      return surprises(tokens, logs, caption, about.views.probabilities);
    },
    tree({ searched: { answers, layers }, decoding }) {
      if (layers.length === 0) throw new Error("Only a beam has steps to show.");
      const names = (id) => (id === end ? END_SHOWN : target[id]);
      return treeOf(layers, answers, names, `A beam of width ${decoding.width}`, about.views.tree);
    },
  };

  function explain(view, text, changed, best, rest) {
    const { tokens, ids } = read(text);
    if (tokens.length === 0) throw new Error("There is nothing to read.");
    const decoding = { ...about.decoding, ...changed };
    const searchedNow = searched(ids, { ...decoding, best: Math.max(best, decoding.best) });
    const found = searchedNow.answers[best - 1];
    if (found === undefined) throw new Error(`The search found ${searchedNow.answers.length} answers.`);
    return views[view]({ rest, text, tokens, ids, decoding, searched: searchedNow, found, answer: told(found) });
  }

  return { predict, explain };
}

/** The view of how improbable each token was. */
export function surprises(tokens, logs, caption, words) {
  const bits = logs.map((log) => Math.max(0, -log / Math.LN2));
  const scale = Math.max(8, ...bits);
  const mean = bits.reduce((sum, each) => sum + each, 0) / bits.length;
  const shown = tokens.map((token) => (token === END ? END_SHOWN : token));
  return {
    kind: "tokens",
    ...words,
    caption,
    tokens,
    rows: [
      {
        name: "",
        strengths: bits.map((each) => rounded(-each / scale)),
        said: bits.map((each, place) => `p ${significant(Math.exp(logs[place]))}, ${each.toFixed(2)} bits`),
        heading: `Surprise: ${caption}`,
        note: `${mean.toFixed(2)} bits a token on average, perplexity ${(2 ** mean).toFixed(2)}; full colour is ${significant(scale, 3)} bits`,
        total: "",
      },
    ],
    scale: ["0", `${significant(scale, 3)} bits`],
    signed: false,
    asked: "",
    total: "",
    first: 0,
    left_out: 0,
    table: { columns: ["token", "p", "bits"], rows: shown.map((token, place) => [token, Math.exp(logs[place]), bits[place]]) },
    subtitle: "",
  };
}

/** The view of a beam: of each step all that was kept, then the best that was dropped. */
function treeOf(layers, answers, names, caption, words) {
  const ways = layers.map(() => new Map()); // by place, the number of the best answer that goes through it
  [...answers.entries()].reverse().forEach(([number, answer]) => {
    for (let level = answer.layer, place = answer.place; level >= 0; level--) {
      ways[level].set(place, number + 1);
      place = layers[level].parents[place];
    }
  });
  let texts = [];
  const steps = layers.map((layer, number) => {
    const own = layer.tokens.map(names);
    texts = own.map((name, place) => (number ? `${texts[layer.parents[place]]} ${name}` : name));
    const nodes = own.map((token, place) => ({
      place,
      parent: number ? layer.parents[place] : null,
      token,
      probability: rounded(Math.exp(layer.logProbabilities[place])),
      score: rounded(layer.scores[place]),
      kept: layer.kept[place],
      finished: layer.finished[place],
      answer: ways[number].get(place) ?? null,
      text: texts[place],
    }));
    nodes.sort((one, other) => other.kept - one.kept || other.score - one.score);
    const kept = nodes.filter((node) => node.kept).length;
    return { kept, weighed: own.length, nodes: nodes.slice(0, kept + DROPPED) };
  });
  return { kind: "tree", ...words, caption, steps, answers: answers.map(({ layer, place }) => ({ step: layer, place })) };
}

/** To six places, as the API gives numbers. */
export function rounded(number) {
  return Math.round(number * 1e6) / 1e6;
}

/** A number to so many digits, without zeros at its end. */
export function significant(number, digits = 4) {
  return String(Number(number.toPrecision(digits)));
}
