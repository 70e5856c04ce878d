// Questions to the server of this page.

import { AWAY, sentence } from "./asking.js";

export { AWAY, latest, sentence } from "./asking.js";

/** A keystroke waits so many milliseconds for the next one before the server is asked. */
export const PAUSE = 30;

/** What there is at an address of the API; with a body it is asked by POST. */
export async function ask(address, body, { signal } = {}) {
  const options = { signal };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is `recurra serve` still running?", { cause: AWAY });
  }
  const found = await response.json().catch(() => null);
  if (response.ok && found !== null) return found;
  throw new Error(sentence(found?.error ?? `the server answered ${response.status} ${response.statusText}.`));
}

/** The address of a run in the API. Names may hold slashes, which stay as they are. */
export function addressOf(name) {
  return `/api/runs/${name.split("/").map(encodeURIComponent).join("/")}`;
}

/** What one run may be asked. */
export function questionsTo(name) {
  const address = addressOf(name);
  return {
    samples: (options) => ask(`${address}/samples`, undefined, options),
    predict: (body, options) => ask(`${address}/predict`, body, options),
    explain: (body, options) => ask(`${address}/explain`, body, options),
    generate: (body, options) => ask(`${address}/generate`, body, options),
  };
}

/** The command that asks the same from a shell. */
export function asCurl(address, body) {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl -s '${location.origin}${address}' -H 'Content-Type: application/json' -d '${quoted}'`;
}
