// What a run answers, in the way of its task.

import { drawClasses } from "./classes.js";
import { drawContinuation } from "./continuation.js";
import { element } from "./dom.js";
import { drawForecast } from "./forecast.js";
import { drawTags } from "./spans.js";
import { drawWritten } from "./written.js";

const TASKS = {
  tagging: drawTags,
  classification: drawClasses,
  language_model: drawContinuation,
  forecasting: drawForecast,
  seq2seq: drawWritten,
  vec2seq: drawWritten,
};

/**
 * Fill a place with an answer of `predict`. The context has the run, the value that was asked, `ask` with further
 * questions to the run, the search's settings `decoding` as far as they were changed, the number `best` of the answer
 * that is explained, and `choose(number)` for another.
 */
export function draw(place, answer, context) {
  place.classList.add("answered", `of-${context.run.task}`);
  (TASKS[context.run.task] ?? drawPlain)(place, answer, context);
}

/** The answer of a task that this page has no way of its own for: the text that `recurra predict` prints. */
function drawPlain(place, answer) {
  place.append(element("p", { class: "answer-words" }, answer.output || "∅"));
}
