// Words on coloured ground: how surprising each was, what each adds to an answer, how much each was weighed.

import { colouredWords } from "./coloured.js";
import { element, short, visible } from "./dom.js";
import { fixed, named, numbersTable, reading, sayingLine, signed, within } from "./figure.js";
import { tokenRow } from "./tokens.js";

const LEAST_SCALE = 8; // bits of surprise that have the full colour, where no token surprised more
const METHODS = { integrated: "integrated gradients", gradient: "gradient × input" };

export function draw(place, numbers, context) {
  const view = element("div", { class: "view words-view" });
  place.append(view);
  if (numbers.kind === "queries") queries(view, numbers, context);
  else if ("methods" in numbers) saliency(view, numbers, context);
  else probabilities(view, numbers);
}

function probabilities(view, { tokens, bits, log_probabilities: logs }) {
  const scale = Math.max(LEAST_SCALE, ...bits);
  const mean = bits.reduce((sum, each) => sum + each, 0) / bits.length;
  const p = logs.map(Math.exp);
  const line = sayingLine("Point at a token, or walk over them with the arrow keys.");
  view.append(
    reading("The stronger the orange, the more a token surprised the model: −log₂ p in bits."),
    element("p", { class: "summary" }, `${fixed(mean, 2)} bits a token on average, perplexity ${fixed(2 ** mean, 2)}`),
    colouredWords(tokens, bits.map((each) => -each / scale), {
      label: "Tokens by surprise",
      said: (n) => [named(tokens[n]), `: p ${short(p[n])}, ${fixed(bits[n], 2)} bits`],
      line,
    }),
    line.node,
    legend("less", "0", `${fixed(scale, scale % 1 ? 1 : 0)} bits`),
    numbersTable("As numbers", ["token", "p", "bits"], () =>
      tokens.map((token, n) => [visible(token), short(p[n]), fixed(bits[n])]),
    ),
  );
}

/** What is explained at first: a tag that says something, and of a text the token that has all the rest before it. */
function mostTelling(answers, { task }) {
  if (task === "language_model") return answers.length - 1;
  return task === "tagging" ? Math.max(0, answers.findIndex((answer) => !answer.endsWith("/O"))) : 0;
}

function saliency(view, { tokens, answers, unit, left_out: leftOut, methods }, { run, state, change }) {
  const names = Object.keys(methods);
  let method = names.includes(state.method) ? state.method : names[0];
  let answer = within(state.answer, 0, answers.length - 1, mostTelling(answers, run));
  const line = sayingLine("Point at a token for what it adds or takes away.");
  const summary = element("p", { class: "summary", "aria-live": "polite" });
  const words = element("div");

  function show(number) {
    const { values, whole, nothing } = methods[method];
    const row = values[number];
    const largest = Math.max(...row.map(Math.abs)) || 1;
    summary.replaceChildren(
      named(answers[number]),
      `: ${unit} ${fixed(whole[number], 2)}, without the input ${fixed(nothing[number], 2)}`,
      lacking(method, row, whole[number] - nothing[number]),
    );
    words.replaceChildren(
      colouredWords(tokens, row.map((value) => value / largest), {
        label: `Tokens by what they add to ${visible(answers[number])}`,
        said: (n) => [named(answers[number]), " ← ", named(tokens[n]), `: ${signed(row[n])}`],
        line,
      }),
    );
  }

  const chooseMethod = element(
    "select",
    {
      onchange: (event) => {
        method = event.target.value;
        change({ method });
        show(answer);
      },
    },
    names.map((name) => element("option", { value: name, selected: name === method }, METHODS[name] ?? name)),
  );
  const chooser = tokenRow(answers, {
    label: "The answer that is explained",
    chosen: answer,
    onlook: show,
    onchoose: (number) => {
      answer = number;
      change({ answer });
      show(answer);
    },
  });
  const more = leftOut ? ` The first ${answers.length} of ${answers.length + leftOut} are explained.` : "";
  view.append(
    reading(
      "Blue speaks for the answer, orange against it. Integrated gradients add up to all that the input changed;",
      "gradient × input asks only which way things go from here.",
    ),
    element("div", { class: "choices" }, element("label", {}, "Method ", chooseMethod)),
  );
  if (answers.length > 1) {
    view.append(element("p", { class: "asks" }, `What is explained? Point or choose.${more}`), chooser.node);
  }
  view.append(summary, words, line.node, legend("both", "against", "for"));
  for (const [name, { values, whole }] of Object.entries(methods)) {
    const row = (each, n) => [visible(each), fixed(whole[n]), ...values[n].map((value) => signed(value))];
    const head = ["", unit, ...tokens.map(visible)];
    view.append(numbersTable(`${METHODS[name] ?? name} as numbers`, head, () => answers.map(row)));
  }
  show(answer);
}

/** What integrated gradients lack to the whole, where that is more than a trifle. */
function lacking(method, values, change) {
  const lack = Math.abs(values.reduce((sum, value) => sum + value, 0) - change) / Math.max(Math.abs(change), 0.1);
  if (method !== "integrated" || lack <= 0.01) return "";
  return `; the colours stand for all of the difference but ${Math.round(100 * lack)} %`;
}

function queries(view, { tokens, weights }, { state, change }) {
  const mean = tokens.map((_, n) => weights.reduce((sum, row) => sum + row[n], 0) / weights.length);
  const rows = weights.length > 1 ? [mean, ...weights] : weights;
  const names = weights.length > 1 ? ["all on average", ...weights.map((_, n) => `query ${n + 1}`)] : ["the query"];
  let chosen = within(state.query, 0, rows.length - 1, 0);
  const line = sayingLine("Point at a token for its share.");
  const words = element("div");

  function show(number) {
    const largest = Math.max(...rows[number]) || 1;
    words.replaceChildren(
      colouredWords(tokens, rows[number].map((weight) => weight / largest), {
        label: `Tokens by the weight of ${names[number]}`,
        said: (n) => [named(tokens[n]), `: ${fixed(rows[number][n])} of ${names[number]}`],
        line,
      }),
    );
  }

  view.append(
    reading(
      "What was read is weighed by learned queries: the stronger the blue, the more weight.",
      "The strongest token of each has the full colour.",
    ),
  );
  if (rows.length > 1) {
    const onchoose = (number) => {
      chosen = number;
      change({ query: chosen });
      show(chosen);
    };
    view.append(tokenRow(names, { label: "Queries", chosen, onlook: show, onchoose }).node);
  }
  show(chosen);
  view.append(
    words,
    line.node,
    legend("more", "0", "most"),
    numbersTable("As numbers", ["token", ...weights.map((_, n) => `query ${n + 1}`)], () =>
      tokens.map((token, n) => [visible(token), ...weights.map((row) => fixed(row[n]))]),
    ),
  );
}

function legend(colour, low, high) {
  const ramp = element("span", { class: `ramp ${colour}` });
  return element("p", { class: "legend", "aria-hidden": "true" }, low, ramp, high);
}
