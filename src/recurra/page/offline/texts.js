// How a text becomes tokens and their ids, and tokens a text again, as docs/data.md defines it.

const BLANKS = /[\s\x1c-\x1f\x85]+/u;
const HAN = "\\u3005\\u3007\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
const LETTER = `(?:[[\\p{L}\\p{N}\\p{M}_]--[${HAN}]]+)`;
const JOINERS = "['\\u2019\\u2010\\u2011\\u200c\\u200d\\-]";
const WORD = new RegExp(`[${HAN}]\\p{M}*|${LETTER}(?:${JOINERS}${LETTER})*|[^\\s\\x1c-\\x1f\\x85]\\p{M}*`, "gv");
const IDEOGRAPH = new RegExp(`^[${HAN}]`, "u");
const EASTERN = new RegExp(`^[${HAN}\\u3041-\\u30ff]`, "u");
const WIDE = /^[\u3001-\u3003\u3008-\u3011\u3014-\u301f\u3030\u303d\ufe10-\ufe19\ufe30-\ufe6b\uff01-\uff60\uffe0-\uffe6]$/u;
const LEFT = /^[,.;:!?%…/\p{Pe}\p{Pf}]$/u;
const RIGHT = /^[¿¡#@/\p{Ps}\p{Pi}]$/u;

/** Tokens of a text. */
export function split(text, { kind, lowercase }) {
  const own = lowercase ? text.toLowerCase() : text;
  if (kind === "characters") return [...own];
  if (kind === "words") return own.match(WORD) ?? [];
  return own.split(BLANKS).filter((each) => each !== "");
}

/** The text of tokens. */
export function join(tokens, { kind }) {
  if (kind !== "words") return tokens.join(kind === "characters" ? "" : " ");
  let text = "";
  let before = "";
  let isOpening = false;
  const open = new Set();
  for (const token of tokens) {
    const isQuote = token === '"' || token === "'";
    const isClosing = open.has(token);
    const sticks = isOpening || isClosing || before === "" || belongTogether(before, token);
    text += !sticks || (before !== "" && /^\p{M}/u.test(token)) ? ` ${token}` : token;
    isOpening = isQuote && !isClosing;
    if (isClosing) open.delete(token);
    else if (isQuote) open.add(token);
    before = token;
  }
  return text;
}

function belongTogether(before, token) {
  if (/\p{Sc}$/u.test(before) && /^\p{Nd}/u.test(token)) return true;
  if (RIGHT.test(before) || LEFT.test(token)) return true;
  if ((WIDE.test(before) && /\p{P}/u.test(before)) || (WIDE.test(token) && /\p{P}/u.test(token))) return true;
  const areEastern = EASTERN.test([...before].at(-1)) && EASTERN.test(token);
  return areEastern && (IDEOGRAPH.test(before) || IDEOGRAPH.test(token));
}

/** A vocabulary: tokens by their ids; the first `specials` of them do not stand in texts. */
export function vocabulary({ tokens, specials, unknown }) {
  const known = new Map(tokens.slice(specials).map((token, place) => [token, place + specials]));
  return {
    tokens,
    ids: (list) => list.map((token) => known.get(token) ?? unknown),
    unknownAmong: (list) => [...new Set(list)].filter((token) => !known.has(token)),
  };
}
