// Views of the same thing: one that is chosen, or all of them one below the other.

import { element } from "./dom.js";
import { drawView } from "./drawers.js";
import { reading, within } from "./figure.js";

export function draw(place, { views, choice, about }, context) {
  const view = element("div", { class: "view several" });
  const inside = element("div", { class: "inside" });
  let chosen = within(context.state.view, 0, views.length - 1, 0);
  let state = { ...context.state };

  /** What a reader chose in one view holds in the next one too. */
  function change(patch) {
    state = { ...state, ...patch };
    context.change(patch);
  }

  function show(number) {
    inside.replaceChildren();
    drawView(inside, views[number], { ...context, state, change });
  }

  function pick(event) {
    chosen = Number(event.target.value);
    change({ view: chosen });
    show(chosen);
  }

  place.append(view);
  if (about) view.append(reading(about));
  if (choice && views.length > 1) {
    const options = views.map(({ title }, number) =>
      element("option", { value: number, selected: number === chosen }, title || String(number + 1)),
    );
    const select = element("select", { onchange: pick }, options);
    view.append(element("div", { class: "choices" }, element("label", {}, `${choice} `, select)), inside);
    show(chosen);
    return;
  }
  for (const each of views) {
    if (each.title) view.append(element("h3", {}, each.title));
    const part = element("div");
    view.append(part);
    drawView(part, each, context);
  }
}
