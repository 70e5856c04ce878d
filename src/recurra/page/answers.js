// What a run answers, drawn as the kind of answer that its task names.

import { drawClasses, drawNumbers } from "./classes.js";
import { drawContinuation } from "./continuation.js";
import { element } from "./dom.js";
import { drawForecast } from "./forecast.js";
import { drawTags } from "./spans.js";
import { drawWritten } from "./written.js";

/** By the kind of answer: what draws it, and whether an answer has the fields that are drawn. */
const KINDS = {
  tags: { drawn: drawTags, fits: ({ tokens }) => tokens },
  classes: { drawn: drawClasses, fits: ({ probabilities, label, labels }) => probabilities && (label ?? labels) !== undefined },
  numbers: { drawn: drawNumbers, fits: ({ values }) => values },
  likelihood: { drawn: drawContinuation, fits: ({ tokens, log_probabilities: logs, nll }) => tokens && logs && nll !== undefined },
  written: { drawn: drawWritten, fits: () => true },
  series: { drawn: drawForecast, fits: ({ values }) => values },
};

/**
 * Fill a place with an answer of `predict`. The context has the run, the value that was asked, `ask` with further
 * questions to the run, the search's settings `decoding` as far as they were changed, the number `best` of the answer
 * that is explained, and `choose(number)` for another.
 */
export function draw(place, answer, context) {
  place.classList.add("answered");
  const kind = KINDS[context.run.answer];
  (kind?.fits(answer) ? kind.drawn : drawPlain)(place, answer, context);
}

/** An answer that is a plain text, or lacks what its kind is drawn from: what `recurra predict` prints. */
function drawPlain(place, answer) {
  place.append(element("p", { class: "answer-words" }, answer.output || "∅"));
}
