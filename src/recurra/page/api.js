// Questions to the server of this page.

import { AWAY, sentence } from "./asking.js";

export { AWAY, latest, sentence } from "./asking.js";

/** A keystroke waits so many milliseconds for the next one before the server is asked. */
export const PAUSE = 30;

/** Where the token of a server that asks for one is kept until the tab is closed. */
const TOKEN = "recurra.token";

/** What there is at an address of the API; with a body it is asked by POST. */
export async function ask(address, body, { signal } = {}) {
  const token = sessionStorage.getItem(TOKEN);
  const options = { signal, headers: token === null ? {} : { Authorization: `Bearer ${token}` } };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is `recurra serve` still running?", { cause: AWAY });
  }
  if (response.status === 401 && sessionStorage.getItem(TOKEN) === token) {
    const given = window.prompt("This server asks for its token:");
    if (given) sessionStorage.setItem(TOKEN, given.trim());
  }
  // Another question may have been told the token meanwhile.
  if (response.status === 401 && sessionStorage.getItem(TOKEN) !== token) return ask(address, body, { signal });
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
  const token = sessionStorage.getItem(TOKEN) === null ? "" : ' -H "Authorization: Bearer $TOKEN"';
  return `curl -s '${location.origin}${address}' -H 'Content-Type: application/json'${token} -d '${quoted}'`;
}
