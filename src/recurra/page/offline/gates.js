// The gates and states of a recurrent stack while it reads, out of the function `gates` of an exported program.

const MOST = 24; // so many units are drawn: of more, those whose output changes most

/** The view of one layer and direction: `found` are arrays (1, T, units) named layer_direction_name. */
export function gatesOf(found, tokens, { cell, layers, directions }, { layer = layers, direction = directions[0] }, words) {
  const prefix = `${layer}_${direction}_`;
  const own = Object.entries(found).filter(([name]) => name.startsWith(prefix));
  if (own.length === 0) throw new Error(`This network has ${layers} layers, and reads ${directions.join(" and ")}.`);
  const chosen = new Map(); // by how many there are: the same units of all names
  const values = own.map(([name, { data, shape }]) => {
    const [, steps, count] = shape;
    const unit = (number) => [...Array(steps).keys()].map((step) => data[step * count + number]);
    const units = [...Array(count).keys()].map(unit);
    if (!chosen.has(count)) chosen.set(count, ordered(units));
    const kept = chosen.get(count);
    const over = (fold) => [...Array(steps).keys()].map((step) => fold(units.map((each) => each[step])));
    return [
      name.slice(prefix.length),
      {
        means: over((column) => column.reduce((sum, each) => sum + each, 0) / count),
        units: kept,
        rows: kept.map((number) => units[number].map((each) => Math.round(each * 1e4) / 1e4)),
        low: over((column) => Math.min(...column)),
        high: over((column) => Math.max(...column)),
      },
    ];
  });
  const most = Math.max(...own.map(([, { shape }]) => shape[2]));
  const [about] = words.about.split(" The 24 of ");
  return {
    kind: "units",
    ...words,
    caption: `${cell}, layer ${layer} of ${layers}, ${direction}`,
    about: most > MOST ? `${about} The ${MOST} of ${most} units that change most are shown; means are over all units.` : about,
    tokens,
    values: Object.fromEntries(values),
    layer,
    layers,
    direction,
    directions,
  };
}

/** The units that change most, from that which is strongest first to that which is strongest last. */
function ordered(units) {
  const spread = units.map((values) => {
    const mean = values.reduce((sum, each) => sum + each, 0) / values.length;
    return values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  });
  const strongest = units.map((values) => values.reduce((best, each, at) => (Math.abs(each) > Math.abs(values[best]) ? at : best), 0));
  const changing = [...units.keys()].sort((one, other) => spread[other] - spread[one]).slice(0, MOST);
  return changing.sort((one, other) => one - other).sort((one, other) => strongest[one] - strongest[other]);
}
