// Stands in for ../api.js in a page that is one file: questions are answered by the model inside it.

import { sentence } from "../asking.js";
import { engine } from "./engine.js";
import { models } from "./models.js";

export { AWAY, latest, sentence } from "../asking.js";

/** A keystroke waits for no other: the model is here, and quick. */
export const PAUSE = 0;

/** The bytes of an element of this file: base64 of what gzip wrote. */
async function bytesOf(id) {
  const text = atob(document.getElementById(id).textContent.trim());
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const ready = (async () => {
  const [code, weights, told] = await Promise.all(["engine", "weights", "about"].map(bytesOf));
  const about = JSON.parse(new TextDecoder().decode(told));
  return { about, model: models[about.model.kind](await engine(code, weights, about.functions), about.model) };
})();

/** What there is at an address of the API: the list of runs, of which there is one. */
export async function ask() {
  const { about } = await ready;
  return { version: about.version, runs: [about.run] };
}

/** There is no address to ask from outside. */
export const addressOf = (name) => name;
export const asCurl = () => null;

/** What the model may be asked. */
export function questionsTo() {
  const asked = (answer) => async (body) => {
    const { about, model } = await ready;
    const began = performance.now();
    try {
      const found = answer(model, about, body ?? {});
      return { ...found, seconds: (performance.now() - began) / 1000 };
    } catch (error) {
      throw new Error(sentence(error.message));
    }
  };
  return {
    samples: async () => ({ samples: (await ready).about.samples }),
    predict: asked((model, _, { inputs, decoding = {} }) => ({
      answers: inputs.map((input) => model.predict(input, decoding)),
    })),
    explain: asked((model, _, { input, decoding = {}, show: [view], best = 1, ...rest }) => {
      try {
        return { views: { [view]: model.explain(view, input, decoding, best, rest) }, missing: {} };
      } catch (error) {
        return { views: {}, missing: { [view]: error.message } };
      }
    }),
    generate: asked((model, _, body) => ({ texts: model.generate(body) })),
  };
}
