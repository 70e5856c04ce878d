// How questions are asked, whoever answers them. Whatever goes wrong is an Error whose message is a sentence.

/** The cause of an Error that has nothing to do with the question: it may be asked again. */
export const AWAY = "the server is away";

/**
 * The server's words as they stand alone here: with a capital letter, though names of settings stay as they are, and
 * without the place in a list of inputs, since there is but one.
 */
export function sentence(words) {
  const text = words.replace(/^input:1: /, "");
  return /^[a-z]\p{L}* /u.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
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
