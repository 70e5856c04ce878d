// Questions to the server of this page. Whatever goes wrong is an Error whose message is a sentence.

/** The cause of an Error that has nothing to do with the question: it may be asked again. */
export const AWAY = "the server is away";

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

/**
 * The server's words as they stand alone here: with a capital letter, though names of settings stay as they are, and
 * without the place in a list of inputs, since there is but one.
 */
export function sentence(words) {
  const text = words.replace(/^input:1: /, "");
  return /^[a-z]\p{L}* /u.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
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

/**
 * One question at a time, for one purpose: `latest(send)(…)` promises its answer, or undefined where a newer question
 * came meanwhile. The server works on a question to its end, whether or not anyone still listens, so the newest waits
 * for the one under way and those between are never sent. `stop` gives up on whatever is under way.
 */
export function latest(send) {
  let underWay = null;
  let newest = 0;

  async function question(...given) {
    const mine = ++newest;
    while (underWay) await underWay.ended;
    if (mine !== newest) return undefined;
    const abort = new AbortController();
    const answer = send(...given, { signal: abort.signal });
    underWay = { abort, ended: answer.then(() => {}, () => {}) };
    try {
      const found = await answer;
      return mine === newest ? found : undefined;
    } catch (error) {
      if (mine === newest) throw error;
      return undefined;
    } finally {
      underWay = null;
    }
  }

  question.stop = () => {
    newest++;
    underWay?.abort.abort();
  };
  return question;
}

/** The command that asks the same from a shell. */
export function asCurl(address, body) {
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''");
  return `curl -s '${location.origin}${address}' -H 'Content-Type: application/json' -d '${quoted}'`;
}
