// What a run is: its name, which chooses another, its task and what training reached.

import { element, short } from "./dom.js";

/** So many scores stand in the open. */
const FEW = 3;

/** The head of a pane. */
export function heading(run, { runs, choose, remove }) {
  const { parameters, scores = {}, first_metric: first } = run.summary;
  const { count, ...measured } = scores;
  const known = Object.entries(measured).filter(([, value]) => value !== null);
  // The score that the weights were chosen by is the headline.
  const named = [...known.filter(([name]) => name === first), ...known.filter(([name]) => name !== first)];
  return element(
    "header",
    { class: "about-run" },
    element(
      "div",
      { class: "title" },
      chooser(run, runs, choose),
      element("span", { class: "task" }, words(run.task)),
      element("button", { type: "button", class: "quiet remove", onclick: remove }, "Remove"),
    ),
    element("p", { class: "described" }, run.described),
    element(
      "div",
      { class: "reached" },
      element(
        "dl",
        { class: "facts" },
        facts(named.slice(0, FEW), first),
        count && fact("scored on", count.toLocaleString("en")),
        parameters && fact("parameters", parameters.toLocaleString("en")),
      ),
      named.length > FEW &&
        element(
          "details",
          { class: "scores" },
          element("summary", {}, "More scores"),
          element("dl", { class: "facts" }, facts(named.slice(FEW))),
        ),
    ),
  );
}

function chooser(run, runs, choose) {
  const name = element("h2", {}, run.name);
  if (runs.length === 1) return name;
  const select = element("select", { class: "chooser", "aria-label": "Run", onchange: () => choose(select.value) });
  for (const task of new Set(runs.map((each) => each.task))) {
    const ofTask = runs.filter((each) => each.task === task);
    select.append(
      element("optgroup", { label: words(task) }, ofTask.map((each) => element("option", { value: each.name }, each.name))),
    );
  }
  select.value = run.name;
  return element("div", { class: "choice-of-run" }, name, select);
}

function facts(scores, first) {
  return scores.map(([name, value]) => fact(words(name), short(value), name === first ? "headline" : null));
}

function fact(name, value, style = null) {
  return element("div", { class: style }, element("dt", {}, name), element("dd", {}, value));
}

function words(name) {
  return name.replaceAll("_", " ");
}
