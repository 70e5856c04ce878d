// Tokens along the edges of a grid: level where they fit, else slanted; letters of CJK stand upright in a column.

import { element } from "./dom.js";
import { labelled, widthOf } from "./figure.js";

const SLANT = Math.SQRT1_2;
const LONGEST = 130; // pixels of a token; what is beyond is said where it is pointed at
const CJK = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー・。、「」]+$/u;

/** Pixels of letters in a cell of a size. */
export const sizeIn = (cell) => Math.min(14, Math.max(10, cell - 4));

/** Whole pixels of a column so that all of them fit a width; no fewer than it takes to read the tokens. */
export function cellFor(tokens, room, widest) {
  const longest = Math.max(...tokens.map((token) => widthOf(labelled(token), 10)));
  const narrowest = longest > 12 ? 17 : 13;
  let cell = Math.min(widest, Math.max(narrowest, Math.floor(room / tokens.length)));
  while (cell > narrowest && across(tokens, cell).width > room) cell -= 1; // slanted tokens reach beyond the last
  return cell;
}

/** Tokens above columns of a width: the node, its height, and how far the last ones reach beyond their columns. */
export function across(tokens, cell) {
  const size = sizeIn(cell);
  const texts = tokens.map(labelled);
  const widths = texts.map((text) => Math.min(LONGEST, Math.ceil(widthOf(text, size)) + 1));
  const isLevel = Math.max(...widths) <= cell - 2;
  let [height, end] = [size + 8, 0];
  const labels = texts.map((text, place) => {
    const label = element("span", { class: "label", dir: "auto", "data-place": place }, text);
    const middle = (place + 0.5) * cell;
    if (isLevel) {
      label.style.left = `${place * cell}px`;
      label.style.width = `${cell}px`;
    } else if (CJK.test(text) && text.length < 9) {
      label.classList.add("upright");
      label.style.left = `${middle - size * 0.6}px`;
      height = Math.max(height, [...text].length * size * 1.1 + 8);
    } else {
      label.classList.add("slanted");
      label.style.left = `${middle}px`;
      label.style.maxWidth = `${LONGEST}px`;
      height = Math.max(height, (widths[place] + size) * SLANT + 8);
      end = Math.max(end, middle + (widths[place] + size / 2) * SLANT);
    }
    return label;
  });
  const node = element("div", { class: `axis across${isLevel ? " level" : ""}`, "aria-hidden": "true" }, labels);
  const width = Math.ceil(Math.max(end, tokens.length * cell));
  height = Math.ceil(height);
  Object.assign(node.style, { width: `${width}px`, height: `${height}px`, fontSize: `${size}px` });
  return { node, labels, height, width };
}

/** Tokens beside rows of a height; those wider than `most` pixels are cut off. */
export function down(tokens, cell, most) {
  const size = sizeIn(cell);
  const labels = tokens.map((token, place) =>
    element("span", { class: "label", dir: "auto", "data-place": place }, labelled(token)),
  );
  for (const label of labels) label.style.height = label.style.lineHeight = `${cell}px`;
  const node = element("div", { class: "axis down", "aria-hidden": "true" }, labels);
  const widest = Math.max(...tokens.map((token) => widthOf(labelled(token), size, 600)));
  const width = Math.ceil(Math.min(most, widest + 14));
  Object.assign(node.style, { width: `${width}px`, fontSize: `${size}px` });
  return { node, labels, width };
}
