// What draws each kind of view. The kind alone decides, whatever a view is called and whichever task it is of.

import { element } from "./dom.js";
import * as distribution from "./view_distribution.js";
import * as heatMap from "./view_heat_map.js";
import * as lines from "./view_lines.js";
import * as overlay from "./view_overlay.js";
import * as several from "./view_several.js";
import * as tokens from "./view_tokens.js";
import * as tree from "./view_tree.js";
import * as units from "./view_units.js";

const DRAWERS = { heat_map: heatMap, overlay, tokens, tree, units, lines, distribution, several };

/** Draws a view into a place; `change` is told what a reader changed of its state. */
export function drawView(place, numbers, context) {
  if (Object.hasOwn(DRAWERS, numbers.kind)) return DRAWERS[numbers.kind].draw(place, numbers, context);
  const why = `This page cannot draw a view of the kind “${numbers.kind}”: recurra explain with --out page.html does.`;
  return place.append(element("p", { class: "why-not" }, why));
}
