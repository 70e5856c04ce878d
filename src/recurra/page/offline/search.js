// Searches over the steps of a decoder for one input: greedy, beam and sampling, as docs/search.md defines them.
//
// A step is `step(tokens, rows) -> {logP, weights}`: it continues some rows of what the step before gave by a token each;
// logP(row) and weights(row) are the numbers of a row, weights is null where the model does not look anywhere.

const LEAST_COVERED = 1e-10;

/** By what log P of a sequence of so many tokens is divided: ((5 + length) / 6) ^ penalty. */
export function divisor(length, penalty) {
  return ((5 + length) / 6) ** penalty;
}

/** β Σ_j log min(1, Σ_i α_ij): what coverage takes from a score, from the sums over i. */
export function lackOf(sums, penalty) {
  if (!penalty || sums === null) return 0;
  return penalty * sums.reduce((total, sum) => total + Math.log(Math.min(1, Math.max(LEAST_COVERED, sum))), 0);
}

/** log p (V,) of what may follow some tokens: -Infinity for what the rules forbid. */
export function allowed(logP, past, { end, banned = [], minLength = 0, noRepeat = 0, prefix = [] }) {
  const found = Float64Array.from(logP);
  if (past.length < prefix.length) {
    const only = prefix[past.length];
    return found.map((value, token) => (token === only ? value : -Infinity));
  }
  for (const token of banned) found[token] = -Infinity;
  if (past.length < minLength) found[end] = -Infinity;
  if (noRepeat > 0 && past.length >= noRepeat) {
    const last = past.slice(past.length - noRepeat + 1);
    for (let start = 0; start + noRepeat <= past.length; start++) {
      if (last.every((token, at) => past[start + at] === token)) found[past[start + noRepeat - 1]] = -Infinity;
    }
  }
  return found;
}

/** The places of the `count` largest numbers, the largest first; of equals, the first. */
export function largest(values, count) {
  const found = [];
  for (let place = 0; place < values.length; place++) {
    const value = values[place];
    if (found.length === count && !(value > values[found[count - 1]])) continue;
    let at = found.length;
    while (at > 0 && value > values[found[at - 1]]) at--;
    found.splice(at, 0, place);
    if (found.length > count) found.pop();
  }
  return found;
}

/**
 * The best answers of a beam, {tokens, logProbability, score, ended, weights} each, and what it weighed step by step:
 * [{parents, tokens, logProbabilities, scores, kept, finished}], with the layer and place at which each answer ends.
 */
export function beam(step, { first, width, best, length, penalty = 0, coverage = 0, rules }) {
  let front = [{ tokens: [], total: 0, weights: [], covered: null, node: -1, row: 0 }];
  let last = [first];
  let answers = [];
  const layers = [];
  const largestDivisor = divisor(length, penalty);
  for (let written = 1; written <= length && front.length > 0; written++) {
    const now = step(last, front.map((each) => each.row));
    const layer = { parents: [], tokens: [], logProbabilities: [], scores: [], kept: [], finished: [] };
    const candidates = [];
    front.forEach((hypothesis, row) => {
      const logP = allowed(now.logP(row), hypothesis.tokens, rules);
      const weights = now.weights(row);
      const covered = weights && coverage ? sum(hypothesis.covered, weights) : null;
      const lack = lackOf(covered, coverage);
      for (const token of largest(logP, width)) {
        if (logP[token] === -Infinity) continue;
        const total = hypothesis.total + logP[token];
        const place = layer.tokens.length;
        layer.parents.push(hypothesis.node);
        layer.tokens.push(token);
        layer.logProbabilities.push(logP[token]);
        layer.scores.push(total / divisor(written, penalty) + lack);
        layer.kept.push(false);
        layer.finished.push(false);
        candidates.push({ hypothesis, row, token, total, lack, covered, weights, place });
      }
    });
    if (candidates.length === 0) throw new Error("The rules of the search leave nothing to write.");
    candidates.sort((one, other) => other.total - one.total); // stable: of equals, that of the better parent
    const live = [];
    for (const each of candidates.slice(0, width)) {
      const { hypothesis, token, total, lack, covered, weights, place, row } = each;
      layer.kept[place] = true;
      const tokens = [...hypothesis.tokens, token];
      const looked = weights === null ? [] : [...hypothesis.weights, weights];
      const ended = token === rules.end;
      if (ended || written === length) {
        layer.finished[place] = true;
        const score = total / divisor(written, penalty) + lack;
        answers.push({ tokens, logProbability: total, score, ended, weights: looked, layer: written - 1, place });
      } else live.push({ tokens, total, weights: looked, covered, node: place, row });
    }
    layers.push(layer);
    answers.sort((one, other) => other.ended - one.ended || other.score - one.score);
    answers = answers.slice(0, best);
    // log P only falls and its divisor only grows, up to that of the length; coverage only takes.
    const reach = Math.max(...live.map((each) => each.total)) / largestDivisor;
    const isOver = answers.length === best && !(reach > answers[best - 1].score);
    front = isOver ? [] : live;
    last = front.map((each) => each.tokens.at(-1));
  }
  return { answers, layers };
}

/** One token after the other, chosen by `choose(logP)`. */
export function followed(step, choose, { first, length, penalty = 0, coverage = 0, rules }) {
  const tokens = [];
  const weights = [];
  let total = 0;
  let covered = null;
  for (let last = first; tokens.length < length && last !== rules.end; last = tokens.at(-1)) {
    const now = step([last], [0]);
    const logP = allowed(now.logP(0), tokens, rules);
    const token = choose(logP);
    if (!(logP[token] > -Infinity)) throw new Error("The rules of the search leave nothing to write.");
    tokens.push(token);
    total += logP[token];
    const looked = now.weights(0);
    if (looked !== null) {
      weights.push(looked);
      covered = sum(covered, looked);
    }
  }
  const score = total / divisor(tokens.length, penalty) + lackOf(covered, coverage);
  return { tokens, logProbability: total, score, ended: tokens.at(-1) === rules.end, weights };
}

/** A token drawn by its probability p^(1/temperature), from the `topK` most probable and from `topP` of their mass. */
export function drawn(logP, random, { temperature = 1, topK = null, topP = null } = {}) {
  if (temperature === 0) return largest(logP, 1)[0];
  const order = [...logP.keys()].filter((token) => logP[token] > -Infinity).sort((one, other) => logP[other] - logP[one]);
  const kept = order.slice(0, topK ?? order.length);
  const shares = kept.map((token) => Math.exp((logP[token] - logP[kept[0]]) / temperature));
  const whole = shares.reduce((total, share) => total + share, 0);
  let count = 0;
  let mass = 0;
  while (count < kept.length && (count === 0 || mass < (topP ?? 1) * whole * (1 - 1e-9))) mass += shares[count++];
  let left = random() * mass;
  for (let place = 0; place < count; place++) if ((left -= shares[place]) < 0) return kept[place];
  return kept[count - 1];
}

/** Random numbers of [0, 1) from a seed (mulberry32): the same seed gives the same text on every machine. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function sum(before, weights) {
  return before === null ? Array.from(weights) : before.map((each, place) => each + weights[place]);
}
