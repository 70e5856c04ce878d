// A beam search that plays step by step: a column for each step, the best above, with edges to what each goes on from.

import { reveal } from "./cells.js";
import { element, svg } from "./dom.js";
import { fixed, follow, numbersTable, reading, sayingLine, within } from "./figure.js";
import { laidOut, shapesOf } from "./branches.js";
import { player } from "./player.js";

export function draw(place, numbers, { state, change }) {
  const { steps, answers } = numbers;
  const last = steps.length;
  const layout = laidOut(steps);
  const shapes = shapesOf(steps, answers, layout);
  const line = sayingLine();
  const pointedAt = sayingLine("Point at a box for its text and score; ↑ and ↓ walk over those of the step.");
  const view = element("div", { class: "view tree" });
  const picture = svg(
    "svg",
    { class: "branches", role: "img", width: layout.width, height: layout.height },
    shapes.band,
    shapes.heads,
    shapes.nodes.map(({ edge }) => edge),
    shapes.nodes.map(({ node }) => node),
  );
  const figure = element(
    "div",
    {
      class: "scrolled figure",
      tabindex: "0",
      role: "application",
      "aria-label": "The search. Arrow keys left and right step, up and down walk over a step, space plays.",
    },
    picture,
  );
  const begun = within(state.step, 0, last, last);
  let [step, at] = [begun, -1]; // what is shown, and which node of the step is pointed at

  function show(to, isPlaying) {
    const isChanged = to !== step;
    [step, at] = [to, -1];
    const known = knownAt(steps, answers, step);
    for (const { number, node, edge, own } of shapes.nodes) {
      const look = lookOf(known, number, own, step);
      for (const part of [node, edge]) part.setAttribute("class", `${part.dataset.kind} ${look}`);
    }
    shapes.heads.forEach((head, number) => head.classList.toggle("ahead", number >= step));
    shapes.mark(step);
    picture.setAttribute("aria-label", said(numbers, step, known).map((part) => part.textContent ?? part).join(""));
    line.quiet(isPlaying); // what plays is not talked over
    line.say(...said(numbers, step, known));
    pointedAt.rest();
    // The best answer may have ended long before the search did.
    const { left, wide } = layout.columns[known.isOver ? (known.leader?.number ?? 0) : Math.max(0, step - 1)];
    reveal(figure, { left: left - 60, top: figure.scrollTop, width: wide + 120, height: 0 });
    // The end is the end of any search, also of the next, which may be longer.
    if (isChanged) change({ step: step === last ? null : step });
  }

  view.append(
    reading(
      "Each column is a step of the search, the best candidates at the top: solid boxes were kept, double ones are finished,",
      "dashed ones were dropped. The number is the score so far. Orange marks the path to the best answer; pale paths ended.",
    ),
  );
  place.append(view);
  view.append(figure);
  const playing = player({ last, at: begun, label: "Step of the search", onshow: show });
  figure.before(playing.node);
  view.append(line.node, pointedAt.node, legend(), inNumbers(numbers));

  function point(number, node) {
    for (const each of picture.querySelectorAll(".pointed")) each.classList.remove("pointed");
    if (node === undefined) return pointedAt.rest();
    shapes.nodes.find((each) => each.number === number && each.own === node).node.classList.add("pointed");
    return pointedAt.say(...saidOf(node, number));
  }

  function over(event) {
    const found = shapes.nodes[Number(event.target.closest?.(".node")?.dataset.index)];
    if (found && !found.node.classList.contains("pointed")) point(found.number, found.own);
  }
  follow(picture, { over, leave: point, holder: figure });
  picture.addEventListener("click", (event) => {
    const head = event.target.closest?.(".step");
    if (head) playing.go(Number(head.dataset.number) + 1);
  });
  figure.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || step === 0) return playing.press(event);
    event.preventDefault();
    const { nodes } = steps[step - 1];
    at = Math.min(nodes.length - 1, Math.max(0, at + by));
    reveal(figure, { left: figure.scrollLeft, top: layout.top(step - 1, at), width: 0, height: 40 });
    return point(step - 1, nodes[at]);
  });
}

const key = (number, place) => `${number}:${place}`;

/** After so many steps, without a look at later ones: who leads, the leader's way, and all that are still followed. */
function knownAt(steps, answers, step) {
  const ends = [];
  for (let number = 0; number < step; number++) {
    for (const node of steps[number].nodes) {
      if (node.kept && (node.finished || number === step - 1)) ends.push({ number, node });
    }
  }
  const isOver = step === steps.length;
  const isAnswer = ({ number, node }) => answers[0].step === number && answers[0].place === node.place;
  const better = (best, each) => (best === undefined || each.node.score > best.node.score ? each : best);
  const leader = isOver ? ends.find(isAnswer) : ends.reduce(better, undefined);
  const way = (from) => {
    const found = [];
    let [number, node] = [from.number, from.node];
    while (node) {
      found.push(key(number, node.place));
      const { parent } = node;
      number -= 1;
      node = number >= 0 ? steps[number].nodes.find((each) => each.place === parent) : undefined;
    }
    return found;
  };
  return { leader, live: new Set(ends.flatMap(way)), leading: new Set(leader ? way(leader) : []), isOver };
}

function lookOf({ live, leading, isOver }, number, node, step) {
  if (number >= step) return "ahead";
  const name = key(number, node.place);
  const isJustDropped = !node.kept && number === step - 1 && !isOver;
  const way = leading.has(name) ? "leading" : live.has(name) || isJustDropped ? "live" : "left";
  return isOver ? `${way} over` : way;
}

function said({ caption, steps }, step, { leader, isOver }) {
  if (step === 0) return [`${caption || "The search"}: nothing is written yet.`];
  const { kept, weighed, nodes } = steps[step - 1];
  const finished = nodes.filter((node) => node.finished && node.kept).length;
  const parts = [`Step ${step} keeps ${kept} of ${weighed}${finished ? `, ${finished} of them finished` : ""}. `];
  if (leader) {
    parts.push(written(leader.node), ` ${isOver ? "is the answer" : "leads"} with ${fixed(leader.node.score, 2)}.`);
  }
  return parts;
}

/** The tokens up to a node; they are named by their signs already. */
const written = ({ text }) => element("bdi", { class: "token" }, text);

const whatOf = ({ finished, kept }) => (!kept ? "dropped" : finished ? "finished" : "kept");

function saidOf(node, number) {
  const way = node.answer === null ? "" : `, on the way to answer ${node.answer}`;
  const numbers = `score ${fixed(node.score)}, p of the last token ${fixed(node.probability)}`;
  return [written(node), `: ${whatOf(node)} at step ${number + 1}, ${numbers}${way}`];
}

function legend() {
  const sign = (kind) => {
    const inner = kind === "finished" && svg("rect", { class: "inner", x: 4.5, y: 4.5, width: 21, height: 11, rx: 2 });
    const outer = svg("rect", { class: "outer", x: 1.5, y: 1.5, width: 27, height: 17, rx: 4 });
    const box = svg("g", { class: `node ${kind} live` }, outer, inner);
    return element("span", { class: "sign" }, svg("svg", { width: 30, height: 20, "aria-hidden": "true" }, box), kind);
  };
  return element("p", { class: "legend" }, ["kept", "finished", "dropped"].map(sign));
}

function inNumbers({ steps }) {
  const head = ["step", "", "text", "score", "p of the last token", "on the way to answer"];
  const row = (node, number) => {
    const { text, score, probability, answer } = node;
    return [number + 1, whatOf(node), text, fixed(score), fixed(probability), answer ?? ""];
  };
  return numbersTable("All steps as numbers", head, () =>
    steps.flatMap(({ nodes }, number) => nodes.map((node) => row(node, number))),
  );
}
