// The class or classes of an input with their probabilities, or the numbers that are predicted.

import { element, short } from "./dom.js";

/** Fill a place with classes and their probabilities. */
export function drawClasses(place, answer, context) {
  place.append(verdict(answer, context), bars(answer));
}

/** Fill a place with predicted numbers. */
export function drawNumbers(place, { values }) {
  place.append(...numbers(values));
}

function verdict(answer, { run, decoding = {} }) {
  if (answer.labels) {
    if (answer.labels.length) return said(answer.labels, "");
    const [[best, p] = []] = Object.entries(answer.probabilities);
    const nearest = best === undefined ? "" : ` ${best} comes nearest, with ${percent(p)}.`;
    return element("p", { class: "answer-words" }, `None of the classes is probable enough.${nearest}`);
  }
  const p = answer.probabilities[answer.label];
  if (answer.abstained) {
    const least = decoding.abstain ?? run.decoding.find((each) => each.name === "abstain").value;
    const why = `Not sure enough to say: ${answer.label} is the most probable with ${percent(p)}, and “abstain” asks for ${percent(least)}.`;
    return element("p", { class: "answer-words" }, why);
  }
  return said([answer.label], percent(p));
}

function said(labels, aside) {
  return element(
    "p",
    { class: "answer-large" },
    labels.map((label) => element("strong", { class: "answer-class" }, readable(label))),
    aside && element("span", { class: "answer-aside" }, aside),
  );
}

/** A label as words: play_music and AddToPlaylist stay as they are, but may be broken where words end. */
function readable(label) {
  return label.replaceAll("_", "_\u200b");
}

function bars(answer) {
  const chosen = answer.labels ?? [answer.label];
  const rows = Object.entries(answer.probabilities).map(([label, p]) => {
    const isChosen = chosen.includes(label) && !answer.abstained;
    const bar = element("span", { class: "bar" });
    bar.style.width = `${100 * p}%`;
    return element(
      "li",
      { class: isChosen ? "chosen" : null },
      element("span", { class: "bar-name" }, isChosen ? "✓ " : "", readable(label)),
      element("span", { class: "bar-place", "aria-hidden": true }, bar),
      element("span", { class: "bar-number" }, percent(p)),
    );
  });
  return element("ol", { class: "bars", "aria-label": "Probabilities" }, rows);
}

function numbers(values) {
  if (values.length === 1) return [element("p", { class: "answer-large" }, element("strong", {}, short(values[0], 5)))];
  const rows = values.map((value, number) => element("li", {}, `number ${number + 1}: `, element("strong", {}, short(value, 5))));
  return [element("ul", { class: "answer-numbers" }, rows)];
}

/** A probability in hundredths, with as many digits as tell it from none and from all. */
export function percent(p) {
  if (p === null || p === undefined) return "–";
  if (p > 0.9995 && p < 1) return "> 99.9 %";
  if (p > 0 && p < 1e-6) return "< 0.0001 %";
  if (p > 0 && p < 0.01) return `${(100 * p).toPrecision(2)} %`;
  return `${(100 * p).toFixed(p === 1 || p === 0 ? 0 : 1)} %`;
}
