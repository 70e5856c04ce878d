// LaTeX as it is written by models of formulas, set as mathematics by the browser itself (MathML).

const NAMES = {
  alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", theta: "θ", lambda: "λ", mu: "μ", pi: "π", rho: "ρ",
  sigma: "σ", phi: "ϕ", psi: "ψ", omega: "ω", Delta: "Δ", Gamma: "Γ", Sigma: "Σ", Omega: "Ω", tau: "τ", eta: "η",
};
const SIGNS = {
  times: "×", div: "÷", pm: "±", mp: "∓", cdot: "·", leq: "≤", geq: "≥", neq: "≠", lt: "<", gt: ">", rightarrow: "→",
  to: "→", infty: "∞", in: "∈", forall: "∀", exists: "∃", ldots: "…", cdots: "⋯", prime: "′", "{": "{", "}": "}",
  sum: "∑", int: "∫", prod: "∏", lbrack: "[", rbrack: "]", approx: "≈", Vert: "‖", vert: "|", partial: "∂", cup: "∪",
};
const FUNCTIONS = ["sin", "cos", "tan", "log", "ln", "lim", "exp", "max", "min"];
const STACKED = ["sum", "prod", "lim", "max", "min"];

/** A node of mathematics for a formula; null where a text is none, or not a whole one. */
export function formula(text, display = "block") {
  if (!/\\[A-Za-z]+|[_^] ?\{/.test(text)) return null;
  const tokens = text.match(/\\[A-Za-z]+|\\.|\d+|\S/gu) ?? [];
  try {
    const reader = { tokens, place: 0 };
    const row = rowOf(reader, null);
    if (reader.place < tokens.length) return null;
    const math = made("math", row);
    math.setAttribute("display", display);
    return math;
  } catch {
    return null;
  }
}

function made(tag, ...children) {
  const node = document.createElementNS("http://www.w3.org/1998/Math/MathML", tag);
  node.append(...children);
  return node;
}

/** All that stands until a token, or until the end. */
function rowOf(reader, until) {
  const parts = [];
  while (reader.place < reader.tokens.length && reader.tokens[reader.place] !== until) parts.push(scripted(reader));
  if (until !== null && reader.tokens[reader.place++] !== until) throw new Error("it ends too early");
  return made("mrow", ...parts);
}

/** One thing with what stands above and below it. */
function scripted(reader) {
  const token = reader.tokens[reader.place];
  const base = /^[_^]$/.test(token) ? made("mrow") : thing(reader);
  const scripts = {};
  while (/^[_^]$/.test(reader.tokens[reader.place] ?? "")) {
    const side = reader.tokens[reader.place++];
    if (side in scripts) throw new Error("twice the same side");
    scripts[side] = thing(reader);
  }
  const { _: below, "^": above } = scripts;
  const [low, high, both] = STACKED.includes(token.slice(1)) ? ["munder", "mover", "munderover"] : ["msub", "msup", "msubsup"];
  if (below && above) return made(both, base, below, above);
  if (below) return made(low, base, below);
  return above ? made(high, base, above) : base;
}

function thing(reader) {
  const token = reader.tokens[reader.place++];
  if (token === undefined || token === "}") throw new Error("something is missing");
  if (token === "{") return rowOf(reader, "}");
  if (token === "\\frac") return made("mfrac", thing(reader), thing(reader));
  if (token === "\\sqrt") return root(reader);
  if (token === "\\left" || token === "\\right") return thing(reader);
  if (!token.startsWith("\\")) return made(/^\d/.test(token) ? "mn" : /^\p{L}/u.test(token) ? "mi" : "mo", token);
  const name = token.slice(1);
  if (FUNCTIONS.includes(name)) return made("mi", name);
  if (name in NAMES) return made("mi", NAMES[name]);
  if (name in SIGNS) return made("mo", SIGNS[name]);
  throw new Error("it is not known here");
}

function root(reader) {
  if (reader.tokens[reader.place] !== "[") return made("msqrt", thing(reader));
  reader.place += 1;
  const degree = rowOf(reader, "]");
  return made("mroot", thing(reader), degree);
}
