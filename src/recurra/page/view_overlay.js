// A picture, and over it the places that the chosen token looked at.

import { element, svg, visible } from "./dom.js";
import { fitted, fixed, named, numbersTable, reading, sayingLine, within } from "./figure.js";
import { player } from "./player.js";
import { tokenRow } from "./tokens.js";

const HIGHEST = 360; // pixels of the picture on the screen
const WIDEST = 760;
const LOWEST = 88;
const STRONGEST = 0.7; // of colour: what is under it can still be seen
const WEAKEST = 0.01; // of the largest weight of a token: less cannot be seen

export function draw(place, numbers, context) {
  const { tokens } = numbers;
  const last = tokens.length - 1;
  const line = sayingLine();
  const view = element("div", { class: "view overlay" });
  place.append(view);
  view.append(
    reading(
      "Colour shows where the model looked for the chosen token;",
      "the strongest place of each token has the full colour.",
    ),
  );
  let shown = null; // draws the map of a token over the picture, once there is one
  let at = within(context.state.token, 0, last, 0);

  function look(number) {
    shown?.(number);
    line.say(...said(numbers, number));
  }
  const choose = (number) => {
    at = number;
    row.show(at);
    look(at);
  };
  const row = tokenRow(tokens, {
    label: "Tokens: arrow keys walk through them",
    chosen: at,
    onlook: look,
    onchoose: (number) => {
      playing.go(number + 1);
      context.change({ token: number });
    },
  });
  const playing = player({
    first: 1,
    last: last + 1,
    at: at + 1,
    label: "Token that is shown",
    wait: 700,
    onshow: (step) => choose(step - 1),
  });
  view.append(row.node);
  fitted(view, (width) => {
    const picture = seen(numbers, width);
    shown = picture.show;
    shown(at);
    picture.node.addEventListener("pointermove", (event) => {
      const where = picture.placeOf(event);
      if (where) line.say(...saidOf(numbers, at, where));
    });
    picture.node.addEventListener("pointerleave", () => look(at));
    return element("div", { class: "scrolled" }, picture.node);
  });
  view.append(line.node);
  if (last > 0) view.append(playing.node);
  view.append(
    numbersTable("Where each token looked, as numbers", ["token", "row", "column", "share", "places with half"], () =>
      tokens.map((token, number) => {
        const most = mostOf(numbers.weights[number]);
        return [visible(token), most.row + 1, most.column + 1, fixed(most.weight), most.half];
      }),
    ),
  );
}

/** Where a map is strongest, and in how many places half of it lies. */
function mostOf(map) {
  const all = map.flatMap((weights, row) => weights.map((weight, column) => ({ weight, row, column })));
  all.sort((one, other) => other.weight - one.weight);
  const whole = all.reduce((sum, { weight }) => sum + weight, 0);
  let [sum, half] = [0, 0];
  while (sum < whole / 2 && half < all.length) sum += all[half++].weight;
  return { ...all[0], half };
}

function said({ tokens, weights }, number) {
  const { row, column, weight, half } = mostOf(weights[number]);
  const where = half === 1 ? "more than half of it there" : `half of it in ${half} places`;
  const most = `row ${row + 1}, column ${column + 1}: ${fixed(weight, 2)}`;
  return [named(tokens[number]), ` looked most at ${most}, ${where}.`];
}

function saidOf({ tokens, weights }, number, { row, column }) {
  const weight = fixed(weights[number][row][column]);
  return [named(tokens[number]), ` ← row ${row + 1}, column ${column + 1}: ${weight}`];
}

function seen({ tokens, weights, down, across, picture }, width) {
  const [high, wide] = [down.at(-1), across.at(-1)];
  // A long line of writing scrolls rather than shrink to what no one can read.
  const scale = Math.max(Math.min(width / wide, WIDEST / wide, HIGHEST / high), LOWEST / high);
  const colours = svg("g", { class: "looked" });
  const size = { width: wide, height: high };
  const node = svg(
    "svg",
    { class: "picture", role: "img", viewBox: `0 0 ${wide} ${high}`, width: wide * scale, height: high * scale },
    svg("rect", { class: "back", ...size }),
    picture && svg("image", { href: picture, preserveAspectRatio: "none", class: scale > 2 ? "large" : "", ...size }),
    colours,
    picture === null && edges(down, across),
  );

  function show(number) {
    const map = weights[number];
    const strongest = mostOf(map).weight || 1;
    node.setAttribute("aria-label", `The picture; ${visible(tokens[number])} ${said({ tokens, weights }, number)[1]}`);
    colours.replaceChildren(
      ...map.flatMap((row, y) =>
        row.flatMap((weight, x) => {
          if (weight < WEAKEST * strongest) return [];
          const box = { x: across[x], y: down[y], width: across[x + 1] - across[x], height: down[y + 1] - down[y] };
          return svg("rect", { ...box, "fill-opacity": ((STRONGEST * weight) / strongest).toFixed(3) });
        }),
      ),
    );
  }

  function placeOf(event) {
    const box = node.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
    const [row, column] = [down.findIndex((edge) => edge > y) - 1, across.findIndex((edge) => edge > x) - 1];
    return row < 0 || column < 0 ? null : { row, column };
  }

  return { node, show, placeOf };
}

/** Lines between places, where there is no picture to tell them apart. */
function edges(down, across) {
  const d = [...down.map((y) => `M0 ${y}H${across.at(-1)}`), ...across.map((x) => `M${x} 0V${down.at(-1)}`)].join("");
  return svg("path", { class: "edges", d });
}
