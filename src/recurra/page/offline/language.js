// A language model out of an exported program: how probable a text is, and how it goes on.

import { array } from "./engine.js";
import { gatesOf } from "./gates.js";
import { allowed, drawn, randomFrom } from "./search.js";
import { join, split, vocabulary } from "./texts.js";
import { rounded, surprises } from "./writing.js";

/** `predict(text)`, `generate(question)` and the view of probabilities of a model; `about` is what the page knows of it. */
export function language(engine, about) {
  const words = vocabulary(about.text.vocabulary);
  const end = about.end;

  /** The tokens of all lines of a text, with the end of each. */
  function read(text) {
    const lines = text.split("\n").map((line) => split(line, about.text));
    const ids = lines.flatMap((line) => [...words.ids(line), end]);
    return { ids, tokens: ids.map((id) => words.tokens[id]), unknown: words.unknownAmong(lines.flat()) };
  }

  /** Each token is read after the one before it, the first after the end of a line. */
  function inputs(ids) {
    return {
      tokens: array([end, ...ids.slice(0, -1)], 1, ids.length),
      lengths: array([ids.length], 1),
      targets: array(ids, 1, ids.length),
      ...engine.call("begin", {}),
    };
  }

  function logsOf(ids) {
    return Array.from(engine.call("likelihoods", inputs(ids)).log_p.data);
  }

  function predict(text) {
    const { tokens, ids } = read(text);
    const logs = logsOf(ids);
    const total = logs.reduce((sum, each) => sum + each, 0);
    return {
      input: text,
      output: `${total.toFixed(4)}\t${ids.length}`,
      score: rounded(total),
      nll: rounded(-total / ids.length),
      perplexity: rounded(Math.exp(-total / ids.length)),
      tokens,
      log_probabilities: logs.map(rounded),
      unknown: ids.filter((id) => id === about.text.vocabulary.unknown).length,
    };
  }

  function generate({ prompt = "", count = 1, seed = 1, length, temperature, top_k: topK, top_p: topP, allow_unknown: allows }) {
    const { ids, unknown } = read(prompt);
    if (unknown.length > 0 && !allows) {
      throw new Error(`The prompt contains ${unknown.slice(0, 5).map((each) => `“${each}”`).join(", ")}, which is not in the model's vocabulary.`);
    }
    const keep = {
      temperature: temperature ?? about.decoding.temperature,
      topK: topK ?? about.decoding.top_k,
      topP: topP ?? about.decoding.top_p,
    };
    const banned = allows || about.text.vocabulary.unknown === null ? [] : [about.text.vocabulary.unknown];
    const most = length ?? about.decoding.max_length;
    const given = [end, ...ids.slice(0, -1)];
    return [...Array(count).keys()].map((number) => goOn(prompt, given, randomFrom(seed + number * 7919), most, keep, banned));
  }

  function goOn(prompt, given, random, most, keep, banned) {
    let states = engine.call("begin", {});
    if (given.length > 1) {
      const before = given.slice(0, -1);
      states = engine.call("read", { tokens: array(before, 1, before.length), lengths: array([before.length], 1), ...states });
    }
    const ids = [];
    let total = 0;
    for (let last = given.at(-1); ids.length < most; last = ids.at(-1)) {
      const { log_p: log, ...after } = engine.call("step", { tokens: array([last], 1), ...states });
      states = after;
      const logP = allowed(log.data, [], { end: -1, banned });
      const token = drawn(logP, random, keep);
      ids.push(token);
      total += logP[token];
    }
    const text = textAfter(prompt, ids);
    const tokens = ids.map((id) => words.tokens[id]);
    return { prompt, text, whole: prompt + text, tokens, log_probability: rounded(total), ended: false };
  }

  /** What some tokens add to a prompt. */
  function textAfter(prompt, ids) {
    const line = split(prompt.split("\n").at(-1), about.text);
    const before = join(line, about.text);
    const lines = [[...line]];
    for (const id of ids) {
      if (id === end) lines.push([]);
      else lines.at(-1).push(words.tokens[id]);
    }
    const whole = lines.map((each) => join(each, about.text)).join("\n");
    return whole.startsWith(before) ? whole.slice(before.length) : ` ${whole}`;
  }

  const views = {
    gates(text, rest) {
      const { ids } = read(text);
      const before = [end, ...ids.slice(0, -1)];
      const found = engine.call("gates", inputs(ids));
      return gatesOf(found, before.map((id) => words.tokens[id]), about.gates, rest, about.views.gates);
    },
    probabilities(text) {
      const { tokens, ids } = read(text);
      const logs = logsOf(ids);
      const bits = logs.reduce((sum, each) => sum - each / Math.LN2, 0) / logs.length;
      return surprises(tokens, logs, `${bits.toFixed(2)} bits a token`, about.views.probabilities);
    },
  };

  return { predict, generate, explain: (view, text, _, __, rest) => views[view](text, rest) };
}
