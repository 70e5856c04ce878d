// The program of an exported model, compiled to WebAssembly: named arrays in, named arrays out.

const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  int64: BigInt64Array,
  int32: Int32Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

const WRONG = {
  1: "their sizes do not fit each other",
  2: "there is not enough memory",
  3: "an id is out of range",
  4: "the weights are damaged",
};

/** An array: its numbers, the last dimension closest, and its shape. */
export function array(data, ...shape) {
  return { data, shape };
}

/** Some rows of an array, in this order. */
export function rowsOf({ data, shape }, rows) {
  const size = shape.slice(1).reduce((product, each) => product * each, 1);
  const found = new data.constructor(rows.length * size);
  rows.forEach((row, place) => found.set(data.subarray(row * size, (row + 1) * size), place * size));
  return { data: found, shape: [rows.length, ...shape.slice(1)] };
}

/** The value of a size: terms [coefficient, factors]; a factor is a name, or {of, by}: a size divided and rounded down. */
export function sizeAt(terms, sizes) {
  let sum = 0;
  for (const [coefficient, factors] of terms) {
    let product = coefficient;
    for (const factor of factors) product *= typeof factor === "string" ? sizes[factor] : quotientAt(factor, sizes);
    sum += product;
  }
  return sum;
}

function quotientAt({ of, by }, sizes) {
  const over = typeof by === "string" ? sizes[by] : by;
  return over ? Math.floor(sizeAt(of, sizes) / over) : 0;
}

/** What the names of sizes mean for inputs of these shapes. */
export function sizesOf(inputs, shapes) {
  const sizes = {};
  const each = (use) => inputs.forEach(({ shape }, number) => shape.forEach((terms, at) => use(terms, shapes[number][at])));
  each((terms, there) => {
    const [[coefficient, factors] = [0, []]] = terms;
    if (terms.length === 1 && coefficient === 1 && factors.length === 1 && typeof factors[0] === "string") {
      sizes[factors[0]] ??= there;
    }
  });
  each((terms, there) => {
    if (terms.length !== 1) return;
    const [[coefficient, factors]] = terms;
    const unknown = factors.filter((factor) => typeof factor === "string" && !(factor in sizes));
    if (unknown.length !== 1) return;
    const known = factors.filter((factor) => factor !== unknown[0]);
    sizes[unknown[0]] = Math.floor(there / sizeAt([[coefficient, known]], sizes)) || 0;
  });
  return sizes;
}

/**
 * The engine of a model: `call(name, inputs)` runs a function on arrays by their names. `code` and `weights` are bytes,
 * `functions` say what each function takes and gives.
 */
export async function engine(code, weights, functions) {
  const { instance } = await WebAssembly.instantiate(code, {});
  const wasm = instance.exports;
  wasm._initialize?.();
  const model = opened(wasm, weights);

  function call(name, inputs) {
    const { names, inputs: wanted, outputs } = functions[name];
    const given = wanted.map((each) => {
      if (!(each.name in inputs)) throw new Error(`The input ${each.name} of ${name} is missing.`);
      return inputs[each.name];
    });
    const sizes = sizesOf(wanted, given.map((each) => each.shape));
    const shapes = outputs.map(({ shape }) => shape.map((terms) => Math.max(0, sizeAt(terms, sizes))));
    const places = [];
    const take = (bytes) => {
      const place = wasm.malloc(Math.max(8, bytes));
      if (place === 0) throw new Error("There is not enough memory.");
      places.push(place);
      return place;
    };
    try {
      const read = given.map(({ data }, number) => {
        const Kind = ARRAYS[wanted[number].type];
        const own = data instanceof Kind ? data : Kind.from(data, Kind === BigInt64Array ? BigInt : Number);
        const place = take(own.byteLength);
        new Kind(wasm.memory.buffer, place, own.length).set(own);
        return place;
      });
      const counts = shapes.map((shape) => shape.reduce((product, each) => product * each, 1));
      const written = outputs.map(({ type }, number) => take(counts[number] * ARRAYS[type].BYTES_PER_ELEMENT));
      const status = wasm[`recurra_${name}`](model, ...names.map((each) => BigInt(sizes[each])), ...read, ...written);
      if (status !== 0) throw new Error(`The model cannot compute ${name}: ${WRONG[status] ?? status}.`);
      const found = outputs.map(({ name: each, type }, number) => {
        const data = new ARRAYS[type](wasm.memory.buffer, written[number], counts[number]).slice();
        return [each, { data, shape: shapes[number] }];
      });
      return Object.fromEntries(found);
    } finally {
      for (const place of places) wasm.free(place);
    }
  }

  return { call, functions };
}

function opened(wasm, weights) {
  const place = wasm.malloc(weights.length);
  const result = wasm.malloc(8);
  new Uint8Array(wasm.memory.buffer).set(weights, place);
  const status = wasm.recurra_open(place, weights.length, result);
  if (status !== 0) throw new Error(`The model cannot be loaded: ${WRONG[status] ?? status}.`);
  const model = new DataView(wasm.memory.buffer).getUint32(result, true);
  wasm.free(result);
  return model;
}
