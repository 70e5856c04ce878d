"""C for products with a weight as it lies, each of its rows in one piece: out[t, n] = Σ_k a[t, k] w[n, k].

Numbers are multiplied along k, a vector at a time, so that a sum is at first spread over the lanes of a vector; four
such vectors at a time are folded into their four sums.
"""

from __future__ import annotations

VECTORS = """\
#include <stdatomic.h>
#include <stdint.h>

#define IS_DOUBLE {is_double}

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

#if defined(__AVX512F__) || defined(__aarch64__)
#define REGISTERS 32
#else
#define REGISTERS 16
#endif

typedef real vector __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));
#define LANES ((long)(BYTES / sizeof(real)))

/* What was loaded stays in its register: compilers would load it anew for each product, as if that cost nothing. */
#define KEEP atomic_signal_fence(memory_order_seq_cst)
"""

FOLD = """\
static inline real total(vector v) {
#if BYTES == 16
    real sum = v[0];
    for (long lane = 1; lane < LANES; lane++) sum += v[lane];
#else
    typedef real quarter __attribute__((vector_size(BYTES / 4)));
    const union { vector whole; quarter q[4]; } parts = {v};
    const quarter four = (parts.q[0] + parts.q[2]) + (parts.q[1] + parts.q[3]);
    real sum = four[0];
    for (long lane = 1; lane < LANES / 4; lane++) sum += four[lane];
#endif
    return sum;
}

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) && !IS_DOUBLE
#define FOLDS 1
#endif
#endif

#ifdef FOLDS
/* Within each four lanes: the first or the second two numbers of a and b, in turn or in pairs. */
#if BYTES == 64
#define EACH_FOUR(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4, \\
    i + 8, j + 8, k + 8, l + 8, i + 12, j + 12, k + 12, l + 12)
#elif BYTES == 32
#define EACH_FOUR(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4)
#else
#define EACH_FOUR(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif
#define N (BYTES / 4)
typedef real four __attribute__((vector_size(16), aligned(sizeof(real)), may_alias));

static inline void fold(vector a, vector b, vector c, vector d, real *sums) {
    const vector ab = EACH_FOUR(a, b, 0, N, 1, N + 1) + EACH_FOUR(a, b, 2, N + 2, 3, N + 3);
    const vector cd = EACH_FOUR(c, d, 0, N, 1, N + 1) + EACH_FOUR(c, d, 2, N + 2, 3, N + 3);
    const union { vector whole; four parts[BYTES / 16]; } abcd = {
        EACH_FOUR(ab, cd, 0, 1, N, N + 1) + EACH_FOUR(ab, cd, 2, 3, N + 2, N + 3)};
    four sum = abcd.parts[0];
    for (long i = 1; i < BYTES / 16; i++) sum += abcd.parts[i];
    *(four *)sums = sum;
}
#else
static inline void fold(vector a, vector b, vector c, vector d, real *sums) {
    sums[0] = total(a), sums[1] = total(b), sums[2] = total(c), sums[3] = total(d);
}
#endif
"""

ONE_ROW = """\
#define WEIGHTS_AT_ONCE (REGISTERS / 2)

/* out[n] = Σ_k a[k] w[n, k] for the rows `from` to `to` of w, which lie `stride` apart. Going `down` at every other
   step begins with what the step before has left in the cache. */
static void multiply_row(const real *a, const real *w, long stride, long depth, long from, long to, real *out,
                         int down) {
    const long whole = depth / LANES * LANES, blocks = (to - from + WEIGHTS_AT_ONCE - 1) / WEIGHTS_AT_ONCE;
    for (long block = 0; block < blocks; block++) {
        const long n = from + WEIGHTS_AT_ONCE * (down ? blocks - 1 - block : block);
        const real *r[WEIGHTS_AT_ONCE];
        vector s[WEIGHTS_AT_ONCE] = {0};
        for (long i = 0; i < WEIGHTS_AT_ONCE; i++) r[i] = w + (n + i < to ? n + i : to - 1) * stride;
        for (long k = 0; k < whole; k += LANES) {
            const vector v = *(const vector *)(a + k);
            for (long i = 0; i < WEIGHTS_AT_ONCE; i++) s[i] += v * *(const vector *)(r[i] + k);
        }
        real sums[WEIGHTS_AT_ONCE];
        for (long i = 0; i < WEIGHTS_AT_ONCE; i += 4) fold(s[i], s[i + 1], s[i + 2], s[i + 3], sums + i);
        for (long k = whole; k < depth; k++)
            for (long i = 0; i < WEIGHTS_AT_ONCE; i++) sums[i] += a[k] * r[i][k];
        memcpy(out + n, sums, (to - n < WEIGHTS_AT_ONCE ? to - n : WEIGHTS_AT_ONCE) * sizeof(real));
    }
}
"""

IN_VECTORS = """\
#if IS_DOUBLE
typedef int64_t bits;
#else
typedef int32_t bits;
#endif
typedef bits bit_vector __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));

/* The vectors of a row end with one that reaches back: zeros where it lies over the one before. */
static inline long vectors_of(long depth) { return (depth + LANES - 1) / LANES; }

/* What multiply_rows reads of `rows` rows: themselves where they are whole vectors, else a copy of them in `room`. */
static const real *in_vectors(const real *a, long rows, long depth, real *room) {
    const long rest = depth % LANES, width = vectors_of(depth) * LANES;
    if (!rest) return a;
    for (long row = 0; row < rows; row++, a += depth, room += width) {
        memcpy(room, a, (depth - rest) * sizeof(real));
        memset(room + depth - rest, 0, (LANES - rest) * sizeof(real));
        memcpy(room + width - rest, a + depth - rest, rest * sizeof(real));
    }
    return room - rows * width;
}

/* The last vector of a row of w, of which `rest` numbers are new. The others are cleared: 0 times infinity is NaN. */
static inline vector last_of(const real *end, long rest) {
    static const bits kept[2 * BYTES / sizeof(bits)] = {[BYTES / sizeof(bits)... 2 * BYTES / sizeof(bits) - 1] = -1};
    return (vector)(*(const bit_vector *)(end - LANES) & *(const bit_vector *)(kept + rest));
}
"""

MANY_ROWS = """\
#define ROWS_AT_ONCE (REGISTERS / 4 - 2)
#define ROWS_IN_CACHE 48

/* out[t, n] = Σ_k a[t, k] w[n, k] + bias[n] for the rows `from` to `to` of w, and a as in_vectors gives it. */
static void multiply_rows(const real *a, long rows, const real *w, long depth, const real *bias, long from, long to,
                          real *out, long out_row) {
    const long width = vectors_of(depth) * LANES;
    if (depth < LANES) {  /* no vector to reach back into */
        for (long row = 0; row < rows; row++)
            for (long n = from; n < to; n++) {
                real sum = bias ? bias[n] : 0;
                for (long k = 0; k < depth; k++) sum += a[(row + 1) * width - depth + k] * w[n * depth + k];
                out[row * out_row + n] = sum;
            }
        return;
    }
    for (long first = 0; first < rows; first += ROWS_IN_CACHE) {
        const long here = rows - first < ROWS_IN_CACHE ? rows - first : ROWS_IN_CACHE;
        const long tiles = (here + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
        for (long n = from; n < to; n += 4) {
            const long used = to - n < 4 ? to - n : 4;
            const real *four_of_w[4];
            for (long i = 0; i < 4; i++) four_of_w[i] = w + (i < used ? n + i : to - 1) * depth;
            for (long tile = 0; tile < tiles; tile++) {
                const long row = first + here * tile / tiles, count = first + here * (tile + 1) / tiles - row;
                real sums[MOST_AT_ONCE][4];
                multiply_tile(count, a + row * width, width, four_of_w, depth, sums);
                for (long t = 0; t < count; t++)
                    for (long i = 0; i < used; i++)
                        out[(row + t) * out_row + n + i] = bias ? sums[t][i] + bias[n + i] : sums[t][i];
            }
        }
    }
}
"""

MOST_AT_ONCE = 6
"""Rows, where there are 32 vector registers: ROWS_AT_ONCE."""

MOST_LANES = 16
"""Of any processor; a row of multiply_rows is at most so much longer than its numbers."""


def one_row(is_double: bool) -> str:
    """C of multiply_row; `real` is to be defined before it."""
    return "\n".join([VECTORS.format(is_double=int(is_double)), FOLD, ONE_ROW])


def many_rows(is_double: bool) -> str:
    """C of multiply_row and of in_vectors and multiply_rows."""
    return "\n".join([one_row(is_double), f"#define MOST_AT_ONCE {MOST_AT_ONCE}\n", IN_VECTORS, tiles(), MANY_ROWS])


def tiles() -> str:
    """C that multiplies some rows with four of w."""
    arguments = "const real *a, long width, const real **w, long depth, real (*sums)[4]"
    cases = [
        f"        case {rows}: tile_{rows}(a, width, w, depth, sums); break;" for rows in range(1, MOST_AT_ONCE + 1)
    ]
    head, tail = [f"static void multiply_tile(long rows, {arguments}) {{", "    switch (rows) {"], ["    }", "}", ""]
    return "\n".join([*(tile(rows) for rows in range(1, MOST_AT_ONCE + 1)), *head, *cases, *tail])


def tile(rows: int) -> str:
    """The same for so many rows, all sums in registers."""
    sums = [(row, i) for row in range(rows) for i in range(4)]

    def multiplied(weight: str) -> list[str]:
        lines = [f"        const vector w{i} = {weight.format(i)};" for i in range(4)]
        for row in range(rows):
            lines.append(f"        const vector a{row} = *(const vector *)(a + {row} * width + k);")
            lines.append("        KEEP;")
            lines += [f"        s{row}_{i} += a{row} * w{i};" for i in range(4)]
        return lines

    lines = [
        f"static void tile_{rows}(const real *a, long width, const real **w, long depth, real (*sums)[4]) {{",
        *(f"    vector s{row}_{i} = {{0}};" for row, i in sums),
        "    const long rest = depth % LANES;",
        "    long k = 0;",
        "    for (; k < depth - rest; k += LANES) {",
        *multiplied("*(const vector *)(w[{}] + k)"),
        "    }",
        "    if (rest) {",
        *multiplied("last_of(w[{}] + depth, rest)"),
        "    }",
        *(f"    fold(s{row}_0, s{row}_1, s{row}_2, s{row}_3, sums[{row}]);" for row in range(rows)),
        "}",
        "",
    ]
    return "\n".join(lines)


def room_size(rows: int, depth: int) -> int:
    """Numbers that in_vectors needs room for."""
    return rows * (depth + MOST_LANES) if depth % MOST_LANES else 0
