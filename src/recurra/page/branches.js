// The shapes of a beam's tree: boxes in columns, edges between them, and the numbers of the answers.

import { svg } from "./dom.js";
import { fixed, widthOf } from "./figure.js";

const EDGE = 10; // pixels: around it all
const HEAD = 28; // the number of a step
const ROW = 42;
const BOX = 34;
const BETWEEN = 34; // columns
const APART = 10; // what was kept and what was dropped
const [NARROWEST, WIDEST] = [50, 150]; // of a box

/** Where columns and boxes lie. */
export function laidOut(steps) {
  let left = EDGE;
  let bottom = 0;
  const columns = steps.map(({ nodes, weighed }) => {
    const widest = Math.max(...nodes.map((node) => widthOf(node.token, 14, 600)));
    const wide = Math.ceil(Math.min(WIDEST, Math.max(NARROWEST, widest + 18)));
    const column = { left, wide, hidden: weighed - nodes.length };
    left += column.wide + BETWEEN;
    return column;
  });
  const top = (number, place) => {
    const { nodes } = steps[number];
    return EDGE + HEAD + place * ROW + (nodes[place] === undefined || nodes[place].kept ? 0 : APART);
  };
  steps.forEach(({ nodes }, number) => {
    bottom = Math.max(bottom, top(number, nodes.length - 1) + ROW + (columns[number].hidden > 0 ? 20 : 0));
  });
  return { columns, top, width: left - BETWEEN + EDGE + 8, height: bottom + EDGE };
}

/** Of each node of the tree its box and its edge, with the numbers of the steps and a band that marks one of them. */
export function shapesOf(steps, answers, layout) {
  const nodes = [];
  steps.forEach(({ nodes: some }, number) =>
    some.forEach((own, place) => {
      const end = answers.findIndex((each) => each.step === number && each.place === own.place);
      const [node, edge] = [box(own, number, place, end, layout), edgeTo(own, number, place, steps, layout)];
      node.dataset.index = nodes.length;
      nodes.push({ number, own, node, edge });
    }),
  );
  const band = svg("rect", { class: "band", y: 2, rx: 8, height: layout.height - 4 });
  const heads = layout.columns.map(({ left, wide, hidden }, number) => {
    const x = left + wide / 2;
    const below = layout.top(number, steps[number].nodes.length - 1) + ROW;
    return svg(
      "g",
      { class: "step", "data-number": number },
      svg("text", { x, y: EDGE + 14 }, String(number + 1)),
      hidden > 0 && svg("text", { x, y: below + 12 }, `+ ${hidden}`, svg("title", {}, `${hidden} more were dropped`)),
    );
  });

  function mark(step) {
    band.setAttribute("visibility", step === 0 ? "hidden" : "visible");
    if (step === 0) return;
    const { left, wide } = layout.columns[step - 1];
    band.setAttribute("x", left - 8);
    band.setAttribute("width", wide + 16);
  }

  return { nodes, heads, band, mark };
}

function box(own, number, place, end, { columns, top }) {
  const { left: x, wide: width } = columns[number];
  const y = top(number, place);
  const kind = !own.kept ? "dropped" : own.finished ? "finished" : "kept";
  return svg(
    "g",
    { "data-kind": `node ${kind}` },
    svg("rect", { class: "outer", x, y, width, height: BOX, rx: 6 }),
    kind === "finished" &&
      svg("rect", { class: "inner", x: x + 3, y: y + 3, width: width - 6, height: BOX - 6, rx: 4 }),
    svg("text", { class: "named", x: x + width / 2, y: y + 16 }, cut(own.token, width - 14)),
    svg("text", { class: "score", x: x + width / 2, y: y + 28.5 }, fixed(own.score, 2)),
    end >= 0 && svg("circle", { class: "rank", cx: x + width - 1, cy: y + 1, r: 9 }),
    end >= 0 && svg("text", { class: "rank", x: x + width - 1, y: y + 5 }, String(end + 1)),
  );
}

function edgeTo(own, number, place, steps, { columns, top }) {
  const up = number > 0 ? steps[number - 1].nodes.findIndex((each) => each.place === own.parent) : -1;
  const kind = own.kept ? "edge" : "edge dropped";
  if (up < 0) return svg("path", { "data-kind": kind });
  const { left, wide } = columns[number - 1];
  const [x, y] = [left + wide, top(number - 1, up) + BOX / 2];
  const [toX, toY] = [columns[number].left, top(number, place) + BOX / 2];
  const middle = (x + toX) / 2;
  return svg("path", { "data-kind": kind, d: `M${x} ${y}C${middle} ${y} ${middle} ${toY} ${toX} ${toY}` });
}

/** A token that is too wide ends in dots; its text is said where it is pointed at. */
function cut(token, room) {
  const letters = [...token];
  if (widthOf(token, 14, 600) <= room) return token;
  while (letters.length > 1 && widthOf(`${letters.join("")}…`, 14, 600) > room) letters.pop();
  return `${letters.join("")}…`;
}
