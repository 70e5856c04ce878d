// Grids of numbers as few shapes: one path for each strength of a colour, however many cells there are.

import { svg } from "./dom.js";

/** So many strengths of a colour are told apart. */
const LEVELS = 24;

/**
 * Rows of numbers from -1 to 1 as cells of a size: blue above 0, orange below, the paler the nearer to it.
 * What is beyond has the full colour.
 */
export function cells(rows, { width, height, gap = 0 }) {
  const paths = new Map();
  const shape = `h${width - gap}v${height - gap}h${gap - width}z`;
  rows.forEach((row, down) =>
    row.forEach((value, across) => {
      const level = Math.round(Math.min(1, Math.max(-1, value)) * LEVELS);
      if (level === 0) return;
      const corner = `M${across * width + gap / 2} ${down * height + gap / 2}`;
      paths.set(level, (paths.get(level) ?? "") + corner + shape);
    }),
  );
  const drawn = [...paths].map(([level, d]) =>
    svg("path", { class: level > 0 ? "more" : "less", "fill-opacity": Math.abs(level) / LEVELS, d }),
  );
  return svg("g", { class: "cells" }, drawn);
}

/** Which cell lies at a point of the screen, by row and column; null outside of the grid. */
export function cellAt(node, event, { width, height, rows, columns }) {
  const box = node.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top) / height);
  const column = Math.floor((event.clientX - box.left) / width);
  return row < 0 || column < 0 || row >= rows || column >= columns ? null : { row, column };
}

/** Where arrow keys lead from a cell within bounds; null where the key is none of them. */
export function moved(event, { row, column }, { top = 0, left = 0, bottom, right }) {
  if (event.altKey || event.ctrlKey || event.metaKey) return null;
  const page = 10;
  const to = {
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    PageUp: [row - page, column],
    PageDown: [row + page, column],
    Home: [row, left],
    End: [row, right],
  }[event.key];
  if (to === undefined) return null;
  event.preventDefault();
  return { row: Math.min(bottom, Math.max(top, to[0])), column: Math.min(right, Math.max(left, to[1])) };
}

/** Scrolls a box, and nothing else, until a part of it can be seen beside what sticks to its upper left corner. */
export function reveal(box, { left, top, width, height }, { aside = 0, above = 0 } = {}) {
  const shift = (from, size, start, room, hidden) => {
    if (from < start + hidden) return from - hidden;
    return from + size > start + room ? from + size - room : start;
  };
  box.scrollLeft = shift(left, width, box.scrollLeft, box.clientWidth, aside);
  box.scrollTop = shift(top, height, box.scrollTop, box.clientHeight, above);
}
