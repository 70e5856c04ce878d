// Tables as people paste and drop them: CSV and the like, of which a model reads some columns.

/** How tables write that a value is missing. */
const MISSING = ["", "na", "nan", "null", "none"];

const SEPARATORS = ["\t", ";", ","];

/** Steps of a series that are read of a longer table. */
const LONGEST = 1000;

/**
 * The numbers that a model reads of a table, {numbers: rows of them, note: what was left out, in words}. Columns are found
 * by the names above them, else those of numbers are taken where there are as many as the model reads. An Error says
 * what is wrong.
 */
export function fromTable(text, { columns = [], series = "", kind } = {}) {
  const table = tableOf(text);
  const notes = [];
  const rows = kind === "series" ? ofOneSeries(table, series, notes) : table.rows;
  const places = placesOf(table, rows, columns, kind);
  const named = table.names && places.length < table.names.length;
  if (named) notes.push(`left out: ${table.names.filter((name, place) => name && !places.includes(place)).join(", ")}`);
  const numbers = rows.map((row, step) => places.map((place) => numberIn(row[place], table, step)));
  if (kind === "vector") return vector(numbers, columns.length, notes);
  if (kind === "series" && numbers.length > LONGEST) notes.push(`the last ${LONGEST} of ${numbers.length} steps`);
  return { numbers: kind === "series" ? numbers.slice(-LONGEST) : numbers, note: notes.join("; ") };
}

/** The cells of a table, with tabs, semicolons, commas or blanks between them, and the names above, where there are any. */
function tableOf(text) {
  const lines = text.replace(/^\ufeff/, "").split(/\r?\n/).filter((line) => line.trim() !== "");
  const separator = SEPARATORS.find((each) => lines[0].includes(each)) ?? null;
  const cells = lines.map((line) => (separator === null ? line.trim().split(/\s+/) : cut(line, separator)));
  const hasEmptyEnd = cells.every((row) => row.length > 1 && row.at(-1) === "");
  const all = hasEmptyEnd ? cells.map((row) => row.slice(0, -1)) : cells;
  const isDecimalComma = separator !== ",";
  const isName = (cell) => cell === "" || typeof read(cell, isDecimalComma) === "undefined";
  const hasNames = all.length > 1 && all[0].some((cell) => cell !== "") && all[0].every(isName);
  const rows = all.slice(hasNames ? 1 : 0);
  rows.forEach((row, step) => {
    if (row.length === rows[0].length) return;
    throw new Error(`Step ${step + 1} has ${row.length} numbers, but the first has ${rows[0].length}.`);
  });
  return { names: hasNames ? all[0] : null, rows, isDecimalComma };
}

/** The cells of a line; one in quotation marks may hold the separator. */
function cut(line, separator) {
  const cells = [""];
  let isQuoted = false;
  for (const letter of line) {
    if (letter === '"') isQuoted = !isQuoted;
    else if (letter === separator && !isQuoted) cells.push("");
    else cells[cells.length - 1] += letter;
  }
  return cells.map((cell) => cell.trim());
}

/** A number, null where it is missing, undefined where a cell is none. */
function read(cell, isDecimalComma) {
  if (MISSING.includes(cell.toLowerCase())) return null;
  const found = Number(isDecimalComma ? cell.replace(",", ".") : cell);
  return Number.isFinite(found) ? found : undefined;
}

function numberIn(cell, { isDecimalComma }, step) {
  const found = read(cell, isDecimalComma);
  if (found === undefined) throw new Error(`Step ${step + 1}: “${cell.slice(0, 20)}” is not a number.`);
  return found;
}

/** Of a table with several series, the rows of the first. */
function ofOneSeries({ names, rows }, series, notes) {
  const place = series ? (names?.indexOf(series) ?? -1) : -1;
  if (place < 0) return rows;
  const kinds = [...new Set(rows.map((row) => row[place]))];
  if (kinds.length > 1) notes.push(`${series} ${kinds[0]}, the first of ${kinds.length}`);
  return rows.filter((row) => row[place] === kinds[0]);
}

/** Which columns of a table a model reads. */
function placesOf({ names, isDecimalComma }, rows, columns, kind) {
  const every = rows[0].map((_, place) => place);
  if (columns.length === 0) return every;
  if (names && columns.every((name) => names.includes(name))) return columns.map((name) => names.indexOf(name));
  const isNumber = (place) => rows.every((row) => read(row[place], isDecimalComma) !== undefined) && rows.some((row) => row[place] !== "");
  const found = every.filter(isNumber);
  if (found.length === columns.length) return found;
  const isOneLine = columns.length === 1 && rows.length === 1; // a series of single numbers
  const isOneColumn = kind === "vector" && every.length === 1 && rows.length === columns.length;
  if (found.length === every.length && (isOneLine || isOneColumn)) return every;
  if (every.length === columns.length) return every; // what is no number in it is named
  const has = `${found.length} number${found.length === 1 ? "" : "s"}`;
  const cure = names || found.length < columns.length ? "" : " Paste the line with the names of the columns too.";
  throw new Error(`A step has ${has} here, but the model reads ${columns.length}: ${columns.join(", ")}.${cure}`);
}

/** The first row, or one column of as many numbers. */
function vector(numbers, many, notes) {
  if (numbers.length > 1 && numbers[0].length === 1 && numbers.length === many) return { numbers: [numbers.flat()], note: "" };
  if (numbers.length > 1) notes.push(`the first of ${numbers.length} rows`);
  return { numbers: [numbers[0]], note: notes.join("; ") };
}
