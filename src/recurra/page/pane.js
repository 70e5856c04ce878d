// One run at work: what it is, its input, how it searches, its answer, and views of how it came about.

import { draw as drawAnswer } from "./answers.js";
import { addressOf, asCurl, AWAY, latest, PAUSE, questionsTo } from "./api.js";
import { controls, sent } from "./controls.js";
import { element, redrawn, same, visible } from "./dom.js";
import { heading } from "./heading.js";
import { field as fieldOf } from "./inputs.js";
import { program } from "./program.js";
import { views } from "./views.js";

/** The first text of fewer letters is asked at the beginning, else the shortest; others are seen at a glance. */
const LONG = 300;

/**
 * A pane of a run. `change(patch, {push})` is told what a reader changed of the pane's state; `show(state)` then shows
 * it. Nothing else is kept: two panes, a link and the Back button all go the same way.
 */
export function pane(run, { runs, change, choose, remove }) {
  const ask = questionsTo(run.name);
  const predict = latest(ask.predict);
  let state = null;
  let answered = null; // the answer that is shown, and to what question
  let given; // the value that the field was given last, which it may hold in other words
  let isOver = false;

  const field = fieldOf(run, { onchange: () => typed() });
  const chips = element("div", { class: "chips", role: "group", "aria-label": "Samples", hidden: true });
  const isRaw = element("input", { type: "checkbox", onchange: () => change({ raw: isRaw.checked, best: 1 }) });
  const rawText = element("label", { class: "raw-text", hidden: !run.cuts }, isRaw, " raw text: find its tokens and sentences");
  const settings = controls(run, { onchange: (decoding) => change({ decoding, best: 1 }) });
  const answer = element("div", { class: "answer-place" });
  const error = element("p", { class: "error", role: "alert", hidden: true });
  const said = element("p", { class: "unseen", role: "status" });
  const unknown = element("p", { class: "not-in-vocabulary", hidden: true });
  const took = element("p", { class: "took" });
  const seen = views(run, ask, { change });
  const command = program();
  const node = element(
    "section",
    { class: "pane", "aria-label": `Run ${run.name}` },
    heading(run, { runs, choose, remove }),
    element("div", { class: "question", onkeydown: hurried }, element("div", { class: "field" }, field.node), rawText, chips),
    settings.node,
    element("section", { class: "answer", "aria-label": "Answer" }, error, answer, unknown, took, said),
    seen.node,
    command.node,
  );

  let pause = null;
  function typed() {
    clearTimeout(pause);
    pause = setTimeout(take, PAUSE);
  }

  /** What stands in the field is the pane's input now, where someone has typed. */
  function take() {
    if (pause === null) return;
    clearTimeout(pause);
    pause = null;
    given = undefined;
    if (!same(field.value, state.value)) change({ value: field.value, best: 1 });
  }

  /** Enter answers at once; only a text that is gone on with has lines of its own, elsewhere Shift makes one. */
  function hurried(event) {
    if (event.key !== "Enter" || event.isComposing) return;
    const isText = event.target.matches("textarea, input");
    const goesOn = run.generates && run.input.kind === "text";
    if (isText && !event.shiftKey && !goesOn) event.preventDefault();
    // After the key itself has done its work.
    setTimeout(() => {
      take();
      if (answered?.failed) answerTo(answered.question);
    });
  }

  function show(next) {
    const isFirst = state === null;
    state = next;
    put(state.value);
    settings.show(state.decoding);
    isRaw.checked = state.raw;
    const question = { inputs: [state.value], decoding: sent(run, state.decoding), ...(state.raw && { raw: true }) };
    command.show(state.value === null ? null : asCurl(`${addressOf(run.name)}/predict`, question));
    if (state.value === null) nothing();
    else if (!same(question, answered?.question)) answerTo(question);
    else {
      if (answered.answer && answered.best !== state.best) draw();
      seen.show(state, answered);
    }
    if (isFirst) offer();
  }

  /** A value in the field, unless it stands there, or someone is typing another. */
  function put(value) {
    if (pause !== null || same(value, given)) return;
    given = value;
    if (!same(field.value, value)) field.value = value;
  }

  function nothing(why = "The answer appears here.") {
    predict.stop();
    answered = null;
    error.hidden = unknown.hidden = true;
    took.textContent = said.textContent = "";
    answer.replaceChildren(element("p", { class: "hint" }, why));
    waiting(false);
    seen.show(state, null);
  }

  async function answerTo(question) {
    answered = { question, answer: null, best: null, failed: false };
    waiting(true);
    const found = await predict(question).catch(failed);
    if (found === undefined) return; // there is a newer question, or none
    waiting(false);
    error.hidden = true;
    if (found.answers.length === 0) return nothing("There is no word in this text.");
    answered.sentences = state.raw ? found.answers : null;
    [answered.answer] = found.answers;
    took.textContent = `answered in ${Math.max(1, Math.round(found.seconds * 1000))} ms`;
    const known = answered.sentences?.length ?? 1 + (answered.answer.alternatives?.length ?? 0);
    if (state.best > known) return change({ best: 1 });
    draw();
    seen.show(state, answered);
  }

  function failed(problem) {
    waiting(false);
    answered.failed = true;
    answered.isAway = problem.cause === AWAY;
    error.textContent = problem.message;
    error.hidden = false;
    unknown.hidden = true;
    took.textContent = said.textContent = "";
    answer.replaceChildren();
    seen.show(state, answered);
  }

  function draw() {
    answered.best = state.best;
    if (answered.sentences) return drawSentences(answered.sentences);
    // What the eye sees is said as well, in short; of a likelihood the output is bare numbers, and its drawer speaks.
    const { output } = state.best > 1 ? answered.answer.alternatives[state.best - 2] : answered.answer;
    said.textContent = run.answer === "likelihood" ? "" : `Answer: ${String(output).slice(0, 200)}`;
    tellUnknown(answered.answer.not_in_vocabulary ?? []);
    redrawn(answer, (place) =>
      drawAnswer(place, answered.answer, {
        run,
        best: state.best,
        choose: (best) => change({ best }),
        ask,
        value: state.value,
        decoding: state.decoding,
      }),
    );
  }

  /** The sentences of a raw text, one after the other; the views explain the one that is pressed. */
  function drawSentences(sentences) {
    said.textContent = `${sentences.length} ${sentences.length === 1 ? "sentence" : "sentences"}`;
    tellUnknown([...new Set(sentences.flatMap((each) => each.not_in_vocabulary ?? []))]);
    redrawn(answer, (place) => {
      for (const [number, each] of sentences.entries()) {
        const pressed = String(number + 1 === state.best);
        const choose = () => change({ best: number + 1 });
        const button = element("button", { type: "button", class: "nth", "aria-pressed": pressed, title: "Explain this sentence", onclick: choose }, `${number + 1} ${each.text}`);
        const own = element("div", { class: "sentence" });
        drawAnswer(own, each, { run, best: 1, choose: () => {}, ask, value: state.value, decoding: state.decoding });
        place.append(sentences.length > 1 ? button : "", own);
      }
    });
  }

  /** What the model has never seen of the input is named: an answer to another input would look like one to this. */
  function tellUnknown(symbols) {
    unknown.hidden = symbols.length === 0;
    const named = symbols.map((symbol) => `“${visible(symbol)}”`).join(", ");
    unknown.textContent = unknown.hidden ? "" : `Not in the vocabulary, read as <unk>: ${named}`;
  }

  function waiting(isWaiting) {
    answer.setAttribute("aria-busy", String(isWaiting));
    node.classList.toggle("waiting", isWaiting);
  }

  /** Samples of the run's own data; one that is short is answered where there is nothing to show and nobody is typing. */
  async function offer() {
    const { samples } = await ask.samples().catch(() => ({ samples: [] }));
    if (isOver) return;
    chips.replaceChildren(...samples.map(chip));
    chips.hidden = samples.length === 0;
    const size = (sample) => JSON.stringify(sample).length;
    const [shortest = field.value] = [...samples].sort((one, other) => size(one) - size(other));
    const first = samples.find((sample) => run.input.kind !== "text" || size(sample) < LONG) ?? shortest;
    const isTyping = pause !== null || node.querySelector(".field")?.contains(document.activeElement);
    if (first !== null && state.value === null && !isTyping) change({ value: first });
  }

  function chip(sample) {
    const label = String(field.label(sample));
    const short = label.length > 48 ? `${label.slice(0, 47)}…` : label;
    return element("button", { type: "button", class: "chip", title: label.slice(0, 500), onclick: () => pick(sample) }, field.preview?.(sample), short);
  }

  function pick(sample) {
    clearTimeout(pause);
    pause = null;
    change({ value: sample, best: 1 }, { push: true });
  }

  /** What the server did not answer is asked again. */
  function retry() {
    if (answered?.isAway) answerTo(answered.question);
    else if (answered?.answer) seen.show(state, answered);
  }

  function stop() {
    isOver = true;
    clearTimeout(pause);
    predict.stop();
    seen.stop();
  }

  const focus = () => (node.querySelector(".field :is(input, textarea, button, canvas, [tabindex])") ?? node).focus();

  return { run, node, show, stop, take, retry, focus };
}
