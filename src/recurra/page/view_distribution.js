// Shares of a whole as bars, one for each name.

import { percent } from "./classes.js";
import { element, visible } from "./dom.js";
import { numbersTable, reading } from "./figure.js";

export function draw(place, { names, shares, parts, apart, said, about, caption, title }) {
  const view = element("div", { class: "view distribution" });
  const rows = names.map((name, row) => {
    const bars = shares[row].map((share, part) => {
      const bar = element("span", { class: `bar part-${part % 5}`, title: `${percent(share)} ${parts[part]}` });
      bar.style.width = `${100 * share}%`;
      return bar;
    });
    const numbers = shares[row].map(percent).join(", ");
    const look = apart ? "bar-place parts apart" : "bar-place parts";
    return element(
      "li",
      { title: said[row] ?? null },
      element("span", { class: "bar-name" }, visible(name)),
      element("span", { class: look, "aria-hidden": "true" }, bars),
      element("span", { class: "bar-number" }, numbers),
    );
  });
  place.append(view);
  if (about) view.append(reading(about));
  if (caption) view.append(element("p", { class: "summary" }, caption));
  if (parts.length > 1) view.append(legend(parts));
  view.append(
    element("ol", { class: "bars", "aria-label": caption || title || "Shares" }, rows),
    numbersTable("As numbers", ["", ...parts], () => names.map((name, row) => [visible(name), ...shares[row].map(percent)])),
  );
}

function legend(parts) {
  const keys = parts.map((part, number) =>
    element("span", { class: "key" }, element("span", { class: `bar part-${number % 5}` }), part),
  );
  return element("p", { class: "legend" }, keys);
}
